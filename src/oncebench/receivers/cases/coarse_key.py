"""Wrong: the key is tidied up, so that ids which differ in case, spaces or Unicode form are one.

The second of two orders is taken for a redelivery of the first, acknowledged, and never done.
Repair: the id as it came, byte for byte, as in `immediate`.
"""

import sqlite3
import unicodedata

from oncebench.receivers import immediate


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, or take it for another."""
    tidy = unicodedata.normalize("NFKC", id).strip().casefold()
    return immediate.receive(db, tidy, qty)
