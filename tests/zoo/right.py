"""Right receivers in many styles: none of them may be accused in any mode."""

import contextlib
import hashlib
import sqlite3
from pathlib import Path

from oncebench import Conflict, State
from oncebench.receivers.inbox import seen


def in_one_statement(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """INSERT ... SELECT ... WHERE NOT EXISTS, then the work if a row went in."""
    put = "INSERT INTO inbox SELECT :id, :qty WHERE NOT EXISTS (SELECT 1 FROM inbox WHERE id = :id)"
    with db:
        db.execute("BEGIN IMMEDIATE")
        if db.execute(put, {"id": id, "qty": qty}).rowcount == 0:
            seen(db, id, qty)
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def returning(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """What RETURNING gives back says whether a row went in."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        put = "INSERT INTO inbox VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING id"
        if db.execute(put, (id, qty)).fetchall() == [(id,)]:
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            return True
        seen(db, id, qty)
        return False


def upsert_with_a_condition(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """DO UPDATE that changes nothing, for the sake of its RETURNING."""
    put = "INSERT INTO inbox VALUES (?, ?) ON CONFLICT DO UPDATE SET qty = qty RETURNING qty"
    with db:
        db.execute("BEGIN IMMEDIATE")
        before = db.execute("SELECT count(*) FROM inbox WHERE id = ?", (id,)).fetchone()[0]
        [(kept,)] = db.execute(put, (id, qty)).fetchall()
        if kept != qty:
            raise Conflict(id)
        if not before:
            db.execute("UPDATE stock SET total = total + ?", (qty,))
        return not before


def with_a_cte(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """The look is a common table expression."""
    look = "WITH known AS (SELECT qty FROM inbox WHERE id = ?) SELECT qty FROM known"
    with db:
        db.execute("BEGIN IMMEDIATE")
        known = db.execute(look, (id,)).fetchall()
        if known and known != [(qty,)]:
            raise Conflict(id)
        if not known:
            db.execute("WITH new(a, b) AS (VALUES (?, ?)) INSERT INTO inbox SELECT a, b FROM new", (id, qty))
            db.execute("UPDATE stock SET total = total + (SELECT qty FROM inbox WHERE id = ?)", (id,))
        return not known


def in_a_savepoint_alone(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """SAVEPOINT begins the transaction, and its first statement writes."""
    db.execute("SAVEPOINT delivery")
    try:
        if db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty)).rowcount:
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            db.execute("RELEASE delivery")
            return True
        seen(db, id, qty)
        db.execute("RELEASE delivery")
        return False
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")  # a RELEASE that was refused would be refused again
        raise


def effect_by_a_trigger(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """A trigger on the inbox does the work."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(
            "CREATE TRIGGER IF NOT EXISTS working AFTER INSERT ON inbox BEGIN "
            "UPDATE stock SET total = total + new.qty; END"
        )
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        return True


def sum_read_inside(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """The sum is made in Python, but from what was read under the lock."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        (total,) = db.execute("SELECT total FROM stock").fetchone()
        if total + qty > 2**63 - 1:
            raise OverflowError(id)
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = ?", (total + qty,))
        return True


def looks_outside_and_again_inside(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Double-checked: the first look only saves a lock."""
    if seen(db, id, qty):
        return False
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def unique_key_undoes_the_work(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Work first, then the row; if that is refused, the ROLLBACK takes the work with it."""
    try:
        with db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            return True
    except sqlite3.IntegrityError:
        if not seen(db, id, qty):
            raise
        return False


def reads_over_a_second_connection(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """A look over a connection for reading; what decides is the insert."""
    file = db.execute("PRAGMA database_list").fetchone()[2]
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as reader:
        if seen(reader, id, qty):
            return False
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


class Legacy:
    """`isolation_level="IMMEDIATE"`: the driver begins before the INSERT, and takes the lock."""

    def connect(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level="EXCLUSIVE")

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        try:
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            db.commit()
            return True
        except sqlite3.IntegrityError:
            db.rollback()
            seen(db, id, qty)
            return False
        except BaseException:
            db.rollback()
            raise


class Events:
    """A table of events, and a total that is computed."""

    schema = "CREATE TABLE events(id TEXT PRIMARY KEY, qty INTEGER NOT NULL) WITHOUT ROWID"

    def key(self, id: str) -> object:
        return id

    def setup(self, path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = wal")
            db.execute(self.schema)

    def connect(self, path: Path) -> sqlite3.Connection:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA synchronous = off")
        return db

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        names = ", ".join(["?"] * (2 if self.key(id) is id else 3))
        row = (id, qty) if self.key(id) is id else (self.key(id), id, qty)
        if db.execute(f"INSERT INTO events VALUES ({names}) ON CONFLICT DO NOTHING", row).rowcount:
            return True  # one statement is one transaction
        if db.execute("SELECT qty FROM events WHERE id = ?", (id,)).fetchone() != (qty,):
            raise Conflict(id)
        return False

    def observe(self, path: Path) -> State:
        with contextlib.closing(sqlite3.connect(path)) as db:
            rows = db.execute("SELECT id, qty FROM events").fetchall()
        return State(sum(qty for _, qty in rows), rows)


class Hashed(Events):
    """The key is the id's hash; the id stands beside it."""

    schema = "CREATE TABLE events(key BLOB PRIMARY KEY, id TEXT NOT NULL, qty INTEGER NOT NULL) STRICT"

    def key(self, id: str) -> object:
        return hashlib.sha256(id.encode()).digest()


def retries_whole_with_rollback(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Two tries, each a transaction of its own that is rolled back by hand."""
    for tries_left in (1, 0):
        try:
            db.execute("BEGIN")
            new = not seen(db, id, qty)
            if new:
                db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
                db.execute("UPDATE stock SET total = total + ?", (qty,))
            db.execute("COMMIT")
            return new
        except BaseException as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            if not tries_left or not isinstance(error, sqlite3.OperationalError):
                raise
    raise AssertionError
