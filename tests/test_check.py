"""`oncebench check`: every mode on one receiver, one verdict, one page, one exit code."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from msgspec import structs

from oncebench.cli.check import check
from oncebench.results.checked import CheckRun, Mode, conclude
from oncebench.results.files import load_as
from oncebench.results.schema import Proof


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
    run = empty(modes=modes(sequential="sound", race="sound", explore="unknown", crash="sound"))
    conclude(run)
    assert (run.verdict, run.untried) == ("sound", ["not every interleaving: why explore"])
    run = empty(modes=modes(sequential="sound", race="broken", explore="unknown", crash="sound"))
    conclude(run)
    assert run.verdict == "broken"


def test_a_check_that_was_cut_short_is_never_sound() -> None:
    """Modes that were not begun are named."""
    run = empty(modes=modes(sequential="sound", race="sound"), complete=False)
    conclude(run)
    assert run.verdict == "unknown"
    assert run.because == ["explore was not begun", "crash was not begun"]


def test_a_schedule_is_the_preferred_proof_of_a_kind() -> None:
    """It can be seen again without luck."""
    violation = {
        "kind": "double_apply", "id": "m1", "message": "2 calls", "operations": [], "schedule": "AB",
        "journal": "wal", "replay": "oncebench replay t AB",
    }  # fmt: skip
    run = empty(modes=modes(race="broken", explore="broken"), explore={"violations": [violation]})
    conclude(run)
    [found] = run.found
    assert (found.kind, found.modes, found.replay) == ("double_apply", ["explore"], "oncebench replay t AB")
    assert isinstance(found.proof, Proof)


def test_a_receiver_that_forgets_at_a_restart(tmp_path: Path) -> None:
    """Broken in all four modes, the plainest proof first; each replay command shows its kind again."""
    done = oncebench("check", "memory", "--out", "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr  # as declared
    assert done.stdout.startswith("memory: broken as declared\n")
    [folder] = (tmp_path / "results").iterdir()
    run = load_as(folder, CheckRun)
    assert {mode.name: mode.verdict for mode in run.modes} == dict.fromkeys(
        ("sequential", "race", "explore", "crash"), "broken"
    )
    assert run.found[0].kind == "double_apply"
    assert run.found[0].modes == ["sequential", "explore", "crash", "race"]
    for found in run.found:
        assert found.replay in done.stdout
        assert found.kind in done.stdout
    replay = shlex.split(run.found[0].replay)[1:]
    again = oncebench(*replay, "--out", "again", cwd=tmp_path)
    assert "double_apply" in again.stdout
    shown = oncebench("show", str(folder), cwd=tmp_path)
    assert shown.stdout in done.stdout
    assert json.loads(oncebench("show", str(folder), "--json", cwd=tmp_path).stdout)["kind"] == "check"


def test_a_receiver_that_cannot_be_stepped(tmp_path: Path) -> None:
    """Sound by race and crash; the page says what was not explored; JSON has the results of its modes."""
    done = oncebench("check", "group", "--json", "--out", "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert (run["schema"], run["kind"], run["verdict"], run["expected_verdict"]) == (
        1,
        "check",
        "sound",
        "sound",
    )
    assert "another process, which explore does not step" in run["untried"][0]
    assert run["race"]["kind"] == "race"
    assert run["crash"]["kind"] == "crash"
    assert run["explore"]["verdict"] == "unknown"
    signals = {point["signal"] for point in run["crash"]["variants"][0]["points"]}
    assert signals == {"SIGKILL", "SIGTERM"}
    assert run["found"] == []


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


def test_a_receiver_that_never_comes_back_is_not_waited_for_in_every_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stuck when alone: the other modes are left out, and that is said."""
    monkeypatch.setattr(sys.modules["oncebench.cli.check"], "DEADLINE_SECONDS", 5.2)
    (tmp_path / "mine.py").write_text("import time\ndef receive(db, id, qty):\n    time.sleep(600)\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(typer.Exit) as stop:
        check("mine.py:receive", "60s", 7, tmp_path / "results", json=False, quiet=False)
    assert stop.value.exit_code == 1
    told = capsys.readouterr().out
    assert "mine.py:receive: broken, declared sound" in told
    assert "stuck" in told
    assert "not tried: race, explore, crash" in told
