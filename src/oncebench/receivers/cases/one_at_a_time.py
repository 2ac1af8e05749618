"""Right: threads share one connection, and whoever has it has it until its transaction has ended.

The lock is there for the connection; processes are kept apart by BEGIN IMMEDIATE.
"""

import sqlite3
import threading

from oncebench.receivers import immediate
from oncebench.receivers.cases.one_connection import OneConnection

_turn = threading.Lock()


class OneAtATime(OneConnection):
    """The same connection, with a lock around each delivery."""

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        """Apply `(id, qty)` once."""
        with _turn:
            return immediate.receive(db, id, qty)


receiver = OneAtATime()
