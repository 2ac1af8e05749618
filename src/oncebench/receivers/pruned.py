"""Wrong: only the newest messages are remembered, and what was forgotten is new again.

A redelivery that comes later than the window is long works again.
Repair: remember for longer than any publisher tries, or refuse what is too old, as `low_water` does.
"""

import sqlite3

from oncebench.receivers.inbox import seen
from oncebench.receivers.retention import observe, window

__all__ = ["observe", "receive"]
KEEP = 50


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        keep = window(db, KEEP)
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        db.execute("DELETE FROM inbox WHERE rowid <= (SELECT max(rowid) FROM inbox) - ?", (keep,))
        return True
