"""Wrong: after a refusal the statement is tried again, in the transaction that was refused.

What this transaction has read is out of date, so SQLite refuses the write for as long as it is open.
Repair: ROLLBACK, and the whole transaction again, as in `transaction_again`.
"""

import contextlib
import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, or never come back."""
    with db:
        db.execute("BEGIN")
        if seen(db, id, qty):
            return False
        _insist(db, "INSERT INTO inbox VALUES (?, ?)", (id, qty))
        _insist(db, "UPDATE stock SET total = total + ?", (qty,))
        return True


def _insist(db: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> None:
    while True:
        with contextlib.suppress(sqlite3.OperationalError):
            db.execute(statement, values)
            return
