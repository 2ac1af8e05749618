"""Right, alone and after `immediate`: the new version asks its own table and the old one's.

It writes both as well, so that an old version which still runs knows what the new one did.
"""

import sqlite3

from oncebench.messages import Conflict
from oncebench.receivers.cases.moved_inbox import TABLE


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once."""
    both = "SELECT qty FROM received WHERE id = :id UNION ALL SELECT qty FROM inbox WHERE id = :id"
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(TABLE)
        row = db.execute(both, {"id": id}).fetchone()
        if row and row[0] != qty:
            raise Conflict(id)
        if row:
            return False
        db.execute("INSERT INTO received VALUES (?, ?)", (id, qty))
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
