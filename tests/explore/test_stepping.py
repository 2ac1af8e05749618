"""Steps are exactly the statements SQLite runs, and a stepped connection answers as a plain one."""

import itertools
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oncebench.explore.gate import GO, Event, Gate, gate_of_caller
from oncebench.explore.sql import statements
from oncebench.explore.stepping import Stepped
from oncebench.explore.surroundings import surroundings

Work = Callable[[sqlite3.Connection], Any]


def _generator(db: sqlite3.Connection) -> Any:
    return list(db.execute("SELECT x FROM t ORDER BY x"))


def _with_commit(db: sqlite3.Connection) -> Any:
    with db:
        return db.execute("INSERT INTO t VALUES (7)").rowcount


def _with_error(db: sqlite3.Connection) -> Any:
    try:
        with db:
            db.execute("INSERT INTO t VALUES (7)")
            raise KeyError
    except KeyError:
        return db.in_transaction


def _many(db: sqlite3.Connection) -> Any:
    cursor = db.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(3)))
    return cursor.rowcount, cursor.lastrowid


def _many_on_a_cursor(db: sqlite3.Connection) -> Any:
    cursor = db.cursor()
    cursor.execute("INSERT INTO t VALUES (4)")
    cursor.executemany("UPDATE t SET x = x + ?", [(1,), (2,)])
    return cursor.rowcount, db.total_changes, cursor.fetchall()


def _many_of_none(db: sqlite3.Connection) -> Any:
    return db.executemany("INSERT INTO t VALUES (?)", []).rowcount


def _script(db: sqlite3.Connection) -> Any:
    db.execute("INSERT INTO t VALUES (5)")
    if getattr(db, "autocommit", None) is False:
        db.executescript("COMMIT")
    db.executescript(
        "INSERT INTO t VALUES (6); -- a comment; with a semicolon\n"
        "BEGIN; INSERT INTO t VALUES ('a;b'); SELECT * FROM t; COMMIT; /* end */"
    )
    return db.in_transaction, db.execute("SELECT count(*) FROM t").fetchone()


def _script_that_fails(db: sqlite3.Connection) -> Any:
    try:
        db.executescript("INSERT INTO t VALUES (6); INSERT INTO nowhere VALUES (1); INSERT INTO t VALUES (7)")
    except sqlite3.OperationalError as error:
        return str(error), db.execute("SELECT count(*) FROM t").fetchone()
    return None


def _fetches(db: sqlite3.Connection) -> Any:
    cursor = db.execute("SELECT x FROM t UNION ALL SELECT 9 UNION ALL SELECT 10")
    return cursor.fetchone(), cursor.fetchmany(1), next(cursor), cursor.fetchall(), cursor.fetchone()


def _named(db: sqlite3.Connection) -> Any:
    db.row_factory = sqlite3.Row
    row = db.execute("SELECT x AS y, :z AS z FROM t", {"z": 3}).fetchone()
    return dict(row), row.keys()


def _constraint(db: sqlite3.Connection) -> Any:
    try:
        db.execute("INSERT INTO u VALUES (1)")
        db.execute("INSERT INTO u VALUES (1)")
    except sqlite3.IntegrityError as error:
        return str(error), error.sqlite_errorname, db.in_transaction
    return None


def _savepoint(db: sqlite3.Connection) -> Any:
    db.execute("SAVEPOINT s")
    db.execute("INSERT INTO t VALUES (3)")
    db.execute("ROLLBACK TO s")
    db.execute("RELEASE s")
    return db.in_transaction


def _explicit(db: sqlite3.Connection) -> Any:
    if db.in_transaction:
        db.rollback()
    if not db.in_transaction:
        db.execute("BEGIN IMMEDIATE")
    db.execute("/* why */ INSERT INTO t VALUES (3)")
    db.commit()
    return db.in_transaction


def _returning(db: sqlite3.Connection) -> Any:
    return db.execute("INSERT INTO t VALUES (8) RETURNING x").fetchall()


def _pragma(db: sqlite3.Connection) -> Any:
    db.execute("PRAGMA cache_size = 100")
    return db.execute("PRAGMA cache_size").fetchall()


def _changes_mode(db: sqlite3.Connection) -> Any:
    db.execute("INSERT INTO t VALUES (3)")
    db.isolation_level = None
    return db.in_transaction, db.isolation_level


def _own_cursor(db: sqlite3.Connection) -> Any:
    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, parameters: Any = ()) -> Any:
            return super().execute(sql.replace("table_name", "t"), parameters)

    return db.cursor(Cursor).execute("SELECT x FROM table_name").fetchall()


WORK: list[Work] = [
    _generator,
    _with_commit,
    _with_error,
    _many,
    _many_on_a_cursor,
    _many_of_none,
    _script,
    _script_that_fails,
    _fetches,
    _named,
    _constraint,
    _savepoint,
    _explicit,
    _returning,
    _pragma,
    _changes_mode,
    _own_cursor,
]
MODES: list[dict[str, Any]] = [{"isolation_level": None}, {}, {"isolation_level": "IMMEDIATE"}]
if sys.version_info >= (3, 12):
    MODES += [{"autocommit": False}, {"autocommit": True}]


class Recorder:
    """A gate's scheduler that lets everything through and writes it down."""

    def __init__(self, path: Path, waits: bool = False) -> None:
        self.parked: list[str] = []
        self.gate = Gate(str(path.resolve()), waits, self._park)
        self.gate.live = True

    def _park(self, event: Event) -> str:
        if event.kind == "step":
            self.parked.append(event.what)
        return GO


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return _store(tmp_path / "stepped.db")


def _store(path: Path) -> Path:
    db = sqlite3.connect(path)
    db.executescript("CREATE TABLE t(x); INSERT INTO t VALUES (1), (2); CREATE TABLE u(x UNIQUE)")
    db.close()
    return path


@pytest.fixture
def stepping(path: Path) -> Iterator[Recorder]:
    recorder = Recorder(path)
    token = gate_of_caller.set(recorder.gate)
    with surroundings(str(path.resolve())):
        yield recorder
    gate_of_caller.reset(token)


def _plain(statement: str) -> str:
    return " ".join(statement.rstrip("; ").split())


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__.strip("_"))
def test_steps_are_what_sqlite_traces(
    work: Work, mode: dict[str, Any], path: Path, stepping: Recorder
) -> None:
    """Nothing runs that was not announced, nothing is announced that does not run, in the same order."""
    db = sqlite3.connect(path, **mode)
    traced: list[str] = []
    db.set_trace_callback(traced.append)
    answer = work(db)
    db.set_trace_callback(None)
    db.close()
    # A statement that does not compile is a step too, but never starts.
    announced = [said for said in stepping.parked if said != "close()" and "nowhere" not in said]
    assert len(announced) == len(traced)
    for parked, ran in zip(announced, traced, strict=True):
        if "?" not in parked and ":" not in parked:
            assert _plain(parked) == _plain(ran)
    token = gate_of_caller.set(None)
    other = sqlite3.connect(_store(path.with_name("plain.db")), **mode)
    assert answer == work(other)
    other.close()
    assert _content(path) == _content(path.with_name("plain.db"))
    gate_of_caller.reset(token)


def test_the_comparison_notices_a_statement_without_a_step(path: Path, stepping: Recorder) -> None:
    """The detector itself: a statement that goes past the gate is in the trace and not among the steps."""
    db: Any = sqlite3.connect(path)
    traced: list[str] = []
    db.set_trace_callback(traced.append)
    db.quietly("SELECT 1").fetchone()
    assert traced == ["SELECT 1"]
    assert stepping.parked == []
    db.close()


def test_connections_of_others_are_plain(path: Path) -> None:
    """While workers run, code that is no worker's gets the driver's own connection."""
    with surroundings(str(path.resolve())):
        db = sqlite3.connect(path)
        assert type(db) is sqlite3.Connection
        db.close()
    assert sqlite3.connect.__name__ == "connect"


def test_a_class_of_its_own_keeps_its_methods(path: Path, stepping: Recorder) -> None:
    class Own(sqlite3.Connection):
        commits = 0

        def commit(self) -> None:
            self.commits += 1
            super().commit()

    db = sqlite3.connect(path, factory=Own)
    db.execute("INSERT INTO t VALUES (3)")
    db.commit()
    assert isinstance(db, Own)
    assert isinstance(db, Stepped)
    assert db.commits == 1
    assert stepping.parked == ["BEGIN", "INSERT INTO t VALUES (3)", "COMMIT"]
    db.close()


def test_a_busy_timeout_is_never_waited_for(path: Path, stepping: Recorder) -> None:
    """Whatever timeout a receiver asks for, SQLite's refusal is seen at once; that it asked is known."""
    db: Any = sqlite3.connect(path, timeout=0)
    assert not db.patient
    db.execute("PRAGMA busy_timeout = 60000")
    assert db.patient
    assert db.quietly("PRAGMA busy_timeout").fetchone() == (0,)
    db.close()


def test_statements_of_a_script() -> None:
    script = (
        "SELECT 1; -- a; b\nCREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END; "
        "/* ; */ SELECT ';'"
    )
    assert list(statements(script)) == [
        "SELECT 1;",
        "-- a; b\nCREATE TRIGGER g AFTER INSERT ON t BEGIN SELECT 1; SELECT 2; END;",
        "/* ; */ SELECT ';'",
    ]


def _content(path: Path) -> list[Any]:
    db = sqlite3.connect(path)
    try:
        return list(itertools.chain(db.execute("SELECT x FROM t"), db.execute("SELECT x FROM u")))
    finally:
        db.close()
