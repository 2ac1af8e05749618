"""Wrong receivers that are none of the cases; each says what goes wrong."""

import contextlib
import sqlite3

from oncebench.messages import Conflict
from oncebench.receivers import immediate
from oncebench.receivers.inbox import seen


def undoes_in_finally(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Rolls back after a duplicate and forgets to commit what was new: the next delivery's BEGIN tells."""
    with contextlib.suppress(sqlite3.OperationalError):
        db.execute("BEGIN IMMEDIATE")
    if seen(db, id, qty):
        db.execute("ROLLBACK")
        return False
    db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    return True


def compensates(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Works first, and takes it back if the id was known: in between the total is wrong, and may stay so."""
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    try:
        known = seen(db, id, qty)
    except Conflict:
        db.execute("UPDATE stock SET total = total - ?", (qty,))
        raise
    if known:
        db.execute("UPDATE stock SET total = total - ?", (qty,))
        return False
    db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
    return True


def commits_in_the_middle(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """A helper commits, as helpers do; the rest of the work is a transaction of its own."""
    db.execute("BEGIN IMMEDIATE")
    try:
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.commit()
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
    finally:
        db.rollback()


def conflict_is_a_duplicate(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Another quantity is acknowledged as if it were the same."""
    try:
        return immediate.receive(db, id, qty)
    except Conflict:
        return False


def always_new(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right work, wrong answer: a duplicate is told as new."""
    immediate.receive(db, id, qty)
    return True


def counts_messages(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """The total moves by one for each message."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + 1")
        return True


def remembers_the_last(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Only the newest message is compared."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        row = db.execute("SELECT id, qty FROM inbox ORDER BY rowid DESC LIMIT 1").fetchone()
        if row == (id, qty):
            return False
        db.execute("INSERT OR REPLACE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def uses_like(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """LIKE knows no case, and takes _ and % for anything."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        row = db.execute("SELECT qty FROM inbox WHERE id LIKE ?", (id,)).fetchone()
        if row and row[0] != qty:
            raise Conflict(id)
        if row:
            return False
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def by_quantity(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Equal contents are taken for the same message."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if db.execute("SELECT 1 FROM inbox WHERE qty = ?", (qty,)).fetchone():
            return False
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def asks_rowcount_of_a_select(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """It is -1, which is true: everything is known."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if db.execute("SELECT 1 FROM inbox WHERE id = ?", (id,)).rowcount:
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
