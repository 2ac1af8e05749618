"""Right: old messages are forgotten but for one number, the low-water mark, and what lies below is refused.

It needs ids that end in a number which their publisher counts up (`order-12`; each stem is a stream of its
own), and a publisher that is never further behind than the window: what is refused waits for a person, since
nobody can tell any more whether it was done. Messages without a number are never forgotten.
"""

import re
import sqlite3

from oncebench.receivers.inbox import seen
from oncebench.receivers.retention import observe, window

__all__ = ["observe", "receive"]
KEEP = 10_000
_NUMBERED = re.compile(r"(.*)-([0-9]{1,18})", re.DOTALL)
_TABLES = (
    "CREATE TABLE IF NOT EXISTS marks(stream TEXT PRIMARY KEY, mark INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS kept(stream TEXT, number INTEGER, id TEXT, PRIMARY KEY(stream, number, id))",
)


class TooOld(Exception):
    """Below the mark: it may have been done or not."""


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once, or refuse it as too old."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        mark = _Mark(db, id)
        if seen(db, id, qty):
            return False
        mark.refuse_older()
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        mark.raise_and_forget()
        return True


class _Mark:
    """The low-water mark of a message's stream, inside the caller's transaction."""

    def __init__(self, db: sqlite3.Connection, id: str) -> None:
        self._db, self._id = db, id
        self._keep = window(db, KEEP)
        for table in _TABLES:
            db.execute(table)
        numbered = _NUMBERED.fullmatch(id)
        self._stream = numbered[1] if numbered else None
        self._number = int(numbered[2]) if numbered else 0
        row = db.execute("SELECT mark FROM marks WHERE stream = ?", (self._stream,)).fetchone()
        self._mark = -1 if row is None else int(row[0])

    def refuse_older(self) -> None:
        if self._stream is not None and self._number <= self._mark:
            raise TooOld(f"{self._id} is not above the low-water mark {self._mark}")

    def raise_and_forget(self) -> None:
        if self._stream is None:
            return
        mark = max(self._mark, self._number - self._keep)
        old = "FROM kept WHERE stream = ? AND number <= ?"
        self._db.execute("INSERT INTO kept VALUES (?, ?, ?)", (self._stream, self._number, self._id))
        self._db.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (self._stream, mark))
        self._db.execute(f"DELETE FROM inbox WHERE id IN (SELECT id {old})", (self._stream, mark))
        self._db.execute(f"DELETE {old}", (self._stream, mark))
