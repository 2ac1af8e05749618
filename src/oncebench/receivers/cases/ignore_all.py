"""Wrong: OR IGNORE keeps silent about a NOT NULL or CHECK that failed, as it does about a duplicate.

A message without a shelf is answered as known, and is gone.
Repair: name the conflict that is meant, as in `ignore_known`.
"""

import sqlite3

from oncebench.receivers.inbox import seen

TABLE = "CREATE TABLE IF NOT EXISTS shelves(id TEXT PRIMARY KEY, shelf TEXT NOT NULL)"


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, or lose it."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(TABLE)
        shelf = id.partition("-")[2] or None
        if db.execute("INSERT OR IGNORE INTO shelves VALUES (?, ?)", (id, shelf)).rowcount == 0:
            seen(db, id, qty)
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
