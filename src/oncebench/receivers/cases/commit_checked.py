"""Right: a COMMIT that is refused is a failure like any other, and ends in ROLLBACK.

It is what `with db:` does; here it is written out.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once."""
    db.execute("BEGIN IMMEDIATE")
    try:
        new = not seen(db, id, qty)
        if new:
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # not if BEGIN was refused, nor if SQLite has rolled back itself
            db.execute("ROLLBACK")
        raise
    return new
