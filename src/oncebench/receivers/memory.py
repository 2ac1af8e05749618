"""Wrong: what was seen is remembered in the process.

Another process, or the same one after a restart, has never heard of it and works again.
Repair: remember it in the store, in the transaction of the work, as in `immediate`.
"""

import sqlite3

from oncebench.messages import Conflict

_quantities: dict[str, int] = {}


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    if id in _quantities:
        if _quantities[id] != qty:
            raise Conflict(id)
        return False
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
    _quantities[id] = qty
    return True
