"""Wrong: `lastrowid` is asked whether a row went in, and after an ignored INSERT it is an earlier one's.

On a new connection it is 0, and the test with one message passes; on one that is used again it is not.
Repair: the statement's own `rowcount`, as in `upsert`.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty)).lastrowid:
            seen(db, id, qty)
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
