"""Receivers that cannot be explored, or only in part."""

import asyncio
import contextlib
import contextvars
import itertools
import os
import random
import sqlite3
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from oncebench.receivers import immediate
from oncebench.receivers.inbox import seen

_lock, _own_lock = threading.Lock(), threading.RLock()
_kept = threading.local()
_calls = itertools.count()


def loops(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Never runs a statement."""
    while True:
        qty += 1


def waits_for_ever(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """For what nobody ever brings about."""
    immediate.receive(db, id, qty)
    return threading.Event().wait()


def sleeps(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Sleeps for an hour between two statements."""
    seen(db, id, qty)
    time.sleep(3600)
    return immediate.receive(db, id, qty)


def sleeps_at_random(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Tries again after a refusal, and waits in between as many do, for a time of its own."""
    for _ in range(4):
        try:
            return immediate.receive(db, id, qty)
        except sqlite3.OperationalError:
            time.sleep(random.random())
    return immediate.receive(db, id, qty)


def locks_the_process(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """A lock of the process does not make a look and a work one transaction for others."""
    with _lock:
        return _work_that_needs_a_lock(db, id, qty)


def _work_that_needs_a_lock(db: sqlite3.Connection, id: str, qty: int) -> bool:
    if seen(db, id, qty):
        return False
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
    return True


def locks_the_thread(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """The same with a lock that a thread may take twice."""
    with _own_lock:
        return _work_that_needs_a_lock(db, id, qty)


def runs_a_loop(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right: the reference within an event loop."""

    async def work() -> bool:
        await asyncio.sleep(0)
        return immediate.receive(db, id, qty)

    return asyncio.run(work())


def keeps_a_connection_for_each_thread(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right, on threads: what a thread has opened, no other thread uses."""
    path = db.execute("PRAGMA database_list").fetchone()[2]
    if getattr(_kept, "path", "") != path:
        _kept.db, _kept.path = sqlite3.connect(path, isolation_level=None), path
    return immediate.receive(_kept.db, id, qty)


_first: list[sqlite3.Connection] = []


def keeps_its_first_connection(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right, in a process that has one store all its life."""
    if not _first:
        path = db.execute("PRAGMA database_list").fetchone()[2]
        _first.append(sqlite3.connect(path, isolation_level=None))
    return immediate.receive(_first[0], id, qty)


def forks(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right: the child ends at once."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return immediate.receive(db, id, qty)


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
        with contextlib.suppress(sqlite3.OperationalError):
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
        with contextlib.suppress(sqlite3.OperationalError):
            answers.append(immediate.receive(other, id, qty))
        other.close()

    thread = threading.Thread(target=lambda: context.run(work))
    thread.start()
    thread.join()
    return answers[0]


def works_on_two_threads(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Looks over two connections at once, again and again."""
    path = db.execute("PRAGMA database_list").fetchone()[2]

    def look() -> None:
        other = sqlite3.connect(path, isolation_level=None)
        for _ in range(100):
            seen(other, id, qty)
        other.close()

    thread = threading.Thread(target=look)
    thread.start()
    look()
    thread.join()
    return immediate.receive(db, id, qty)


def leaves_a_thread_behind(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Answers while a thread that it started looks into the store, and does not wait for it."""
    path = db.execute("PRAGMA database_list").fetchone()[2]
    answer = immediate.receive(db, id, qty)

    def look() -> None:
        other = sqlite3.connect(path, isolation_level=None)
        seen(other, id, qty)
        other.close()

    threading.Thread(target=look, daemon=True).start()
    return answer


class ThreadOfNobody:
    """Its statements run on a thread that was there before any worker."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._pool.submit(int).result()

    def connect(self, path: Path) -> Path:
        """Only where."""
        return path

    def receive(self, path: Path, id: str, qty: int) -> bool:
        """As the reference."""
        return self._pool.submit(self._work, path, id, qty).result()

    def _work(self, path: Path, id: str, qty: int) -> bool:
        other = sqlite3.connect(path, isolation_level=None)
        try:
            return immediate.receive(other, id, qty)
        finally:
            other.close()


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


class SharesAPool:
    """Connections go from one worker to the other between two calls, as those of an engine's pool do."""

    def __init__(self) -> None:
        self._free: list[sqlite3.Connection] = []
        self._path: Path | None = None

    def connect(self, path: Path) -> object:
        """Itself: a call takes a connection, and gives it back."""
        if self._path != path:
            self._free, self._path = [], path
        return self

    def close(self, _: object) -> None:
        """The pool outlives its users."""

    def receive(self, _: object, id: str, qty: int) -> bool:
        """As the reference, after a look that needs no transaction."""
        taken = self._free.pop() if self._free else self._new()
        try:
            return seen(taken, id, qty) is False and self.work(taken, id, qty)
        finally:
            if taken.in_transaction:
                taken.execute("ROLLBACK")
            self._free.append(taken)

    def work(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        """Looks again."""
        return immediate.receive(db, id, qty)

    def _new(self) -> sqlite3.Connection:
        assert self._path is not None
        return sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)


class SharesAPoolAndDoesNotLookAgain(SharesAPool):
    """The same with a fault."""

    def work(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        """What the look said may be old."""
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


class SharesAConnection:
    """Both workers use one connection: one's statements fall into the other's transaction."""

    def __init__(self) -> None:
        self._db: sqlite3.Connection | None = None
        self._path: Path | None = None

    def connect(self, path: Path) -> sqlite3.Connection:
        """One for all."""
        if self._db is None or self._path != path:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._path = path
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
