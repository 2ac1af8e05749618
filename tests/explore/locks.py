"""Receivers that keep each other out by a lock on a file: POSIX ones belong to a process, not to a thread."""

import contextlib
import fcntl
import os
import sqlite3
import struct
from collections.abc import Iterator
from fcntl import lockf
from pathlib import Path
from typing import BinaryIO

from oncebench.receivers.inbox import seen

_handles: dict[str, BinaryIO] = {}


def _look_and_work(db: sqlite3.Connection, id: str, qty: int) -> bool:
    return not seen(db, id, qty) and _work(db, id, qty)


def _work(db: sqlite3.Connection, id: str, qty: int) -> bool:
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
    return True


@contextlib.contextmanager
def _locked(db: sqlite3.Connection) -> Iterator[BinaryIO]:
    path = db.execute("PRAGMA database_list").fetchone()[2]
    with Path(f"{path}.lock").open("wb") as file:
        yield file


def by_record(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right."""
    with _locked(db) as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        return _look_and_work(db, id, qty)


def by_name(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right, by the name that was imported."""
    with _locked(db) as file:
        lockf(file, fcntl.LOCK_EX)
        return _look_and_work(db, id, qty)


def by_command(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right, by the system call as it is."""
    with _locked(db) as file:
        fcntl.fcntl(file, fcntl.F_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return _look_and_work(db, id, qty)


def by_one_handle(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right: flock() belongs to an open file, of which each process has one."""
    path = db.execute("PRAGMA database_list").fetchone()[2]
    if path not in _handles:
        _handles[path] = Path(f"{path}.lock").open("wb")  # noqa: SIM115 - for as long as the process lives
    file = _handles[path]
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        return _look_and_work(db, id, qty)
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def too_late(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: looks first, and locks then."""
    if seen(db, id, qty):
        return False
    with _locked(db) as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        return _work(db, id, qty)
