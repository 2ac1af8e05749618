"""Wrong: the store's files are opened and closed beside SQLite, here for a checksum before each write.

POSIX drops all locks of a process on a file as soon as it closes any descriptor of it, so that others write
into the same transaction (https://sqlite.org/howtocorrupt.html). Repair: read through SQLite, as in
`read_through`, or in another process.
"""

import sqlite3
import zlib
from pathlib import Path

from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, and lose the lock under which it is done."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        store = db.execute("PRAGMA database_list").fetchone()[2]
        for file in Path(store).parent.glob(f"{Path(store).name}*"):
            zlib.crc32(file.read_bytes())
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
