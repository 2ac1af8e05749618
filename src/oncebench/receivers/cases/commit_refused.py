"""Wrong: a COMMIT that is refused leaves its transaction open, and the next delivery joins it.

In rollback mode any reader can refuse it; what was answered is then on nobody's disk.
Repair: ROLLBACK, and let the refusal out, as in `commit_checked`.
"""

import contextlib
import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always for good."""
    if not db.in_transaction:
        db.execute("BEGIN IMMEDIATE")
    try:
        new = not seen(db, id, qty)
        if new:
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
    except BaseException:
        db.execute("ROLLBACK")
        raise
    with contextlib.suppress(sqlite3.OperationalError):  # "the next one will write it"
        db.execute("COMMIT")
    return new
