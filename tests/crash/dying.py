"""Receivers that differ only in what a death leaves behind; targets for `tests/crash/dying.py:NAME`."""

import contextlib
import json
import signal
import sqlite3
from pathlib import Path
from types import FrameType
from typing import Any, cast

from oncebench import Conflict, State
from oncebench.receivers import immediate
from oncebench.receivers.group import Group
from oncebench.receivers.inbox import seen


class Claims:
    """Right: claim, work and mark are one transaction; a claim without its work is never seen."""

    together = True

    def setup(self, path: Path) -> None:
        db = sqlite3.connect(path)
        db.executescript(
            "CREATE TABLE claims(id TEXT PRIMARY KEY, qty INTEGER, done INTEGER, total INTEGER);"
        )
        db.close()

    def connect(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=5, isolation_level=None)

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        if self.together:
            db.execute("BEGIN IMMEDIATE")
        with db:
            row = db.execute("SELECT qty, done FROM claims WHERE id = ?", (id,)).fetchone()
            if row is not None:
                if row[0] != qty:
                    raise Conflict(id)
                if not row[1]:
                    raise RuntimeError("somebody is at it")
                return False
            db.execute("INSERT INTO claims VALUES (?, ?, 0, 0)", (id, qty))
            db.execute("UPDATE claims SET total = total + ? WHERE id = ?", (qty, id))
            db.execute("UPDATE claims SET done = 1 WHERE id = ?", (id,))
            return True

    def observe(self, path: Path) -> State:
        db = sqlite3.connect(path)
        try:
            rows = db.execute("SELECT id, qty FROM claims WHERE total > 0").fetchall()
            (total,) = db.execute("SELECT coalesce(sum(total), 0) FROM claims").fetchone()
        finally:
            db.close()
        return State(total, rows)


class ClaimsApart(Claims):
    """Wrong: each of the three is a commit; a claim that outlives its owner answers nobody ever again."""

    together = False


def commits_whatever_happens(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong under SIGTERM alone: what SystemExit interrupts is committed half done."""
    db.execute("BEGIN IMMEDIATE")
    try:
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
    finally:
        db.execute("COMMIT")


def answers_whatever_happens(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong under SIGTERM alone: the transaction is rolled back, and True is the answer."""
    try:
        return immediate.receive(db, id, qty)
    except Conflict:
        raise
    except BaseException:
        return True


class Polite:
    """Right: on SIGTERM it comes to the end of the call, and answers."""

    def connect(self, path: Path) -> sqlite3.Connection:
        signal.signal(signal.SIGTERM, self.note)
        return sqlite3.connect(path, timeout=5, isolation_level=None)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Nothing more comes after this call."""

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        return immediate.receive(db, id, qty)


class Impolite(Polite):
    """Wrong under SIGTERM alone: once it was asked to stop, it acknowledges what it does not do."""

    stopping = False

    def note(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        return False if self.stopping else immediate.receive(db, id, qty)


def gives_back_what_it_had_claimed(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong under SIGTERM alone: it takes its mark away, and the work that was committed with it stays."""
    try:
        return immediate.receive(db, id, qty)
    except (Conflict, sqlite3.OperationalError):
        raise
    except BaseException:
        db.execute("DELETE FROM inbox WHERE id = ?", (id,))
        raise


def refreshes(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong when a redelivery is killed: it writes the row anew, in two commits."""
    if immediate.receive(db, id, qty):
        return True
    db.execute("DELETE FROM inbox WHERE id = ?", (id,))
    db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
    return False


class Rows:
    """Right: one table whose rows are inbox and effect in one."""

    def setup(self, path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.executescript(
                "CREATE TABLE rows(id TEXT PRIMARY KEY, qty INTEGER);CREATE TABLE claims(id TEXT PRIMARY KEY)"
            )

    def connect(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=5, isolation_level=None)

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        row = db.execute("SELECT qty FROM rows WHERE id = ?", (id,)).fetchone()
        if row is not None and row[0] != qty:
            raise Conflict(id)
        if row is None:
            self.write(db, id, qty)
        return row is None

    def write(self, db: sqlite3.Connection, id: str, qty: int) -> None:
        db.execute("INSERT INTO rows VALUES (?, ?)", (id, qty))

    def observe(self, path: Path) -> State:
        with contextlib.closing(sqlite3.connect(path)) as db:
            rows = db.execute("SELECT id, qty FROM rows").fetchall()
        return State(sum(qty for _, qty in rows), rows)


class ClaimsRows(Rows):
    """Wrong when it is killed between its two statements: the claim stays, and nobody does the work."""

    def write(self, db: sqlite3.Connection, id: str, qty: int) -> None:
        db.execute("INSERT INTO claims VALUES (?)", (id,))
        super().write(db, id, qty)


class Leases(Rows):
    """Wrong under SIGKILL alone: its claim is given back on every way out that Python knows."""

    def write(self, db: sqlite3.Connection, id: str, qty: int) -> None:
        try:
            db.execute("INSERT INTO claims VALUES (?)", (id,))
            super().write(db, id, qty)
        except sqlite3.IntegrityError:
            raise
        except BaseException:
            db.execute("DELETE FROM claims WHERE id = ?", (id,))
            raise
        db.execute("DELETE FROM claims WHERE id = ?", (id,))


class WritesBehind(Rows):
    """Wrong when it is killed after the ACK: what it answers for is written by its next call."""

    waiting: tuple[str, int] | None = None

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        if self.waiting is not None:
            super().write(db, *self.waiting)
            self.waiting = None
        return super().receive(db, id, qty)

    def write(self, db: sqlite3.Connection, id: str, qty: int) -> None:
        self.waiting = id, qty


class Writers:
    """What the writer of `group` is handed instead of its connection; `kind` says what is wrong with it."""

    def __init__(self, db: sqlite3.Connection, kind: str) -> None:
        self.db, self.kind, self.claimed = db, kind, False
        if kind == "leases":
            db.execute("CREATE TABLE IF NOT EXISTS claims(id TEXT PRIMARY KEY)")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        try:
            if self.kind == "finally" or error[0] is None:
                self.db.commit()
            else:
                self.db.rollback()
        finally:
            if self.claimed:
                self.db.execute("DELETE FROM claims")

    def execute(self, sql: str, values: tuple[object, ...] = ()) -> Any:
        if sql.startswith("BEGIN") and self.kind in ("apart", "leases"):
            return None
        if sql.startswith("INSERT") and self.kind == "leases":
            self._claim()
            self.db.execute("BEGIN IMMEDIATE")
        cursor = self.db.execute(sql, values)
        if not sql.startswith("SELECT") or self.kind != "refreshes":
            return cursor
        return _Known(self.db, values, cursor.fetchone())

    def _claim(self) -> None:
        self.claimed = True
        try:
            self.db.execute("INSERT INTO claims VALUES ('mine')")
        except sqlite3.IntegrityError:
            self.claimed = False
            raise


class _Known:
    """A row that was read, and written anew."""

    def __init__(self, db: sqlite3.Connection, values: tuple[object, ...], row: tuple[int] | None) -> None:
        self.row = row
        if row is not None:
            db.commit()
            db.execute("DELETE FROM inbox WHERE id = ?", values)
            db.execute("INSERT INTO inbox VALUES (?, ?)", (*values, *row))

    def fetchone(self) -> tuple[int] | None:
        return self.row


class GroupApart(Group):
    """Wrong when its writer is killed: each statement is a commit."""

    kind = "apart"

    def serve(self, db: sqlite3.Connection, path: Path) -> None:
        super().serve(cast("sqlite3.Connection", Writers(db, self.kind)), path)


class GroupRefreshes(GroupApart):
    """Wrong when its writer is killed in a redelivery."""

    kind = "refreshes"


class GroupFinally(GroupApart):
    """Wrong when its writer gets SIGTERM: it commits what it has."""

    kind = "finally"


class GroupLeases(GroupApart):
    """Wrong when its writer gets SIGKILL: its claim stays."""

    kind = "leases"


class LikesRows:
    """Right, with rows that are objects of a class."""

    def connect(self, path: Path) -> sqlite3.Connection:
        db = sqlite3.connect(path, timeout=5, isolation_level=None)
        db.row_factory = sqlite3.Row
        return db

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        return immediate.receive(db, id, qty)


class Notebook:
    """Right, without a database: the whole notebook is written anew beside the old one and takes its name."""

    renames = True

    def setup(self, path: Path) -> None:
        path.write_text("{}")

    def connect(self, path: Path) -> Path:
        return path

    def receive(self, book: Path, id: str, qty: int) -> bool:
        pages = json.loads(book.read_text())
        if id in pages:
            if pages[id][0] != qty:
                raise Conflict(id)
            return False
        pages[id] = [qty, qty]
        if self.renames:
            fresh = Path(f"{book}.new")
            fresh.write_text(json.dumps(pages))
            fresh.replace(book)
        return True

    def observe(self, path: Path) -> State:
        pages = json.loads(path.read_text())
        return State(sum(total for _, total in pages.values()), [(id, qty) for id, (qty, _) in pages.items()])


class LosesNotes(Notebook):
    """Wrong: it is never written down."""

    renames = False


class CannotBeRead(Notebook):
    """Nobody knows what became of the effects."""

    def observe(self, path: Path) -> State:
        raise OSError("the warehouse is closed")


def looks_around_first(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right, but the first calls of a campaign run more statements than all later ones."""
    file = Path(db.execute("PRAGMA database_list").fetchone()[2]).parents[1] / "calls"
    with contextlib.suppress(FileNotFoundError):
        if len(file.read_bytes()) >= 4:
            return immediate.receive(db, id, qty)
    with file.open("ab") as calls:
        calls.write(b".")
    for n in range(3):
        db.execute("SELECT ?", (n,)).fetchone()
    return immediate.receive(db, id, qty)


def runs_a_function_of_its_own(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right: SQLite calls back into Python in the middle of its statements."""
    db.create_function("plus", 2, lambda a, b: sum((a, b)))
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, plus(?, 0))", (id, qty))
        db.execute("UPDATE stock SET total = plus(total, ?)", (qty,))
        return True


def runs_many_statements(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right, in more statements than anybody wants to be killed after."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        for n in range(60):
            db.execute("SELECT ?", (n,)).fetchone()
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True
