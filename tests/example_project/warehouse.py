"""Somebody's own receiver: their schema, their exception, their way of reading it."""

import sqlite3
from pathlib import Path

from oncebench import State


class QuantityChanged(Exception):
    """The order came again with another quantity."""


class Warehouse:
    """Orders and movements; the stock is the sum of all movements."""

    conflict = QuantityChanged

    def setup(self, path: Path) -> None:
        """Make the schema."""
        db = sqlite3.connect(path)
        db.executescript(
            "CREATE TABLE orders(number TEXT PRIMARY KEY, pieces INTEGER NOT NULL);"
            "CREATE TABLE movements(pieces INTEGER NOT NULL);"
        )
        db.close()

    def connect(self, path: Path) -> sqlite3.Connection:
        """As the application does."""
        return sqlite3.connect(path, timeout=10, isolation_level="IMMEDIATE")

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        """Book an order once."""
        with db:
            put = db.execute("INSERT OR IGNORE INTO orders VALUES (?, ?)", (id, qty))
            if put.rowcount == 1:
                db.execute("INSERT INTO movements VALUES (?)", (qty,))
                return True
            (pieces,) = db.execute("SELECT pieces FROM orders WHERE number = ?", (id,)).fetchone()
            if pieces != qty:
                raise QuantityChanged(id)
            return False

    def observe(self, path: Path) -> State:
        """What it has booked."""
        db = sqlite3.connect(path)
        (total,) = db.execute("SELECT coalesce(sum(pieces), 0) FROM movements").fetchone()
        orders = db.execute("SELECT number, pieces FROM orders").fetchall()
        db.close()
        return State(total, orders)


class HastyWarehouse(Warehouse):
    """The same, but it looks before the transaction begins."""

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        """Book an order, but not always once."""
        known = db.execute("SELECT pieces FROM orders WHERE number = ?", (id,)).fetchone()
        if known is not None:
            if known[0] != qty:
                raise QuantityChanged(id)
            return False
        with db:
            db.execute("INSERT INTO movements VALUES (?)", (qty,))
            db.execute("INSERT OR IGNORE INTO orders VALUES (?, ?)", (id, qty))
        return True
