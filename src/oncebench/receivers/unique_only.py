"""Wrong: a unique key stops the second row, not the second effect, which was committed before it.

Each redelivery works again, even one that comes alone.
Repair: effect and row in one transaction, so that a refused row takes the effect with it,
as in `upsert`.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    try:
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
    except sqlite3.IntegrityError:
        seen(db, id, qty)  # raises Conflict if it is there with another quantity
        return False
    return True
