"""Wrong: the work is committed, under a proper lock, and the id recorded in a commit of its own.

A redelivery that comes in between, or after a death in between, works again.
Repair: record before the COMMIT, as in `immediate`.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
    db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
    return True
