"""Wrong: `executescript` commits what is pending before it runs, so that the id is recorded alone.

If the script is refused or the process dies, the redelivery finds the id and the effect is lost.
Repair: one `execute` for each statement, as in `immediate`.
"""

import sqlite3

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always whole."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.executescript(f"UPDATE stock SET total = total + {qty};")
        return True
