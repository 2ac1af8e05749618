"""Right: only the conflict on the id means "known"; any other constraint that fails is an error.

So nothing is silently let go, and what has no shelf comes to the one that the code names.
"""

import sqlite3

from oncebench.receivers.cases.ignore_all import TABLE
from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(TABLE)
        put = "INSERT INTO shelves VALUES (?, ?) ON CONFLICT (id) DO NOTHING"
        if db.execute(put, (id, id.partition("-")[2] or "floor")).rowcount == 0:
            seen(db, id, qty)  # raises Conflict if it is there with another quantity
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
