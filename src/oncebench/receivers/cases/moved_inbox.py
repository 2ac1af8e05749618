"""Right alone, wrong after `immediate`: this version remembers in a new table, and does not ask the old one.

In a rolling deploy what the old version has done is redelivered to the new one, which does it again.
Repair: ask both tables for as long as the old version's messages may come, as in `moved_and_asked`.
"""

import sqlite3

from oncebench.messages import Conflict

TABLE = "CREATE TABLE IF NOT EXISTS received(id TEXT PRIMARY KEY, qty INTEGER NOT NULL)"


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once, if no older version has."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(TABLE)
        row = db.execute("SELECT qty FROM received WHERE id = ?", (id,)).fetchone()
        if row and row[0] != qty:
            raise Conflict(id)
        if row:
            return False
        db.execute("INSERT INTO received VALUES (?, ?)", (id, qty))
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))  # for older versions
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
