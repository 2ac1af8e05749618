"""Receivers that cannot be explored, or only in part."""

import contextvars
import itertools
import random
import sqlite3
import threading
import time
import uuid
from pathlib import Path

from oncebench.receivers import immediate
from oncebench.receivers.inbox import seen

_lock = threading.Lock()
_calls = itertools.count()


def loops(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Never runs a statement."""
    while True:
        qty += 1


def sleeps(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Sleeps for an hour between two statements."""
    seen(db, id, qty)
    time.sleep(3600)
    return immediate.receive(db, id, qty)


def locks_the_process(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """A lock of the process does not make a look and a work one transaction for others."""
    with _lock:
        if seen(db, id, qty):
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        return True


def retries_the_statement(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """After a refused upgrade the same statement is tried again and again; it can never succeed."""
    db.execute("BEGIN")
    known = seen(db, id, qty)
    while not known:
        try:
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            break
        except sqlite3.OperationalError:
            continue
    if not known:
        db.execute("UPDATE stock SET total = total + ?", (qty,))
    db.execute("COMMIT")
    return not known


def spins_until_free(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right: tries the whole transaction again for as long as it is refused."""
    while True:
        try:
            return immediate.receive(db, id, qty)
        except sqlite3.OperationalError:
            continue


def starts_a_thread(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Runs its statements on a thread of its own, over a connection of its own."""
    path = db.execute("PRAGMA database_list").fetchone()[2]
    answers: list[bool] = []

    def work() -> None:
        other = sqlite3.connect(path, isolation_level=None)
        answers.append(immediate.receive(other, id, qty))
        other.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return answers[0]


def starts_a_thread_in_its_context(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """The same in a copy of the caller's context, as `asyncio.to_thread` has it."""
    context = contextvars.copy_context()
    path = db.execute("PRAGMA database_list").fetchone()[2]
    answers: list[bool] = []

    def work() -> None:
        other = sqlite3.connect(path, isolation_level=None)
        answers.append(immediate.receive(other, id, qty))
        other.close()

    thread = threading.Thread(target=lambda: context.run(work))
    thread.start()
    thread.join()
    return answers[0]


def opens_another(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Keeps the ids in a database of their own."""
    path = Path(db.execute("PRAGMA database_list").fetchone()[2]).with_name("ids.db")
    other = sqlite3.connect(path)
    other.close()
    return immediate.receive(db, id, qty)


def attaches_another(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """The same by ATTACH."""
    db.execute("ATTACH ':memory:' AS ids")
    return immediate.receive(db, id, qty)


def tosses_a_coin(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Runs a statement more now and then."""
    if next(_calls) % 3 == 0:
        db.execute("SELECT 1").fetchone()
    return immediate.receive(db, id, qty)


def key_of_the_attempt(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong, and with a random parameter: each delivery looks new."""
    return immediate.receive(db, f"{id}-{uuid.uuid4()}", qty)


def notes_a_random_number(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right, and with a random parameter that decides nothing."""
    db.execute("SELECT ?", (random.random(),)).fetchone()
    return immediate.receive(db, id, qty)


class BypassesConnect:
    """Its connection was not made by `sqlite3.connect`."""

    def connect(self, path: Path) -> sqlite3.Connection:
        """By the class itself."""
        return sqlite3.Connection(path, isolation_level=None)

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        """As the reference."""
        return immediate.receive(db, id, qty)


class SharesAConnection:
    """Both workers use one connection: one's statements fall into the other's transaction."""

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None
        self._path: Path | None = None

    def connect(self, path: Path) -> sqlite3.Connection:
        """One for all."""
        if self._db is None or self._path != path:
            self._db, self._path = sqlite3.connect(path, isolation_level=None), path
        return self._db

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        """As the reference, but for a transaction that another began."""
        began = not db.in_transaction
        if began:
            db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        if began:
            db.execute("COMMIT")
        return True
