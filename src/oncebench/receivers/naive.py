"""Wrong: check, then act. Look and work are not one transaction, and the unique key comes too late.

Two deliveries of one id can both pass the look before either has recorded it; both then work.
Repair: `immediate`.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    if seen(db, id, qty):
        return False
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
    return True
