"""Receivers that do not answer as they should; targets for `tests/misbehaving.py:NAME`."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time

from oncebench.receivers import immediate
from oncebench.receivers.inbox import seen


def sleeps_for_ever_on_one_id(db: sqlite3.Connection, id: str, qty: int) -> bool:
    if id == "same-2":
        time.sleep(10_000)
    return immediate.receive(db, id, qty)


def never_answers(db: sqlite3.Connection, id: str, qty: int) -> bool:
    while True:
        time.sleep(1)


def sleeps_a_little(db: sqlite3.Connection, id: str, qty: int) -> bool:
    time.sleep(0.01)
    return immediate.receive(db, id, qty)


def raises(db: sqlite3.Connection, id: str, qty: int) -> bool:
    raise ValueError(f"cannot take {id}")


def raises_after_the_commit(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right, if seldom answered: what it did is done, and a redelivery is told so."""
    if immediate.receive(db, id, qty):
        raise RuntimeError("the metrics server is down")
    return False


def returns_none(db: sqlite3.Connection, id: str, qty: int) -> None:
    immediate.receive(db, id, qty)


def returns_one(db: sqlite3.Connection, id: str, qty: int) -> int:
    return int(immediate.receive(db, id, qty))


def exits(db: sqlite3.Connection, id: str, qty: int) -> bool:
    sys.exit(3)


def is_interrupted(db: sqlite3.Connection, id: str, qty: int) -> bool:
    raise KeyboardInterrupt


def kills_itself_once(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Worker 1 of 4 gets `same-3` as all others do; whoever first makes the mark dies after its commit."""
    answer = immediate.receive(db, id, qty)
    if id == "same-3":
        file = db.execute("PRAGMA database_list").fetchone()[2]
        try:
            os.close(os.open(f"{file}-mark", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return answer
        os.kill(os.getpid(), signal.SIGKILL)
    return answer


def starts_a_child(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Leaves a process behind that would outlive the bench."""
    if id == "same-1":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10_000)  # oncebench-orphan"])
    return immediate.receive(db, id, qty)


def prints_megabytes(db: sqlite3.Connection, id: str, qty: int) -> bool:
    print("x" * 100_000)
    print("x" * 100_000, file=sys.stderr)
    return immediate.receive(db, id, qty)


def leaves_open_on_conflict(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """An early raise between BEGIN and COMMIT."""
    db.execute("BEGIN IMMEDIATE")
    if seen(db, id, qty):
        db.execute("COMMIT")
        return False
    db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    db.execute("COMMIT")
    return True


def ignores_a_refused_commit(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """In rollback mode a reader makes COMMIT fail; the transaction stays open."""
    db.execute("BEGIN IMMEDIATE")
    try:
        new = not seen(db, id, qty)
        if new:
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
    except BaseException:
        db.execute("ROLLBACK")
        raise
    with contextlib.suppress(sqlite3.OperationalError):
        db.execute("COMMIT")
    return new


class Unspeakable(Exception):
    """Cannot say its message, nor whether it has a cause."""

    def __str__(self) -> str:
        raise RuntimeError

    def __bool__(self) -> bool:
        raise RuntimeError


def raises_the_unspeakable(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Once for each id; the message has half a surrogate."""
    if immediate.receive(db, id, qty):
        raise Unspeakable
    raise ValueError("bad \udcff name \x1b[31m")


def forks_with_a_connection(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """SQLite forbids to carry a connection over a fork."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return immediate.receive(db, id, qty)


def floating(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Quantities pass through floating point, as in a language that has nothing else."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if db.execute("SELECT 1 FROM inbox WHERE id = ?", (id,)).fetchone():
            return False
        rounded = min(int(float(qty)), 2**63 - 1024)
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (rounded,))
        return True


def small(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right within its bounds."""
    if qty > 1_000_000:
        raise ValueError(f"{qty} of anything")
    return immediate.receive(db, id, qty)


def smaller(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Its bounds are too narrow for the usual quantities."""
    if qty > 50:
        raise ValueError(f"{qty} of anything")
    return immediate.receive(db, id, qty)


_calls = 0


def stalls_once_for_half_a_second(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """In each worker, at its fifth delivery of `spread`, after its commit."""
    global _calls
    answer = immediate.receive(db, id, qty)
    _calls += id.startswith("spread")
    if _calls == 5:
        time.sleep(0.5)
    return answer
