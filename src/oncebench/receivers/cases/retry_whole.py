"""Right: the same wrapper around a receiver whose every try is one transaction.

A second try finds all that the first one did, or nothing.
"""

import sqlite3

from oncebench.receivers import immediate
from oncebench.receivers.cases.retry_outside import patient


@patient
def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once."""
    return immediate.receive(db, id, qty)
