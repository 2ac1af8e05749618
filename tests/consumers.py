"""Receivers of messages that several consumers get, each with an inbox of another key."""

import sqlite3
from pathlib import Path

from oncebench.messages import Conflict, State


class Keyed:
    """Two consumers with a stock each, and one inbox."""

    consumers = ("stock", "mail")
    key = ""
    known = ""

    def setup(self, path: Path) -> None:
        db = sqlite3.connect(path)
        db.executescript(
            "PRAGMA journal_mode = wal;"
            f"CREATE TABLE inbox(id TEXT, consumer TEXT, qty INTEGER NOT NULL, PRIMARY KEY ({self.key}));"
            "CREATE TABLE stock(consumer TEXT PRIMARY KEY, total INTEGER NOT NULL);"
            "INSERT INTO stock VALUES ('stock', 0), ('mail', 0)"
        )
        db.close()

    def connect(self, path: Path) -> sqlite3.Connection:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA synchronous = off")
        return db

    def receive(self, db: sqlite3.Connection, id: str, qty: int, consumer: str) -> bool:
        with db:
            db.execute("BEGIN IMMEDIATE")
            known = f"SELECT qty FROM inbox WHERE {self.known}"
            row = db.execute(known, {"id": id, "consumer": consumer}).fetchone()
            if row and row[0] != qty:
                raise Conflict(id)
            if row:
                return False
            db.execute("INSERT INTO inbox VALUES (?, ?, ?)", (id, consumer, qty))
            db.execute("UPDATE stock SET total = total + ? WHERE consumer = ?", (qty, consumer))
            return True

    def observe(self, path: Path) -> State:
        db = sqlite3.connect(path)
        try:
            (total,) = db.execute("SELECT sum(total) FROM stock").fetchone()
            rows = db.execute("SELECT id || '@' || consumer, qty FROM inbox").fetchall()
        finally:
            db.close()
        return State(total, rows)


class Shared(Keyed):
    """Wrong: the second consumer's message is taken for a duplicate, and never comes to it."""

    key = "id"
    known = "id = :id"


class Apart(Keyed):
    """Right: each consumer has its own entry."""

    key = "id, consumer"
    known = "id = :id AND consumer = :consumer"


class Plain:
    """Right, on the bench's own store: the consumer is a part of the key."""

    consumers = ("stock", "mail")

    def receive(self, db: sqlite3.Connection, id: str, qty: int, consumer: str) -> bool:
        with db:
            db.execute("BEGIN IMMEDIATE")
            key = f"{id}@{consumer}"
            row = db.execute("SELECT qty FROM inbox WHERE id = ?", (key,)).fetchone()
            if row and row[0] != qty:
                raise Conflict(id)
            if row:
                return False
            db.execute("INSERT INTO inbox VALUES (?, ?)", (key, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            return True
