"""`oncebench replay` and `oncebench explore` on the command line: what they print, what they exit with."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from oncebench.explore.plan import Plan, moves
from oncebench.explore.strategies import play_chosen, play_told, with_preemptions
from oncebench.explore.timeline import timeline
from oncebench.messages import BadInput
from oncebench.results.explored import ExploreRun, steps_of
from oncebench.results.files import load_as
from oncebench.testing.exploration import USUAL, Setting
from oncebench.testing.exploring import play

Ran = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def oncebench(tmp_path: Path) -> Ran:
    """The command, in a folder of the test's own."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "oncebench", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    return run


def shown(target: str, schedule: str, setting: Setting = USUAL) -> str:
    plan = Plan.of("same", 2)
    run, _ = play(target, plan, lambda at: play_told(at, moves(schedule, 2)), setting, recording=True)
    return timeline(run).plain


def test_a_timeline_has_a_column_for_each_worker_and_what_others_see() -> None:
    lines = shown("naive", "AABBBA").splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["A:", "(m1,", "3)", "B:", "(m1,", "3)"]
    column = lines[0].index("B:")
    assert [line.find("INSERT") for line in lines if "INSERT" in line] == [column, 4]
    assert [line.strip() for line in lines if "total" in line and "UPDATE" not in line] == [
        "inbox empty · total 0",
        "inbox empty · total 3",
        "inbox empty · total 6",
        "inbox m1: 3 · total 6",
        "at the end: inbox m1: 3 · total 6",
    ]


def test_a_timeline_says_who_holds_waits_and_is_refused() -> None:
    waiting = shown("immediate", "AABAAABBB", Setting("wal", "wait"))
    assert waiting.count("waits (SQLITE_BUSY)") == 1
    assert "has the write lock" in waiting
    refused = shown("deferred", "AABBABABA", Setting("delete", "error"))
    assert "refused: SQLITE_BUSY" in refused
    assert "transaction open" in refused
    assert "redelivered, since not answered" in refused


def test_a_timeline_as_data_has_the_same_steps() -> None:
    plan = Plan.of("death", 2)
    run, _ = play("id_first", plan, lambda at: play_told(at, moves("AA!AABB", 2)), recording=True)
    steps = steps_of(run)
    assert [step.move for step in steps] == ["A", "A!", "A", "A", "B", "B"]
    assert [step.status for step in steps] == ["ok", "killed", "ok", "ok", "ok", "ok"]
    assert [step.answer for step in steps] == ["", "", "", "duplicate", "", "duplicate"]
    assert (steps[0].inbox, steps[0].total, steps[0].result) == ([("m1", 3)], 0, "1 row")


def test_more_workers_than_fit_are_still_shown() -> None:
    plan = Plan.of("distinct", 8)
    run, _ = play("upsert", plan, lambda at: play_chosen(at, with_preemptions({})), recording=True)
    text = " ".join(timeline(run).plain.split())
    assert all(f"{name}: (m{nth}, 3)" in text for nth, name in enumerate("ABCDEFGH", 1))


def test_replay_prints_the_timeline_and_the_verdict(oncebench: Ran) -> None:
    ran = oncebench("replay", "naive", "AABBBA")
    assert ran.returncode == 0, ran.stderr  # broken, as it declares
    assert "⇒ True" in ran.stdout
    assert "naive: broken" in ran.stdout
    assert "double_apply m1: 2 calls changed the total" in ran.stdout


def test_replay_as_json(oncebench: Ran) -> None:
    ran = oncebench("replay", "naive", "AABBBA", "--json")
    told = json.loads(ran.stdout)
    assert told["verdict"] == "broken"
    assert told["violations"][0]["kind"] == "double_apply"
    assert len(told["steps"]) == 6


def test_explore_exits_with_0_when_all_is_as_declared(oncebench: Ran) -> None:
    ran = oncebench("explore", "naive", "immediate", "--scenario", "same")
    assert ran.returncode == 0, ran.stderr
    assert "naive: broken as declared · 80 of 80 schedules" in ran.stdout
    assert "immediate: sound as declared · 40 of 40 schedules" in ran.stdout
    assert "oncebench replay naive AABBBA" in ran.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["explore", f"{__file__}:anything"], 1),
        (["explore", "immediate", "--most", "2", "-q"], 3),
        (["explore", "group", "-q"], 0),
        (["explore", "nobody"], 2),
        (["explore", "naive", "--schedules", "0"], 2),
        (["explore", "naive", "--scenario", "same", "--deliveries", "m1:3"], 2),
        (["replay", "naive", "AABZ"], 2),
        (["replay", f"{__file__}:anything", "AB"], 1),
    ],
)
def test_exit_codes(oncebench: Ran, words: list[str], code: int) -> None:
    ran = oncebench(*words)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def anything(db: object, id: str, qty: int) -> bool:
    """A receiver that is wrong: it does nothing and says that it did."""
    db.execute("SELECT 1").fetchone()  # type: ignore[attr-defined]
    return True


def test_explore_saves_what_it_prints(oncebench: Ran, tmp_path: Path) -> None:
    """One form: printed as JSON, saved, read again by `show`; with the shared keys and a timeline to draw."""
    printed = oncebench(
        "explore", "immediate", "naive", "--scenario", "same", "--json", "--out", "kept"
    ).stdout
    [folder] = (tmp_path / "kept").iterdir()
    assert printed == (folder / "run.json").read_text()
    assert printed == oncebench("show", str(folder), "--json").stdout
    right, wrong = load_as(folder, ExploreRun).variants
    assert (right.schedules.run, right.schedules.total, right.schedules.complete) == (40, 40, True)
    assert right.tallies.locked == {"SQLITE_BUSY": 16}
    assert right.effects.expected == right.effects.observed == 40 * 3
    assert right.violations == []
    [violation] = wrong.violations
    assert (violation.kind, violation.schedule) == ("double_apply", "AABBBA")
    assert violation.replay == "oncebench replay naive AABBBA"
    assert [step.worker for step in violation.steps] == list("AABBBA")
    assert (violation.steps[-1].inbox, violation.total_at_end) == ([("m1", 3)], 6)
    assert violation.replay in oncebench("show", str(folder)).stdout


def test_a_plan_that_cannot_be() -> None:
    with pytest.raises(BadInput, match="there is no scenario"):
        Plan.of("sme")
    with pytest.raises(BadInput, match="27 workers"):
        Plan.of("same", 27)
