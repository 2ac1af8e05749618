"""Right: under the driver's own transactions the INSERT comes first, and begins one.

Whether its row went in says whether the message is new; nothing was read before the lock was there.
"""

import sqlite3

from oncebench.receivers.cases.legacy_look import connect
from oncebench.receivers.inbox import seen

__all__ = ["connect", "receive"]


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once."""
    with db:
        if db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty)).rowcount == 0:
            seen(db, id, qty)  # raises Conflict if it is there with another quantity
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
