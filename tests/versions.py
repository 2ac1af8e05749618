"""Versions of one receiver that may share a store in a rolling deploy."""

import sqlite3
from pathlib import Path

from oncebench.messages import Conflict, State


class Version:
    """Right: one transaction, a unique key. What the key is made of differs between versions."""

    def key(self, id: str) -> str:
        raise NotImplementedError

    def setup(self, path: Path) -> None:
        db = sqlite3.connect(path)
        db.executescript(
            "PRAGMA journal_mode = wal;"
            "CREATE TABLE done(key TEXT PRIMARY KEY, id TEXT NOT NULL, qty INTEGER NOT NULL);"
            "CREATE TABLE stock(total INTEGER NOT NULL); INSERT INTO stock VALUES (0)"
        )
        db.close()

    def connect(self, path: Path) -> sqlite3.Connection:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA synchronous = off")
        return db

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        with db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute("SELECT qty FROM done WHERE key = ?", (self.key(id),)).fetchone()
            if row and row[0] != qty:
                raise Conflict(id)
            if row:
                return False
            db.execute("INSERT INTO done VALUES (?, ?, ?)", (self.key(id), id, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            return True

    def observe(self, path: Path) -> State:
        db = sqlite3.connect(path)
        try:
            (total,) = db.execute("SELECT total FROM stock").fetchone()
            rows = db.execute("SELECT id, min(qty) FROM done GROUP BY id").fetchall()
        finally:
            db.close()
        return State(total, rows)


class Old(Version):
    def key(self, id: str) -> str:
        return id


class Patched(Version):
    """Other code, the same key."""

    def key(self, id: str) -> str:
        return "".join(id)


class Rekeyed(Version):
    """Alone right; it does not know what the old version has done."""

    def key(self, id: str) -> str:
        return f"order:{id}"
