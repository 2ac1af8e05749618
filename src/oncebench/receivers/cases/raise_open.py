"""Wrong: a conflict is raised between BEGIN and COMMIT, and nobody ends the transaction.

The connection goes back to its pool with the write lock; all others wait, "locked" for ever.
Repair: `with db:`, as in `immediate`, or ROLLBACK in an `except`.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once, but keep the lock after a conflict."""
    db.execute("BEGIN IMMEDIATE")
    new = not seen(db, id, qty)
    if new:
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
    db.execute("COMMIT")
    return new
