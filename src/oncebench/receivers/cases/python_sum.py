"""Wrong: the total is read before the transaction, added to in Python, and written inside.

Two deliveries of different messages both read 100, and one of their effects is overwritten.
Repair: SQL adds, `total = total + ?`, as in `immediate`; or read after BEGIN IMMEDIATE.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always to the total there is."""
    (total,) = db.execute("SELECT total FROM stock").fetchone()
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = ?", (total + qty,))
        return True
