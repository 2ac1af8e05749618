"""Wrong on threads: they share one connection, and with it one transaction.

One's statements fall into another's BEGIN, and one's ROLLBACK undoes what another has answered for.
Repair: a connection for each thread, or one that is taken for a whole transaction, as in `one_at_a_time`.
"""

import sqlite3
import threading
from pathlib import Path

from oncebench.receivers.inbox import seen


class OneConnection:
    """What the tasks of one process share."""

    def __init__(self) -> None:
        self._open: dict[Path, sqlite3.Connection] = {}
        self._opening = threading.Lock()

    def connect(self, path: Path) -> sqlite3.Connection:
        """The process's one connection to that file."""
        with self._opening:
            if path not in self._open:
                self._open[path] = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            return self._open[path]

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        """Apply `(id, qty)` once, if nobody else is there."""
        with db:
            if not db.in_transaction:
                db.execute("BEGIN IMMEDIATE")
            if seen(db, id, qty):
                return False
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            return True


receiver = OneConnection()
