"""Wrong: two consumers of one message share an inbox whose key is the id alone.

Whoever comes second is told that the message was handled, and never does its own work.
Repair: the key is consumer and id, as in `inbox_for_each`.
"""

import sqlite3
from pathlib import Path

from oncebench.messages import Conflict, State

consumers = ("stock", "mail")


def setup(path: Path, key: str = "id") -> None:
    """Make an inbox with that key, and a total for each consumer."""
    db = sqlite3.connect(path)
    db.executescript(f"""
        CREATE TABLE inbox(id TEXT, consumer TEXT, qty INTEGER NOT NULL, PRIMARY KEY ({key}));
        CREATE TABLE totals(consumer TEXT PRIMARY KEY, total INTEGER NOT NULL);
        INSERT INTO totals VALUES ('stock', 0), ('mail', 0);
        """)
    db.close()


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit."""
    return sqlite3.connect(path, isolation_level=None)


def observe(path: Path) -> State:
    """The sum of both totals, and rows as `m1@stock`."""
    db = connect(path)
    try:
        (total,) = db.execute("SELECT sum(total) FROM totals").fetchone()
        return State(total, db.execute("SELECT id || '@' || consumer, qty FROM inbox").fetchall())
    finally:
        db.close()


def receive(db: sqlite3.Connection, id: str, qty: int, consumer: str) -> bool:
    """Apply `(id, qty)` for the consumer that comes first."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        row = db.execute("SELECT qty FROM inbox WHERE id = ?", (id,)).fetchone()
        if row and row[0] != qty:
            raise Conflict(id)
        if row:
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?, ?)", (id, consumer, qty))
        db.execute("UPDATE totals SET total = total + ? WHERE consumer = ?", (qty, consumer))
        return True
