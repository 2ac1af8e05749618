"""Wrong: INSERT OR REPLACE lets a conflicting quantity overwrite the earlier work and be applied on top.

Repair: a known id with another quantity is a Conflict, as in `immediate`; keep what is there.
"""

import sqlite3


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if db.execute("SELECT 1 FROM inbox WHERE id = ? AND qty = ?", (id, qty)).fetchone():
            return False
        db.execute("INSERT OR REPLACE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
