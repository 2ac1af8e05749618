"""Right: as `immediate`, with a lock that in rollback mode keeps readers out as well.

In WAL mode EXCLUSIVE and IMMEDIATE are the same (https://sqlite.org/lang_transaction.html).
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once."""
    with db:
        db.execute("BEGIN EXCLUSIVE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
