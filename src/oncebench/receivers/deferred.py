"""Right but costly: a plain BEGIN reads first and asks for the write lock later.

If another worker wrote in between, SQLite refuses the upgrade at once, whatever the busy timeout, since
waiting could never help (https://sqlite.org/rescode.html#busy_snapshot). Sound, at the price of lock errors;
`immediate` waits instead.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once, or be refused."""
    with db:
        db.execute("BEGIN")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
