"""Wrong: the id is recorded in a commit of its own, the work follows.

If the work is refused or the process dies in between, the redelivery finds the id and the effect is lost.
Repair: both in one transaction, as in `upsert`.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    put = db.execute("INSERT INTO inbox VALUES (?, ?) ON CONFLICT DO NOTHING", (id, qty))
    if put.rowcount == 0:
        seen(db, id, qty)  # raises Conflict if it is there with another quantity
        return False
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    return True
