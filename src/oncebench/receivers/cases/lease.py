"""Wrong: the claim on a message runs out while its owner still works, and the next one works as well.

Nothing stops the first when it comes to its end: both effects are committed.
Repair: the last transaction asks whether the claim is still the worker's own, as in `lease_fenced`.
"""

import sqlite3
import time

from oncebench.receivers.inbox import seen

LEASE, WORK = 0.001, 0.003  # seconds


class TakenByAnother(Exception):
    """Somebody works on it, and may come to its end."""


def claim(db: sqlite3.Connection, id: str) -> float:
    """Until when the message is this worker's, in seconds of the clock; inside the caller's transaction."""
    db.execute("CREATE TABLE IF NOT EXISTS leases(id TEXT PRIMARY KEY, until REAL NOT NULL)")
    now = time.time()
    row = db.execute("SELECT until FROM leases WHERE id = ?", (id,)).fetchone()
    if row is not None and row[0] > now:
        raise TakenByAnother(id)
    db.execute("INSERT OR REPLACE INTO leases VALUES (?, ?)", (id, now + LEASE))
    return now + LEASE


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        claim(db, id)
    time.sleep(WORK)
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
