"""Wrong: the key's column is a NUMERIC, in which '7', '07', '7.0' and '7e0' are one number.

The second of two orders is taken for a redelivery of the first, acknowledged, and never done.
Repair: a TEXT column, as in `immediate`, or BLOB.
"""

import sqlite3

from oncebench.messages import Conflict

TABLE = "CREATE TABLE IF NOT EXISTS orders(number NUMERIC PRIMARY KEY, qty INTEGER NOT NULL)"


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, or take it for another."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(TABLE)
        if db.execute("INSERT OR IGNORE INTO orders VALUES (?, ?)", (id, qty)).rowcount == 0:
            if db.execute("SELECT qty FROM orders WHERE number = ?", (id,)).fetchone() != (qty,):
                raise Conflict(id)
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
