"""Receivers whose worker processes have several threads."""

import sqlite3
import threading
from pathlib import Path

from oncebench.messages import Conflict


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right wherever each worker has a connection of its own."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        row = db.execute("SELECT qty FROM inbox WHERE id = ?", (id,)).fetchone()
        if row and row[0] != qty:
            raise Conflict(id)
        if row:
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


class OneForAll:
    """Wrong: one connection for all threads, so that one's statements fall into another's transaction."""

    def __init__(self) -> None:
        self.db: sqlite3.Connection | None = None
        self.opening = threading.Lock()

    def connect(self, path: Path) -> sqlite3.Connection:
        with self.opening:
            if self.db is None:
                self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            return self.db

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        return receive(db, id, qty)


class Taken(OneForAll):
    """Right: whoever has the connection has it alone until the transaction has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = threading.Lock()

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        with self.turn:
            return receive(db, id, qty)


class OneEach:
    """Right: threads may use it, but each has its own."""

    def connect(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        return receive(db, id, qty)


class LockOfOneProcess:
    """Wrong: a lock of the process instead of a transaction; threads are kept apart, processes are not."""

    def __init__(self) -> None:
        self.turn = threading.Lock()

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        with self.turn:
            row = db.execute("SELECT qty FROM inbox WHERE id = ?", (id,)).fetchone()
            if row and row[0] != qty:
                raise Conflict(id)
            if row:
                return False
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            return True
