"""Receivers in each of which one rule of the audit alone finds the fault; targets for `one_rule.py:NAME`.

`bench/mutating.py` shows it: without that rule they pass.
"""

import contextlib
import os
import sqlite3
import time
from pathlib import Path

from oncebench import Conflict, State
from oncebench.receivers import immediate


def takes_any_quantity(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """A known id is a duplicate, whatever its quantity."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if db.execute("SELECT 1 FROM inbox WHERE id = ?", (id,)).fetchone():
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def calls_duplicates_conflicts(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """A known id is a conflict, whatever its quantity."""
    if immediate.receive(db, id, qty):
        return True
    raise Conflict(id)


def knows_everything(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Acknowledges what it has never seen, and does nothing."""
    db.execute("SELECT qty FROM inbox WHERE id = ?", (id,)).fetchone()
    return False


def refuses_everything(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """A conflict with nothing."""
    db.execute("SELECT qty FROM inbox WHERE id = ?", (id,)).fetchone()
    raise Conflict(id)


def says_applied_each_time(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """It applies once, and says so twice."""
    immediate.receive(db, id, qty)
    return True


def forgets_what_was_there(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Rows from before the race are gone."""
    db.execute("DELETE FROM inbox WHERE id LIKE 'warm-up%' AND ? NOT LIKE 'warm-up%'", (id,))
    return immediate.receive(db, id, qty)


def rewrites_on_conflict(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """It says conflict, and yet the later quantity takes the place of the first in inbox and stock."""
    try:
        return immediate.receive(db, id, qty)
    except Conflict:
        with db:
            db.execute("BEGIN IMMEDIATE")
            (old,) = db.execute("SELECT qty FROM inbox WHERE id = ?", (id,)).fetchone()
            db.execute("UPDATE inbox SET qty = ? WHERE id = ?", (qty, id))
            db.execute("UPDATE stock SET total = total + ?", (qty - old,))
        raise


def records_last(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Duplicates are told so after the work was done, but before the inbox has the row."""
    db.execute("CREATE TABLE IF NOT EXISTS started(id TEXT PRIMARY KEY, qty INTEGER NOT NULL)")
    with db:
        db.execute("BEGIN IMMEDIATE")
        row = db.execute("SELECT qty FROM started WHERE id = ?", (id,)).fetchone()
        if row is not None and row[0] != qty:
            raise Conflict(id)
        if row is not None:
            return False
        db.execute("INSERT INTO started VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
    while True:
        with contextlib.suppress(sqlite3.OperationalError):
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            return True


def hangs_once(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """One call does not come back; the redelivery is answered."""
    if id == "same-2":
        file = db.execute("PRAGMA database_list").fetchone()[2]
        with contextlib.suppress(FileExistsError):
            os.close(os.open(f"{file}-mark", os.O_CREAT | os.O_EXCL))
            time.sleep(10_000)
    return immediate.receive(db, id, qty)


class Book:
    """Right: a schema of its own, which no witness watches."""

    schema = (
        "CREATE TABLE done(id TEXT, qty INTEGER NOT NULL); CREATE TABLE stock(total INTEGER NOT NULL);"
        "CREATE TABLE visits(id TEXT PRIMARY KEY, qty INTEGER NOT NULL);"
        "INSERT INTO stock VALUES (0)"
    )

    def setup(self, path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(self.schema)

    def connect(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=5, isolation_level=None)

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        with db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute("SELECT qty FROM done WHERE id = ?", (id,)).fetchone()
            if row is not None and row[0] != qty:
                raise Conflict(id)
            if row is not None:
                self.again(db, qty)
                return False
            self.first(db, id, qty)
            return True

    def first(self, db: sqlite3.Connection, id: str, qty: int) -> None:
        db.execute("INSERT INTO done VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))

    def again(self, db: sqlite3.Connection, qty: int) -> None:
        """Nothing to do."""

    def observe(self, path: Path) -> State:
        with contextlib.closing(sqlite3.connect(path)) as db:
            (total,) = db.execute("SELECT total FROM stock").fetchone()
            return State(total, db.execute("SELECT id, qty FROM done").fetchall())


class WritesTwice(Book):
    """Two rows for one effect."""

    def first(self, db: sqlite3.Connection, id: str, qty: int) -> None:
        super().first(db, id, qty)
        db.execute("INSERT INTO done VALUES (?, ?)", (id, qty))


class GivesOneMore(Book):
    """It delivers something of its own to itself."""

    def first(self, db: sqlite3.Connection, id: str, qty: int) -> None:
        super().first(db, id, qty)
        super().first(db, f"bonus of {id}", 1)


class AddsAgain(Book):
    """It says duplicate, and adds all the same."""

    def again(self, db: sqlite3.Connection, qty: int) -> None:
        db.execute("UPDATE stock SET total = total + ?", (qty,))


class AnswersFirst(Book):
    """The first delivery is answered as a duplicate; the second does the work."""

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        row = db.execute("SELECT qty FROM visits WHERE id = ?", (id,)).fetchone()
        if row is None:
            db.execute("INSERT INTO visits VALUES (?, ?)", (id, qty))
            return False
        if row[0] != qty:
            raise Conflict(id)
        return super().receive(db, id, qty)
