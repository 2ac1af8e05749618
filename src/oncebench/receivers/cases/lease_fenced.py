"""Right: who comes to the end of the work asks, in its transaction, whether the claim is still its own.

A claim that ran out and went to another is a refusal; the redelivery will find what the other did.
"""

import sqlite3
import time

from oncebench.receivers.cases.lease import WORK, TakenByAnother, claim
from oncebench.receivers.inbox import seen


def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)` once, or leave it to whoever has the claim."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        mine = claim(db, id)
    time.sleep(WORK)
    with db:
        db.execute("BEGIN IMMEDIATE")
        if db.execute("SELECT until FROM leases WHERE id = ?", (id,)).fetchone() != (mine,):
            raise TakenByAnother(id)
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
