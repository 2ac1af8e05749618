"""One SQLite file: its schema, its settings, and how an independent connection reads it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from oncebench.messages import BadInput, State
from oncebench.stores import witness

Journal = Literal["wal", "delete"]
Synchronous = Literal["full", "normal", "off"]

APPLICATION_ID = 0x4F4E4345  # "ONCE", so that we know a file as ours: https://sqlite.org/pragma.html
SETUP_TIMEOUT = 30.0
"""Seconds to wait for a lock while a connection is set up: never a delivery, so never tallied."""
READ_TIMEOUT = 10.0
"""Seconds to wait for a lock when the store is read: nobody is in a call then, so nobody should hold one."""

SCHEMA = """
CREATE TABLE inbox(id TEXT PRIMARY KEY, qty INTEGER NOT NULL);
CREATE TABLE stock(total INTEGER NOT NULL CHECK (typeof(total) = 'integer'));
INSERT INTO stock VALUES (0);
"""  # past 2**63-1 SQLite's sum turns into a float; the check makes that an error

_SIDE = ("", "-journal", "-wal", "-shm")
_Connection = TypeVar("_Connection", bound=sqlite3.Connection)
_SYNCHRONOUS = {"off": 0, "normal": 1, "full": 2}


class Unreadable(Exception):
    """The store cannot be read, or fails its integrity check: no verdict can rest on it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How connections are opened.

    Attributes:
        journal: Journal mode.
        synchronous: When SQLite waits for the disk.
        busy_timeout: Seconds that SQLite's busy handler waits for a lock.
    """

    journal: Journal = "wal"
    synchronous: Synchronous = "full"
    busy_timeout: float = 5.0


def setup(path: Path, settings: Settings, *, watched: bool = True) -> None:
    """Make a new store, with a witness if it is to be watched.

    Raises:
        BadInput: The folder cannot be written, or the journal mode cannot be had there.
    """
    try:
        db = sqlite3.connect(path, isolation_level=None, timeout=SETUP_TIMEOUT)
        try:
            (mode,) = db.execute(f"PRAGMA journal_mode = {settings.journal}").fetchone()
            if mode != settings.journal:
                raise BadInput(
                    f"journal mode {settings.journal} cannot be had at {path} (SQLite answers {mode}): "
                    "choose another with --journal or another folder with --db"
                )
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.executescript(SCHEMA)
            if watched:
                witness.setup(db)
        finally:
            db.close()
    except sqlite3.Error as error:
        raise BadInput(
            f"cannot make a store at {path}: {error}: name a place that can be written with --db"
        ) from error


def refuse_foreign(path: Path) -> None:
    """Do nothing if the path is free or holds a store of ours, which may be made anew.

    Raises:
        BadInput: Something else is there.
    """
    if not path.parent.is_dir():
        raise BadInput(f"there is no folder {path.parent} for the store: make it, or name another with --db")
    if not path.exists():
        for left in (Path(f"{path}{suffix}") for suffix in _SIDE[1:]):
            if left.exists():
                raise BadInput(
                    f"{left} is there, and no {path.name}: move it away, or name another with --db"
                )
        return
    advice = "name a path that does not exist yet with --db"
    if not path.is_file():
        raise BadInput(f"{path} is not a file: {advice}")
    try:
        db = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True)
        try:
            (mark,) = db.execute("PRAGMA application_id").fetchone()
            tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        finally:
            db.close()
    except sqlite3.Error as error:
        raise BadInput(f"{path} exists and cannot be read as a database ({error}): {advice}") from error
    if mark != APPLICATION_ID:
        raise BadInput(f"{path} holds {tables} tables or indexes that oncebench did not make: {advice}")


def remove(path: Path) -> None:
    """Delete a store and the files SQLite keeps beside it."""
    for suffix in _SIDE:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


@overload
def connect(path: Path | str, settings: Settings) -> sqlite3.Connection: ...
@overload
def connect(path: Path | str, settings: Settings, factory: type[_Connection]) -> _Connection: ...
def connect(
    path: Path | str, settings: Settings, factory: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    """Open a connection in autocommit: transactions are explicit SQL."""
    db = sqlite3.connect(path, isolation_level=None, timeout=SETUP_TIMEOUT, factory=factory)
    db.execute(f"PRAGMA synchronous = {settings.synchronous}")
    set_busy_timeout(db, settings.busy_timeout)
    return db


def set_busy_timeout(db: sqlite3.Connection, seconds: float) -> None:
    """Change how long the busy handler waits."""
    db.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")


def effective(db: sqlite3.Connection) -> Settings:
    """Read back what a connection really runs with."""
    journal = _ask(db, "PRAGMA journal_mode")
    synchronous = _ask(db, "PRAGMA synchronous")
    milliseconds = _ask(db, "PRAGMA busy_timeout")
    name = {number: name for name, number in _SYNCHRONOUS.items()}.get(synchronous, str(synchronous))
    return Settings(journal, name, milliseconds / 1000)  # type: ignore[arg-type]


def file_of(db: sqlite3.Connection) -> str:
    """The file of its main database; empty if it is in memory."""
    return str(_ask(db, "PRAGMA database_list", column=2))


def _ask(db: sqlite3.Connection, pragma: str, column: int = 0) -> Any:
    """One value, whatever row and text factories the receiver gave its connection."""
    kept, db.text_factory = db.text_factory, str
    try:
        cursor = sqlite3.Connection.cursor(db)
        cursor.row_factory = None
        row = cursor.execute(pragma).fetchone()
        cursor.close()
        return row[column]
    finally:
        db.text_factory = kept


def read_state(path: Path, after: int = 0) -> State:
    """Read the store over a connection of its own, recovering what a crash left.

    Args:
        path: The store.
        after: Leave out what the witness saw up to this row.

    Raises:
        Unreadable: The file is corrupt, gone, kept locked, or no store.
    """
    if not path.exists():
        raise Unreadable(f"the store {path.name} is gone: somebody has removed or renamed it")
    try:
        db = sqlite3.connect(path, isolation_level=None, timeout=READ_TIMEOUT)
        try:
            db.execute("BEGIN")
            damage = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if damage != "ok":
                raise Unreadable(f"the store is corrupt: {damage.splitlines()[-1]}")
            totals = [total for (total,) in db.execute("SELECT total FROM stock")]
            inbox = [
                (id if isinstance(id, str) else repr(id), qty if isinstance(qty, int) else 0)
                for id, qty in db.execute("SELECT id, qty FROM inbox")
            ]
            return State(
                total=sum(total for total in totals if isinstance(total, int)),
                inbox=inbox,
                witness=witness.read(db, after),
            )
        finally:
            db.close()
    except sqlite3.Error as error:
        raise unreadable(error) from error


def unreadable(error: sqlite3.Error) -> Unreadable:
    """What it means that an independent connection cannot read the store while nobody is in a call."""
    why = str(error)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        why += (
            ", although no call is under way: somebody keeps it to himself, by a transaction that was left "
            "open or by PRAGMA locking_mode = EXCLUSIVE, and nobody else can work"
        )
    elif code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        why += ": the file was damaged while the receiver ran"
    elif why.startswith("no such "):
        why += (
            ": the receiver changed the schema that it was given; one with a schema of its own has a setup() "
            "and an observe()"
        )
    return Unreadable(f"the store cannot be read: {why}")


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path.absolute()))
