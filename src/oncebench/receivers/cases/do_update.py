"""Wrong: DO UPDATE lets a conflicting quantity overwrite the inbox, counts it as a row, and adds it.

Its WHERE keeps equal quantities out, so that plain redeliveries pass every test.
Repair: DO NOTHING, and compare what is there, as in `upsert`.
"""

import sqlite3


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    put = "INSERT INTO inbox VALUES (?, ?) ON CONFLICT DO UPDATE SET qty = excluded.qty"
    with db:
        db.execute("BEGIN IMMEDIATE")
        if db.execute(f"{put} WHERE qty != excluded.qty", (id, qty)).rowcount == 0:
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
