"""Wrong: OR IGNORE keeps the second row out without a word, and nobody asks whether a row went in.

Repair: work only if the insert's rowcount is 1, as in `upsert`.
"""

import sqlite3


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
