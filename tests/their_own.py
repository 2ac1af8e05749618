"""Receivers of other people's making, right ones unless they say so: own schemas, habits, exceptions."""

import contextlib
import sqlite3
import sys
import threading
import uuid
from pathlib import Path

from oncebench import Conflict, State
from oncebench.receivers import immediate
from oncebench.receivers.inbox import seen

_lock = threading.Lock()


class MismatchError(Exception):
    """Somebody's own name for a conflict."""


class Ledger:
    """Own schema, own exception, own way of being read: the sum is a table of entries."""

    conflict = MismatchError

    def setup(self, path: Path) -> None:
        db = sqlite3.connect(path)
        db.executescript("CREATE TABLE ledger(message TEXT PRIMARY KEY, amount INTEGER NOT NULL) STRICT;")
        db.close()

    def connect(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=5, isolation_level="IMMEDIATE")

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        with db:
            put = db.execute("INSERT INTO ledger VALUES (?, ?) ON CONFLICT DO NOTHING", (id, qty))
            if put.rowcount == 1:
                return True
            (amount,) = db.execute("SELECT amount FROM ledger WHERE message = ?", (id,)).fetchone()
            if amount != qty:
                raise MismatchError(id)
            return False

    def observe(self, path: Path) -> State:
        db = sqlite3.connect(path)
        try:
            rows = db.execute("SELECT message, amount FROM ledger").fetchall()
        finally:
            db.close()
        return State(total=sum(amount for _, amount in rows), inbox=rows)


class NaiveLedger(Ledger):
    """The same with a look before the transaction, and no key: each row is an effect."""

    def setup(self, path: Path) -> None:
        db = sqlite3.connect(path)
        db.executescript("CREATE TABLE ledger(message TEXT, amount INTEGER NOT NULL) STRICT;")
        db.close()

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        row = db.execute("SELECT amount FROM ledger WHERE message = ?", (id,)).fetchone()
        if row is None:
            with db:
                db.execute("INSERT INTO ledger VALUES (?, ?)", (id, qty))
            return True
        if row[0] != qty:
            raise MismatchError(id)
        return False


class LegacyTransactions:
    """The driver begins: a write comes first, so that its implicit BEGIN is never overtaken."""

    def connect(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path)

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        with db:
            if db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty)).rowcount == 0:
                seen(db, id, qty)
                return False
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            return True


class LegacyLookFirst(LegacyTransactions):
    """Wrong: the same driver, but the SELECT runs before the implicit BEGIN."""

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        with db:
            if seen(db, id, qty):
                return False
            db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            return True


class Autocommit:
    """Python 3.12: a transaction is always open, and deferred; sound as `deferred` is."""

    def connect(self, path: Path) -> sqlite3.Connection:
        if sys.version_info >= (3, 12):
            return sqlite3.connect(path, autocommit=False)
        raise RuntimeError("needs Python 3.12")

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        try:
            if seen(db, id, qty):
                db.rollback()
                return False
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            db.commit()
            return True
        except BaseException:
            db.rollback()
            raise


def counts_total_changes(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Asks the connection how much it changed; the witness must not be in the answer."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        before = db.total_changes
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        if db.total_changes - before != 1:
            seen(db, id, qty)
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def brings_a_second_connection(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Works over a connection that the bench has not opened."""
    file = db.execute("PRAGMA database_list").fetchone()[2]
    own = sqlite3.connect(file, isolation_level=None)
    try:
        with own:
            own.execute("BEGIN IMMEDIATE")
            if seen(own, id, qty):
                return False
            own.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
            own.execute("UPDATE stock SET total = total + ?", (qty,))
            return True
    finally:
        own.close()


def tries_again_itself(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Repeats the whole transaction after a lock error, as it should."""
    for tries_left in (2, 1, 0):
        try:
            with db:
                db.execute("BEGIN")
                if seen(db, id, qty):
                    return False
                db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
                db.execute("UPDATE stock SET total = total + ?", (qty,))
                return True
        except sqlite3.OperationalError:
            if not tries_left:
                raise
    raise AssertionError


def adds_one_by_one(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """One effect in many updates."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.executemany("UPDATE stock SET total = total + ?", [(1,)] * qty)
        return True


def in_a_script_and_savepoint(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """A savepoint inside BEGIN IMMEDIATE."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("SAVEPOINT work")
        try:
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        except sqlite3.IntegrityError:
            db.execute("ROLLBACK TO work")
            if not seen(db, id, qty):
                raise Conflict("the row went away") from None
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        db.execute("RELEASE work")
        return True


def helps_the_others_out(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Claims first; then whoever comes finishes every claim that is open, the dead's included."""
    db.execute("CREATE TABLE IF NOT EXISTS claims(id TEXT PRIMARY KEY, qty INTEGER NOT NULL)")
    with db:
        db.execute("BEGIN IMMEDIATE")
        claimed = db.execute("SELECT qty FROM claims WHERE id = ?", (id,)).fetchone()
        known = seen(db, id, qty) or claimed is not None
        if claimed is not None and claimed[0] != qty:
            raise Conflict(id)
        if not known:
            db.execute("INSERT INTO claims VALUES (?, ?)", (id, qty))
    with db:
        db.execute("BEGIN IMMEDIATE")
        for open_id, open_qty in db.execute("SELECT id, qty FROM claims").fetchall():
            db.execute("INSERT INTO inbox VALUES (?, ?)", (open_id, open_qty))
            db.execute("UPDATE stock SET total = total + ?", (open_qty,))
        db.execute("DELETE FROM claims")
    return not known


def sum_in_python(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: the total is read before the transaction and written inside."""
    (total,) = db.execute("SELECT total FROM stock").fetchone()
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = ?", (total + qty,))
        return True


def folds_case(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: two orders whose ids differ in case only are taken for one."""
    return immediate.receive(db, id.lower(), qty)


def cuts_long_ids(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: the key has room for 255 characters."""
    return immediate.receive(db, id[:255], qty)


def makes_a_key_for_each_attempt(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: each redelivery looks new."""
    return immediate.receive(db, f"{id} {uuid.uuid4()}", qty)


def gives_up_silently(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: the statement is tried again, not the transaction, and then the message is let go."""
    with db:
        db.execute("BEGIN")
        if seen(db, id, qty):
            return False
        for _ in range(3):
            with contextlib.suppress(sqlite3.OperationalError):
                db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
                db.execute("UPDATE stock SET total = total + ?", (qty,))
                break
        return True


def hides_other_failures(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: OR IGNORE keeps silent about a NOT NULL that failed."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        kept = qty if qty <= 90 else None
        if db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, kept)).rowcount == 0:
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def lock_of_one_process(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong as soon as there is a second process."""
    with _lock:
        if seen(db, id, qty):
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty))
        return True


def prunes_early(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: an id that is forgotten is new again."""
    answer = immediate.receive(db, id, qty)
    db.execute("DELETE FROM inbox WHERE rowid < (SELECT max(rowid) FROM inbox) - 5")
    return answer


def reads_lastrowid(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: after an ignored insert it is that of an earlier one."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?)", (id, qty)).lastrowid:
            return False
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def runs_a_script(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: executescript commits what is pending before it runs."""
    try:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.executescript(f"UPDATE stock SET total = total + {qty}")
        return True
    finally:
        db.rollback()


def tries_again_blindly(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right, since what it repeats is: a second try finds what the first one did."""
    for _ in range(3):
        with contextlib.suppress(sqlite3.OperationalError):
            return immediate.receive(db, id, qty)
    return immediate.receive(db, id, qty)


def reads_rows_as_dicts(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right: leaves its row and text factories on the connection."""
    db.row_factory = lambda cursor, row: {
        col[0]: value for col, value in zip(cursor.description, row, strict=True)
    }
    db.text_factory = bytes
    with db:
        db.execute("BEGIN IMMEDIATE")
        row = db.execute("SELECT qty FROM inbox WHERE id = ?", (id,)).fetchone()
        if row is not None:
            if row["qty"] != qty:
                raise Conflict(id)
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def closes_what_it_was_given(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right: takes the connection for its own."""
    with contextlib.closing(db):
        return immediate.receive(db, id, qty)


def has_a_trigger_of_its_own(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Right: a trigger that would go round for ever if triggers were recursive."""
    db.execute("CREATE TABLE IF NOT EXISTS touched(id TEXT PRIMARY KEY, times INTEGER NOT NULL)")
    db.execute(
        "CREATE TRIGGER IF NOT EXISTS touching AFTER UPDATE ON touched BEGIN "
        "UPDATE touched SET times = times + 1 WHERE id = new.id; END"
    )
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO touched VALUES (?, 0) ON CONFLICT DO UPDATE SET times = times + 1", (id,))
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
        db.execute("UPDATE stock SET total = total + ?", (qty,))
        return True


def _anew(db: sqlite3.Connection) -> sqlite3.Connection:
    return sqlite3.connect(db.execute("PRAGMA database_list").fetchone()[2], isolation_level=None)


def opens_anew_and_swallows(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: as `swallow`, over a connection that the bench has not opened."""
    with contextlib.closing(_anew(db)) as own:
        try:
            return immediate.receive(own, id, qty)
        except sqlite3.OperationalError:
            return False


def claims_and_insists(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Wrong: the row is committed and duplicates are told so, long before the work is done."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        if seen(db, id, qty):
            return False
        db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
    while True:
        with contextlib.suppress(sqlite3.OperationalError):
            db.execute("UPDATE stock SET total = total + ?", (qty,))
            return True
