"""The documented receivers on other people's drivers are sound in every mode; their wrong twins are not."""

import ast
from pathlib import Path
from signal import SIGKILL

import pytest

from oncebench.audit import Kind, Verdict
from oncebench.crash.campaign import crash
from oncebench.explore.plan import Plan
from oncebench.explore.strategies import play_told
from oncebench.race import Policy, race
from oncebench.receivers.loader import load
from oncebench.results.crashed import of_crashes
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Settings
from oncebench.testing import assert_once, explore
from oncebench.testing.exploring import play
from oncebench.workload import Workload

HERE = Path(__file__).parent
EXAMPLES = [f"{path}:Receiver" for path in sorted((HERE.parents[1] / "docs" / "examples").glob("*_inbox.py"))]
WRONG = ["OnAiosqlite", "OnSession", "OnAsyncSession", "OnPeewee"]
PATIENCE = 30.0


def wrong(name: str) -> str:
    return f"{HERE / 'wrong.py'}:{name}"


def name_of(target: str) -> str:
    return Path(target).name


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_is_explored_and_sound(example: str) -> None:
    """On as many schedules as the reference has, or more: one seen asleep on a busy machine adds some."""
    part = {"plans": ["same", "death"], "journals": ["delete"], "locks": ["wait"], "preemptions": 1}
    result = assert_once(example, patience=PATIENCE, **part)
    assert result.complete
    assert (result.total or 0) >= (assert_once("immediate", **part).total or 0)


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_is_raced_and_sound(example: str) -> None:
    """With refusals too: whichever thread a driver keeps its connection on, it loses its busy timeout."""
    workload = Workload(seed=3, ids=12, phases=("same", "distinct", "impatient"))
    result = of_race(race(load(example), workload, Settings(synchronous="off"), Policy(deadline=30)))
    assert result.verdict == "sound", (result.violations, result.because)
    assert result.tallies.locked


@pytest.mark.parametrize("example", [e for e in EXAMPLES if "sqlalchemy_inbox" not in e], ids=name_of)
def test_an_example_is_killed_and_sound(example: str) -> None:
    """After each statement, on whichever thread it runs; SQLAlchemy once, since it takes long to import."""
    settings = Settings("delete", "off", busy_timeout=0.5)
    ended = crash(load(example), settings, deadline=30, signals=(SIGKILL,))
    result = of_crashes(example, "sound", [ended])
    assert result.verdict == "sound", [point for point in result.points if point.verdict != "sound"]
    told = [point.statement for point in result.points if point.delivery == "first"]
    assert {"BEGIN IMMEDIATE", "COMMIT"} <= set(told)


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_is_short(example: str) -> None:
    """15 to 25 lines of code."""
    tree = ast.parse(Path(example.partition(":")[0]).read_text())
    code = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.ExceptHandler)}
    assert 14 <= len(code) <= 25


@pytest.mark.parametrize("name", WRONG)
def test_its_wrong_twin_is_found_out_by_exploring(name: str) -> None:
    """By the effect, in few schedules."""
    result = explore(
        wrong(name), plans=["same", "distinct"], journals=["wal"], locks=["error"], patience=PATIENCE
    )
    assert result.verdict is Verdict.BROKEN
    assert {Kind.DOUBLE_APPLY, Kind.RECORD_EFFECT_MISMATCH} & set(result.failures)


@pytest.mark.parametrize("name", ["OnAiosqlite", "OnSession"])
def test_its_wrong_twin_is_found_out_in_a_race(name: str) -> None:
    """By the effect."""
    workload = Workload(seed=3, ids=40, phases=("same", "distinct", "paused"))
    result = of_race(race(load(wrong(name)), workload, Settings(synchronous="off"), Policy(deadline=30)))
    assert result.verdict == "broken"
    assert {"double_apply", "record_effect_mismatch"} & set(result.violation_counts)


def test_what_a_driver_adds_is_a_step() -> None:
    """The BEGIN before the first write, after the look; the ROLLBACK of a pool."""

    def ran(target: str, schedule: str, deliveries: str) -> list[str]:
        run, _ = play(
            target, Plan.parse(deliveries), lambda at: play_told(at, tuple(schedule)), recording=True
        )
        return [step.statement.split()[0] for step in run.steps]

    session = ["SELECT", "SELECT", "BEGIN", "INSERT", "UPDATE", "COMMIT"]
    for name in ("OnSession", "OnAsyncSession"):
        assert ran(wrong(name), "AAAAAABBBBBB", "m1:3/m2:3") == 2 * session
    immediate = ["BEGIN", "SELECT", "INSERT", "UPDATE", "COMMIT"]
    for example in EXAMPLES:
        assert ran(example, "AAAAABBB", "m1:3/m1:4") == [*immediate, "BEGIN", "SELECT", "ROLLBACK"]
