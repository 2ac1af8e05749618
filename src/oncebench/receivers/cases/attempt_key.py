"""Wrong: the key is made for the attempt, as a request's own number is, and not taken from the message.

Each redelivery has a new key and works again, with nobody else there.
Repair: the publisher's id is the key, as in `immediate`.
"""

import sqlite3
import uuid

from oncebench.receivers import immediate


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    request = uuid.uuid4()
    return immediate.receive(db, f"{id} {request}", qty)
