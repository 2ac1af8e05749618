import ast
import contextlib
import importlib.util
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from oncebench.audit import Kind
from oncebench.messages import Conflict
from oncebench.receivers.registry import CASES, LESSON, VARIANTS
from oncebench.stores import sqlite
from oncebench.stores.sqlite import Journal

RIGHT = [name for name in LESSON if VARIANTS[name].expected == "sound" and name != "group"]
ID = "snack-7"

both_journals = pytest.mark.parametrize("journal", ["wal", "delete"])


class Store:
    """A store on disk, and connections that do not wait for locks."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self.path = folder / "store.db"
        self._settings = sqlite.Settings(journal, "off", busy_timeout=0)
        sqlite.remove(self.path)
        sqlite.setup(self.path, self._settings)

    def connect(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = sqlite.connect(self.path, self._settings)
        return connection

    @property
    def total(self) -> int:
        """What others see."""
        return sqlite.read_state(self.path).total

    @property
    def inbox(self) -> dict[str, int]:
        """What others see."""
        return dict(sqlite.read_state(self.path).inbox)


@pytest.fixture
def store(tmp_path: Path, journal: Journal) -> Store:
    return Store(tmp_path, journal)


def fresh(name: str) -> ModuleType:
    """A variant as a process of its own would import it."""
    spec = importlib.util.spec_from_file_location(f"fresh_{name}", VARIANTS[name].path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def before_statement(db: sqlite3.Connection, start: str, then: Callable[[], object]) -> None:
    """Once, just before SQLite runs a statement that starts so."""

    def trace(statement: str) -> None:
        if statement.startswith(start):
            db.set_trace_callback(None)
            then()

    db.set_trace_callback(trace)


def hold_the_lock(db: sqlite3.Connection) -> Callable[[], object]:
    return lambda: db.execute("BEGIN IMMEDIATE")


@both_journals
@pytest.mark.parametrize("name", RIGHT)
def test_right_variants_answer_as_the_lesson_says(name: str, store: Store) -> None:
    """Each message works once, a known id with another quantity is a conflict and changes nothing."""
    receive, db = fresh(name).receive, store.connect()
    assert receive(db, ID, 7) is True
    assert store.total == 7
    assert receive(db, ID, 7) is False
    assert store.total == 7
    with pytest.raises(Conflict, match=ID):
        receive(db, ID, 8)
    assert store.total == 7
    assert receive(db, "snack-8", 7) is True
    assert store.total == 14
    assert store.inbox == {ID: 7, "snack-8": 7}
    assert not db.in_transaction


def interrupted(name: str, store: Store, nth: int) -> int:
    """One delivery with a whole other one before its nth statement; how many statements it had."""
    module, one, two = fresh(name), store.connect(), store.connect()
    statements: list[str] = []

    def attempt(db: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.OperationalError):  # locked
            module.receive(db, ID, 7)

    def trace(statement: str) -> None:
        if not statement.startswith("--"):  # a trigger
            statements.append(statement)
            if len(statements) == nth:
                attempt(two)

    one.set_trace_callback(trace)
    attempt(one)
    for db in (one, two):
        db.close()
    return len(statements)


def doubles_between_statements(name: str, new_store: Callable[[], Store]) -> list[int]:
    """Before which statement of a delivery another one makes the effect land twice."""
    doubled = []
    for nth in range(1, 1 + interrupted(name, new_store(), 0)):
        store = new_store()
        interrupted(name, store, nth)
        if store.total > 7:
            doubled.append(nth)
    return doubled


@both_journals
@pytest.mark.parametrize("name", RIGHT)
def test_right_variants_bear_another_delivery_before_any_statement(
    name: str, journal: Journal, tmp_path: Path
) -> None:
    """The other one is refused or comes first; nothing doubles."""
    assert doubles_between_statements(name, lambda: Store(tmp_path, journal)) == []


@both_journals
@pytest.mark.parametrize("name", ["naive", "memory", "stock_first", "unique_only", "ignore_rowcount"])
def test_wrong_variants_double_with_another_delivery_in_between(
    name: str, journal: Journal, tmp_path: Path
) -> None:
    """The same scenario is not harmless."""
    assert doubles_between_statements(name, lambda: Store(tmp_path, journal))


@both_journals
@pytest.mark.parametrize(("name", "answer"), [("ignore_rowcount", True), ("unique_only", False)])
def test_plain_redelivery_doubles(name: str, answer: bool, store: Store) -> None:
    """No race needed: the second delivery works again."""
    receive, db = fresh(name).receive, store.connect()
    assert receive(db, ID, 7) is True
    assert receive(db, ID, 7) is answer
    assert store.total == 14
    assert store.inbox == {ID: 7}


@both_journals
def test_replace_applies_a_conflict(store: Store) -> None:
    """The later quantity overwrites the earlier, and is added to it."""
    receive, db = fresh("replace").receive, store.connect()
    assert receive(db, ID, 7) is True
    assert receive(db, ID, 8) is True
    assert store.total == 15
    assert store.inbox == {ID: 8}


@both_journals
def test_swallow_answers_for_work_that_nobody_did(store: Store) -> None:
    """Another connection holds the lock; `immediate` says so, `swallow` says done."""
    db, other = store.connect(), store.connect()
    hold_the_lock(other)()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        fresh("immediate").receive(db, ID, 7)
    assert fresh("swallow").receive(db, ID, 7) is True
    other.execute("ROLLBACK")
    assert store.total == 0
    assert store.inbox == {}


@both_journals
def test_naive_works_twice_when_both_looked_first(store: Store) -> None:
    """The second delivery runs between the look and the work of the first."""
    receive, db, other = fresh("naive").receive, store.connect(), store.connect()
    answers: list[object] = []
    before_statement(db, "UPDATE", lambda: answers.append(receive(other, ID, 7)))
    answers.append(receive(db, ID, 7))
    assert answers == [True, True]
    assert store.total == 14


@both_journals
@pytest.mark.parametrize(("name", "answer", "total"), [("memory", True, 14), ("immediate", False, 7)])
def test_memory_forgets_with_its_process(name: str, answer: bool, total: int, store: Store) -> None:
    """A second import is a second process; what `immediate` remembers is in the store."""
    db = store.connect()
    assert fresh(name).receive(db, ID, 7) is True
    assert fresh(name).receive(db, ID, 7) is answer
    assert store.total == total


@both_journals
def test_id_first_loses_the_effect_when_its_second_commit_is_refused(store: Store) -> None:
    """The redelivery finds the id and does nothing."""
    receive, db, other = fresh("id_first").receive, store.connect(), store.connect()
    before_statement(db, "UPDATE", hold_the_lock(other))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        receive(db, ID, 7)
    other.execute("ROLLBACK")
    assert receive(db, ID, 7) is False
    assert store.total == 0
    assert store.inbox == {ID: 7}


@both_journals
def test_stock_first_doubles_when_its_second_commit_is_refused(store: Store) -> None:
    """The redelivery finds no id and works again."""
    receive, db, other = fresh("stock_first").receive, store.connect(), store.connect()
    before_statement(db, "INSERT OR IGNORE", hold_the_lock(other))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        receive(db, ID, 7)
    other.execute("ROLLBACK")
    assert store.inbox == {}
    assert receive(db, ID, 7) is True
    assert store.total == 14


@both_journals
def test_ack_early_answers_with_its_transaction_open(store: Store) -> None:
    """Nobody else sees the work, and whoever rolls back undoes it."""
    db = store.connect()
    assert fresh("ack_early").receive(db, ID, 7) is True
    assert db.in_transaction
    assert store.total == 0
    db.rollback()
    assert store.inbox == {}


def test_deferred_is_refused_rather_than_wrong(tmp_path: Path) -> None:
    """Another delivery between its look and its work: SQLite refuses the upgrade at once."""
    store = Store(tmp_path, "wal")
    receive, db, other = fresh("deferred").receive, store.connect(), store.connect()
    before_statement(db, "INSERT", lambda: receive(other, ID, 7))
    with pytest.raises(sqlite3.OperationalError, match="locked") as refused:
        receive(db, ID, 7)
    assert refused.value.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
    assert store.total == 7
    assert not db.in_transaction


def test_the_registry_lists_all_variants_and_nothing_else() -> None:
    """A file a variant; what is no variant is named here."""
    folder = VARIANTS["immediate"].path.parent
    others = {"__init__", "awaiting", "inbox", "loader", "registry", "retention"}
    files = {path.stem for path in (*folder.glob("*.py"), *folder.glob("cases/*.py"))} - others
    assert files == {name for name in VARIANTS if "+" not in name}
    assert all(name == variant.name for name, variant in VARIANTS.items())


def test_each_case_has_a_variant_and_a_repair_that_is_right() -> None:
    """Of every kind of fault that people have met; who is repaired by itself would be no repair."""
    assert {variant.case for variant in VARIANTS.values()} == {"", *CASES}
    for variant in VARIANTS.values():
        assert variant.repaired or variant.expected == "sound"
        if variant.repaired:
            assert VARIANTS[variant.repaired].expected == "sound"
            assert not VARIANTS[variant.repaired].kinds
            assert variant.repaired.rpartition("+")[2] in variant.lesson


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_says_at_once_whether_it_is_right(name: str) -> None:
    """First word and verdict agree; a wrong one says how to repair it and which violations prove it."""
    variant = VARIANTS[name]
    words = variant.lesson.replace(":", " ").replace(",", " ").split()
    assert words[0] == ("Right" if variant.expected == "sound" or "+" in name else "Wrong")
    assert ("Repair: " in variant.lesson) is (variant.expected != "sound" or name == "moved_inbox")
    assert {*variant.kinds, *variant.also, *variant.alone} <= set(Kind)
    assert {*variant.explore_kinds, *variant.crash_kinds} <= set(Kind)
    assert bool(variant.kinds) is (variant.expected == "broken") or name == "one_connection"  # on threads


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_fits_on_a_slide(name: str) -> None:
    """Its receive has about twelve lines at most below its docstring."""
    tree = ast.parse(VARIANTS[name].path.read_text(encoding="utf-8"))
    [receive] = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "receive"]
    assert ast.get_docstring(receive)
    last: Any = receive.end_lineno
    assert last - receive.body[0].lineno <= 13
