"""Right: after a refusal the whole transaction starts again, the look included.

A few times only: then the refusal is the publisher's, who delivers again.
"""

import sqlite3

from oncebench.receivers import deferred

TRIES = 3


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once, or be refused."""
    for _ in range(TRIES - 1):
        try:
            return deferred.receive(db, id, qty)
        except sqlite3.OperationalError as refused:
            if refused.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
    return deferred.receive(db, id, qty)
