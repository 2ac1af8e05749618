"""Wrong: the quantity is a part of the key, so that a message which comes with another one is new.

What should be a conflict is applied on top of the earlier work.
Repair: the id alone is the key, and the quantity is compared, as in `immediate`.
"""

import sqlite3

TABLE = "CREATE TABLE IF NOT EXISTS handled(id TEXT, qty INTEGER, PRIMARY KEY (id, qty))"


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(TABLE)
        if db.execute("INSERT OR IGNORE INTO handled VALUES (?, ?)", (id, qty)).rowcount == 0:
            return False
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
