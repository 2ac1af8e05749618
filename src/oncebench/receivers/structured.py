"""Right: beside the quantity a message carries a JSON payload, and the store remembers its fingerprint.

The same content in another order of names or another spelling of numbers is a duplicate; changed content, or
another version of its form, is a conflict. The fingerprint is compared under one id only: equal contents
under two ids are two orders.
"""

import hashlib
import sqlite3
from typing import Any

from oncebench.messages import Conflict
from oncebench.receivers.inbox import seen

_TABLE = "CREATE TABLE IF NOT EXISTS fingerprints(id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL)"


def receive(db: sqlite3.Connection, id: str, qty: int, fingerprint: str = "none") -> bool:
    """Apply `(id, qty)` once, and only with the content that came first."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(_TABLE)
        first = db.execute("SELECT fingerprint FROM fingerprints WHERE id = ?", (id,)).fetchone()
        if seen(db, id, qty):
            if first != (fingerprint,):
                raise Conflict(f"{id} was received with another payload")
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("INSERT INTO fingerprints VALUES (?, ?)", (id, fingerprint))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def receive_payload(db: sqlite3.Connection, id: str, qty: int, schema: int, payload: dict[str, Any]) -> bool:
    """The same for a message with a payload."""
    return receive(db, id, qty, fingerprint(schema, payload))


def fingerprint(schema: int, payload: dict[str, Any]) -> str:
    """What equal contents share: SHA-256 in hex of their canonical form, RFC 8785.

    Raises:
        ValueError: A number or a text in it has no canonical form.
    """
    import rfc8785  # only where a payload comes

    return hashlib.sha256(rfc8785.dumps([schema, payload])).hexdigest()
