"""Right: the checksum is of what SQLite reads, over the connection that holds the lock.

Nobody opens the store's files but SQLite.
"""

import sqlite3
import zlib

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        zlib.crc32(db.serialize())
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
