"""Right: the transaction's first statement is the insert, so the write lock comes before anything is read.

The effect follows only if a row really went in; the one transaction undoes both or neither.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once."""
    with db:
        db.execute("BEGIN")
        put = db.execute("INSERT INTO inbox VALUES (?, ?) ON CONFLICT DO NOTHING", (id, qty))
        if put.rowcount == 0:
            seen(db, id, qty)  # raises Conflict if it is there with another quantity
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
