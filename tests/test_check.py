"""`oncebench check`: every mode on one receiver, one verdict, one page, one exit code."""

from __future__ import annotations

import io
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from msgspec import structs
from numpy.random import default_rng
from rich.console import Console

from figures import latencies, raced, run_of
from oncebench.cli.check import check
from oncebench.cli.show import show
from oncebench.report.checked import render
from oncebench.results.checked import CheckRun, Mode, conclude
from oncebench.results.explored import Counterexample, ExploreVariant, Schedules
from oncebench.results.files import load_as
from oncebench.results.schema import Effects, Proof, RaceResult, Tallies


def oncebench(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "oncebench", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def empty(**changes: Any) -> CheckRun:
    """A check before anything was tried."""
    run = CheckRun(1, "check", 7, "", "", True, "t", "unknown", "sound", [], [], [], [], {})
    return structs.replace(run, **changes)


def modes(**verdicts: str) -> list[Mode]:
    return [
        Mode(name, verdict, "", 0.0, [f"why {name}"] if verdict == "unknown" else [])
        for name, verdict in verdicts.items()
    ]


@pytest.mark.parametrize(
    ("tried", "verdict"),
    [
        (modes(sequential="sound", race="sound", explore="sound", crash="sound"), "sound"),
        (modes(sequential="broken", race="sound", explore="sound", crash="sound"), "broken"),
        (modes(sequential="sound", race="sound", explore="sound", crash="broken"), "broken"),
        (modes(sequential="sound", race="sound", explore="broken", crash="unknown"), "broken"),
        (modes(sequential="sound", race="unknown", explore="sound", crash="sound"), "unknown"),
        (modes(sequential="sound", race="sound", explore="sound", crash="unknown"), "unknown"),
    ],
)
def test_the_worst_mode_decides(tried: list[Mode], verdict: str) -> None:
    """Broken before unknown before sound; an unknown one says which mode and why."""
    run = empty(modes=tried)
    conclude(run)
    assert run.verdict == verdict
    unknown = [mode.name for mode in tried if mode.verdict == "unknown"]
    assert run.because == ([f"{name}: why {name}" for name in unknown] if verdict == "unknown" else [])


def test_what_cannot_be_explored_rests_on_race_and_crash_and_is_said() -> None:
    """Not unknown for that alone; but broken if another mode says so."""
    run = empty(
        modes=modes(sequential="sound", extremes="unknown", race="sound", explore="unknown", crash="sound")
    )
    conclude(run)
    assert run.verdict == "sound"
    assert run.untried == ["quantities near 2^63-1: why extremes", "not every interleaving: why explore"]
    run = empty(modes=modes(sequential="sound", race="broken", explore="unknown", crash="sound"))
    conclude(run)
    assert run.verdict == "broken"


def test_what_exploring_left_out_is_said_although_it_is_sound() -> None:
    """A lock of the process says nothing of several processes; nor does the page, then."""
    explored = ExploreVariant(
        "t", "sound", "sound", [], Tallies(), Effects(), 1, [], Schedules(2, 2, True), 0, [], ["several"]
    )
    run = empty(modes=modes(explore="sound"), explore=explored, complete=False)
    conclude(run)
    assert run.untried == ["explore: several"]


def test_a_check_that_was_cut_short_is_never_sound() -> None:
    """Modes that were not begun are named."""
    run = empty(modes=modes(sequential="sound", extremes="sound", race="sound"), complete=False)
    conclude(run)
    assert run.verdict == "unknown"
    assert run.because == ["explore was not begun", "crash was not begun"]


def test_a_schedule_is_the_preferred_proof_of_a_kind() -> None:
    """It can be seen again without luck."""
    violation = Counterexample(
        "double_apply", "m1", "2 calls", schedule="AB", journal="wal", locks="error", preemptions=0,
        deliveries="m1:3", replay="oncebench replay t AB", schedules=1, steps=[], inbox_at_end=[],
        total_at_end=6,
    )  # fmt: skip
    explored = ExploreVariant(
        "t", "broken", "sound", [], Tallies(), Effects(), 1, [violation], Schedules(2, 2, True), 0, []
    )
    run = empty(modes=modes(race="broken", explore="broken"), explore=explored)
    conclude(run)
    [found] = run.found
    assert (found.kind, found.modes, found.replay) == ("double_apply", ["explore"], "oncebench replay t AB")
    assert isinstance(found.proof, Proof)


def test_what_races_say_of_a_receiver_is_on_the_page_once() -> None:
    """With every place it was seen in; not what extremes say, nor what is a reason already."""

    def noted(journal: str, *notes: str) -> RaceResult:
        return structs.replace(raced(latencies(default_rng(7), 9), journal), notes=list(notes))

    twice = run_of({"t": [noted("wal", "it forgets"), noted("delete", "it forgets", "it waits")]})
    reason = structs.replace(noted("wal", "a reason"), verdict="unknown", because=["a reason"])
    run = empty(
        sequential=twice, extremes=run_of({"t": [noted("wal", "no room")]}), race=run_of({"t": [reason]})
    )
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render(run))
    page = console.export_text()
    assert "\nsequential in wal mode, sequential in delete mode: it forgets\n" in page
    assert "\nsequential in delete mode: it waits\n" in page
    assert page.count("it forgets") == 1
    assert "no room" not in page
    assert "a reason" not in page


@pytest.fixture
def checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, CheckRun]]:
    """Check a receiver, in this process and with fewer messages: the exit code, the page, what was saved."""
    monkeypatch.chdir(tmp_path)
    module = sys.modules["oncebench.cli.check"]

    def run(target: str, json: bool = False, **constants: object) -> tuple[int, str, CheckRun]:
        for name, value in {"IDS": 12, "KILLS": 2, **constants}.items():
            monkeypatch.setattr(module, name, value)
        with pytest.raises(typer.Exit) as stop:
            check(target, "60s", 7, tmp_path / "results", json=json, quiet=True)
        [folder] = (tmp_path / "results").iterdir()
        show(folder, json=json)
        return stop.value.exit_code, capsys.readouterr().out, load_as(folder, CheckRun)

    return run


Checked = Callable[..., tuple[int, str, CheckRun]]


def test_a_receiver_that_forgets_at_a_restart(checked: Checked, tmp_path: Path) -> None:
    """Broken in all four modes, the plainest proof first; each replay command shows its kind again."""
    code, page, run = checked("memory")
    assert code == 0  # as declared
    assert "\nmemory: broken as declared\n" in page
    verdicts = {mode.name: mode.verdict for mode in run.modes}
    assert verdicts.pop("extremes") == "sound"  # nobody is started anew there
    assert verdicts == dict.fromkeys(("sequential", "race", "explore", "crash"), "broken")
    assert (run.found[0].kind, run.found[0].modes) == (
        "double_apply",
        ["sequential", "explore", "crash", "race"],
    )
    for found in run.found:
        assert found.replay in page
        assert found.kind in page
    again = oncebench(*shlex.split(run.found[0].replay)[1:], "--out", "again", cwd=tmp_path)
    assert "double_apply" in again.stdout


def test_a_receiver_that_cannot_be_stepped(checked: Checked, tmp_path: Path) -> None:
    """Sound by race and crash; it says what was not explored; JSON is what is saved, and has every mode."""
    code, printed, run = checked("group", json=True)
    [folder] = (tmp_path / "results").iterdir()
    assert printed == 2 * (folder / "run.json").read_text()  # from check, and from show
    assert (code, run.verdict, run.found) == (0, "sound", [])
    assert "another process, which explore does not step" in run.untried[0]
    assert run.race and run.race.kind == "race"
    assert run.explore and run.explore.verdict == "unknown"
    assert run.crash and run.crash.kind == "crash"
    assert {point.signal for point in run.crash.variants[0].points} == {"SIGKILL", "SIGTERM"}


def test_threads_are_raced_where_connections_are_made_for_them(checked: Checked) -> None:
    """One connection for all threads: nothing is wrong where a process has one worker."""
    code, page, run = checked(f"{Path(__file__).parent / 'threaded.py'}:OneForAll")
    assert code == 1
    verdicts = {mode.name: mode.verdict for mode in run.modes}
    assert verdicts["threads"] == "broken"
    assert {verdicts[name] for name in ("sequential", "race", "crash")} == {"sound"}
    assert "4 threads" in page


def test_a_receiver_that_never_comes_back_is_not_waited_for_in_every_mode(
    checked: Checked, tmp_path: Path
) -> None:
    """Stuck when alone: the other modes are left out, and that is said."""
    (tmp_path / "mine.py").write_text("import time\ndef receive(db, id, qty):\n    time.sleep(600)\n")
    code, page, _ = checked("mine.py:receive", DEADLINE_SECONDS=5.2)
    assert code == 1
    assert "mine.py:receive: broken, declared sound" in page
    assert "stuck" in page
    assert "not tried: extremes, race, explore, crash" in page


def test_ctrl_c_keeps_what_is_there(tmp_path: Path) -> None:
    """Saved, printed, unknown, and 130."""
    command = [sys.executable, "-m", "oncebench", "check", "immediate", "--out", "results"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("race immediate"):
                break
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    [folder] = (tmp_path / "results").iterdir()
    run = load_as(folder, CheckRun)
    assert (run.verdict, run.complete) == ("unknown", False)
    assert run.modes[0].verdict == "sound"
    assert "crash was not begun" in run.because
    assert "immediate: unknown" in out
