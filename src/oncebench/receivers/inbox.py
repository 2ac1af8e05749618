"""The look into the inbox that the variants share."""

import sqlite3

from oncebench.messages import Conflict


def seen(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Whether the message is in the inbox.

    Raises:
        Conflict: It is there with another quantity.
    """
    row = db.execute("SELECT qty FROM inbox WHERE id = ?", (id,)).fetchone()
    if row is not None and row[0] != qty:
        raise Conflict(f"{id} was received with quantity {row[0]}, now comes with {qty}")
    return row is not None
