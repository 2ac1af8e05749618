"""Right, the reference: look, record and work in one transaction that holds the write lock from the start.

BEGIN IMMEDIATE waits for the lock before anything is read, so what was seen is still true when it is used.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once."""
    with db:  # COMMIT at the end; ROLLBACK on any exception, a refused COMMIT included
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
