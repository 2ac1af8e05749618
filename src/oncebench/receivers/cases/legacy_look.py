"""Wrong: under the driver's own transactions the look runs before the first INSERT begins one.

`with db:` only ends what has begun, so that look and work are not one transaction; as `naive`.
Repair: the write comes first, as in `legacy_write_first`, or BEGIN IMMEDIATE.
"""

import sqlite3
from pathlib import Path

from oncebench.receivers.inbox import seen


def connect(path: Path) -> sqlite3.Connection:
    """A connection as the driver makes it: it begins a transaction before an INSERT or UPDATE."""
    return sqlite3.connect(path)


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    with db:
        if seen(db, id, qty):
            return False
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
