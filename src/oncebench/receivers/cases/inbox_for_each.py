"""Right: one inbox for several consumers, whose key is consumer and id.

What one of them has done says nothing about the other.
"""

import sqlite3
from pathlib import Path

from oncebench.messages import Conflict
from oncebench.receivers.cases import one_inbox
from oncebench.receivers.cases.one_inbox import connect, consumers, observe

__all__ = ["connect", "consumers", "observe", "receive", "setup"]


def setup(path: Path) -> None:
    """Make the inbox, and a total for each consumer."""
    one_inbox.setup(path, "consumer, id")


def receive(db: sqlite3.Connection, id: str, qty: int, consumer: str) -> bool:
    """Apply `(id, qty)` once for each consumer."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        known = "SELECT qty FROM inbox WHERE id = ? AND consumer = ?"
        row = db.execute(known, (id, consumer)).fetchone()
        if row and row[0] != qty:
            raise Conflict(id)
        if row:
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?, ?)", (id, consumer, qty))
        db.execute("UPDATE totals SET total = total + ? WHERE consumer = ?", (qty, consumer))
        return True
