import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oncebench.messages import MAX_QTY, Event
from oncebench.stores import sqlite
from oncebench.stores.sqlite import Settings
from oncebench.stores.witness import Witnessed

SETTINGS = Settings("wal", "off", busy_timeout=0)
Row = tuple[Event, int, int, str | None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    sqlite.setup(tmp_path / "s.db", SETTINGS)
    return tmp_path / "s.db"


@pytest.fixture
def db(path: Path) -> Witnessed:
    """A connection of the bench, in call 5."""
    db = sqlite.connect(path, SETTINGS, Witnessed)
    db.attribute_changes()
    db.call = 5
    return db


def seen(path: Path, after: int = 0) -> list[Row]:
    """Event, amount, call and id of each row, in order."""
    w = sqlite.read_state(path, after).witness
    assert w is not None
    rows = zip(w.event.tolist(), w.amount.tolist(), w.call.tolist(), w.id, strict=True)
    return [(Event(event), amount, call, id) for event, amount, call, id in rows]


def recorded(amount: int = 7, call: int = 5, id: str = "a") -> Row:
    return (Event.RECORDED, amount, call, id)


def effect(amount: int = 7, call: int = 5) -> Row:
    return (Event.EFFECT, amount, call, None)


def erased(amount: int = 7, call: int = 5, id: str = "a") -> Row:
    return (Event.ERASED, amount, call, id)


def work(db: sqlite3.Connection, id: str = "a", qty: int = 7) -> None:
    db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
    db.execute("UPDATE stock SET total = total + ?", (qty,))


def test_it_sees_what_is_committed_and_nothing_else(path: Path, db: Witnessed) -> None:
    """An open transaction is not there yet, one rolled back never was."""
    db.execute("BEGIN")
    work(db)
    assert seen(path) == []
    db.execute("COMMIT")
    assert seen(path) == [recorded(), effect()]
    db.execute("BEGIN")
    work(db, "b")
    db.execute("ROLLBACK")
    assert seen(path) == [recorded(), effect()]


def test_a_savepoint_that_is_rolled_back_leaves_nothing(path: Path, db: Witnessed) -> None:
    """What came before it in the same transaction stays."""
    db.execute("BEGIN")
    work(db)
    db.execute("SAVEPOINT s")
    work(db, "b")
    db.execute("ROLLBACK TO s")
    db.execute("COMMIT")
    assert seen(path) == [recorded(), effect()]


def test_a_statement_that_fails_leaves_nothing(path: Path, db: Witnessed) -> None:
    """A row refused by its key, an insert that was ignored, a total refused by its check."""
    work(db)
    before = seen(path)
    with pytest.raises(sqlite3.IntegrityError):
        db.execute("INSERT INTO inbox VALUES ('b', 1), ('a', 7)")
    db.execute("INSERT OR IGNORE INTO inbox VALUES ('a', 8)")
    with pytest.raises(sqlite3.IntegrityError):
        db.execute("UPDATE stock SET total = total + ?", (MAX_QTY,))
    assert seen(path) == before


def test_changes_belong_to_the_call_that_made_them(path: Path, db: Witnessed) -> None:
    """Each with the time of its statement, between the ones around it."""
    start = time.perf_counter_ns()
    work(db)
    middle = time.perf_counter_ns()
    db.call = 6
    work(db, "b", 8)
    end = time.perf_counter_ns()
    assert seen(path) == [recorded(), effect(), recorded(8, 6, "b"), effect(8, 6)]
    witness = sqlite.read_state(path).witness
    assert witness is not None
    times = [start, *witness.at[:2].tolist(), middle, *witness.at[2:].tolist(), end]
    assert times == sorted(times)


def test_only_what_came_after_a_row_is_read(path: Path, db: Witnessed) -> None:
    """So that what was there before a run is left out."""
    work(db)
    work(db, "b", 8)
    assert seen(path, after=2) == [recorded(8, 5, "b"), effect(8)]
    assert seen(path, after=4) == []


def test_a_connection_that_is_not_ours_works_and_is_nobody(path: Path, db: Witnessed) -> None:
    """It has neither the function nor the trigger that fills in calls, and needs neither."""
    other = sqlite3.connect(path)
    with other:
        work(other)
    work(db, "b", 8)
    assert seen(path) == [recorded(7, -1), effect(7, -1), recorded(8, 5, "b"), effect(8)]
    witness = sqlite.read_state(path).witness
    assert witness is not None
    assert (witness.at > 0).tolist() == [False, False, True, True]


def test_other_ways_to_change_the_inbox(path: Path, db: Witnessed) -> None:
    """Replaced, rewritten, renamed, upserted, deleted; an update that changes nothing is not seen."""
    db.execute("INSERT INTO inbox VALUES ('a', 7)")
    db.execute("INSERT OR REPLACE INTO inbox VALUES ('a', 8)")
    db.execute("UPDATE inbox SET qty = 9")
    db.execute("UPDATE inbox SET qty = qty, id = id")
    db.execute("UPDATE inbox SET id = 'b'")
    db.execute("INSERT INTO inbox VALUES ('b', 1) ON CONFLICT DO UPDATE SET qty = qty + excluded.qty")
    db.execute("DELETE FROM inbox")
    replaced = [recorded(7), recorded(8)]  # SQLite says nothing of the row that made way
    rewritten = [erased(8), recorded(9), erased(9), recorded(9, id="b")]
    assert seen(path) == replaced + rewritten + [erased(9, id="b"), recorded(10, id="b"), erased(10, id="b")]


def test_other_ways_to_change_the_total(path: Path, db: Witnessed) -> None:
    """Set, lowered, taken out and put back; the sum of all is what the total says."""
    db.execute("UPDATE stock SET total = 7")
    db.execute("UPDATE stock SET total = total")
    db.execute("UPDATE stock SET total = total - 3")
    db.execute("DELETE FROM stock")
    db.execute("INSERT INTO stock VALUES (11)")
    assert seen(path) == [effect(7), effect(-3), effect(-4), effect(11)]
    assert sqlite.read_state(path).total == 11


@pytest.mark.parametrize("outcome", ["COMMIT", "ROLLBACK", "ROLLBACK TO s"])
def test_counters_of_the_connection_do_not_show_it(outcome: str, tmp_path: Path) -> None:
    """rowcount, lastrowid, changes() and total_changes are those of a store without a witness."""

    def counters(watched: bool) -> list[object]:
        sqlite.setup(tmp_path / f"{watched}.db", SETTINGS, watched=watched)
        db = sqlite.connect(tmp_path / f"{watched}.db", SETTINGS, Witnessed)
        if watched:
            db.attribute_changes()
        read: list[object] = []
        for statement in (
            "BEGIN",
            "SAVEPOINT s",
            "INSERT INTO inbox VALUES ('a', 7), ('b', 8)",
            "INSERT OR IGNORE INTO inbox VALUES ('a', 7)",
            "INSERT INTO inbox VALUES ('a', 7) ON CONFLICT DO NOTHING",
            "INSERT INTO inbox VALUES ('a', 7) ON CONFLICT DO UPDATE SET qty = 9",
            "INSERT OR REPLACE INTO inbox VALUES ('a', 1), ('c', 2)",
            "UPDATE inbox SET qty = 3",
            "UPDATE stock SET total = total + 7",
            "DELETE FROM inbox WHERE id = 'c'",
            outcome,
        ):
            cursor = db.execute(statement)
            changes = db.execute("SELECT changes(), last_insert_rowid()").fetchone()
            read.append((statement, cursor.rowcount, cursor.lastrowid, changes, db.total_changes))
        return read

    assert counters(watched=True) == counters(watched=False)


def raw_insert(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO inbox VALUES ('a', 7)")


def returning(db: sqlite3.Connection) -> None:
    assert db.execute("INSERT INTO inbox VALUES ('a', 7) RETURNING id").fetchall() == [("a",)]


def many(db: sqlite3.Connection) -> None:
    db.executemany("INSERT INTO inbox VALUES (?, ?)", [("a", 7)])


def script(db: sqlite3.Connection) -> None:
    db.executescript("BEGIN; INSERT INTO inbox VALUES ('a', 7); COMMIT;")


@pytest.mark.parametrize("insert", [raw_insert, returning, many, script])
def test_any_way_to_run_a_statement_is_seen(
    insert: Callable[[sqlite3.Connection], None], path: Path, db: Witnessed
) -> None:
    """The witness sits in the schema, not in the driver."""
    insert(db)
    assert seen(path) == [recorded()]


def test_replaced_stock_row_is_the_difference(db: Witnessed, path: Path) -> None:
    """INSERT OR REPLACE into stock takes the old total away and puts the new one in."""
    db.execute("UPDATE stock SET total = 7")
    db.execute("INSERT OR REPLACE INTO stock(rowid, total) SELECT rowid, total + 5 FROM stock")
    assert sum(amount for event, amount, _, _ in seen(path) if event is Event.EFFECT) == 12


def test_total_changes_in_sql_leaves_the_witness_out(db: Witnessed) -> None:
    """The function as well as the attribute."""
    (before,) = db.execute("SELECT total_changes()").fetchone()
    db.execute("INSERT INTO inbox VALUES ('a', 1)")
    assert db.execute("SELECT total_changes()").fetchone() == (before + 1,)
    assert db.total_changes == before + 1
