"""Wrong: answers first and commits when the next delivery comes, to save a wait for the disk.

What was acknowledged is not durable; a crash, or a pool that rolls back, loses it.
Repair: COMMIT, then answer, as in `immediate`.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    if db.in_transaction:
        db.execute("COMMIT")
    db.execute("BEGIN IMMEDIATE")
    if seen(db, id, qty):
        return False
    db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    return True
