"""Repeats: in turns, each one's figures kept, and a warning where they cannot be relied on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from figures import latencies, raced
from oncebench.cli.run import empty_result, race_all
from oncebench.messages import History, State
from oncebench.race import Policy, Race, coordinator
from oncebench.receivers.loader import load
from oncebench.results.repeated import instability, together
from oncebench.stores.sqlite import Settings
from oncebench.workload import Workload, plan


def test_counts_are_summed_and_speeds_are_medians() -> None:
    """A maximum is that of all; the figures of each are kept in order."""
    scales = (1.0, 3.0, 2.0)
    races = [raced(np.full(1000, int(20_000 * scale))) for scale in scales]
    whole = together(races)
    assert whole.tallies.applied == 3000
    assert whole.ids == 30
    assert whole.drain.redelivered == 3
    assert whole.fairness.completions == [3, 6]
    assert whole.fairness.longest_wait == [10, 20]
    assert (whole.latency.count, whole.latency.p99, whole.latency.max) == (3000, 40_000, 60_000)
    assert whole.throughput == races[2].throughput
    assert [one.throughput for one in whole.repeats] == [race.throughput for race in races]
    assert sum(count for _, count in whole.latency.histogram) == 3000


def test_one_race_is_what_it_was() -> None:
    """No repeats, no warnings."""
    race = raced(np.full(10, 5))
    assert together([race]) is race
    assert list(instability(race)) == []


def test_worst_verdict_wins_and_an_interrupted_race_has_no_say_in_speed() -> None:
    """What it counted is there all the same."""
    cut = raced(np.full(10, 900_000), verdict="unknown")
    cut.interrupted = True
    whole = together([raced(np.full(1000, 20_000)), cut])
    assert (whole.verdict, whole.because, whole.interrupted) == ("unknown", ["it raced nothing"], True)
    assert whole.tallies.applied == 1010
    assert (len(whole.repeats), whole.latency.p50) == (1, 20_000)
    broken = together([cut, raced(np.full(9, 9), verdict="broken")])
    assert (broken.verdict, broken.because, broken.violation_counts) == ("broken", [], {"double_apply": 1})


def test_steady_repeats_are_not_called_unstable() -> None:
    """Five, of enough completions, a few percent apart."""
    rng = np.random.default_rng(1)
    steady = [raced(latencies(rng, 4000, scale)) for scale in (1.0, 1.02, 0.98, 1.01, 0.99)]
    assert list(instability(together(steady))) == []


@pytest.mark.parametrize(
    ("scales", "count", "reason", "change"),
    [
        ((1.0, 1.0), 4000, "2 repeats are too few", "--repeat 5 or more"),
        ((1.0, 1.3, 0.7, 1.2, 0.9), 4000, "throughput ±", "quieter machine"),
        ((1.0, 1.0, 1.0, 1.0, 4.0), 4000, "p50 of one repeat 2.5 times the mean", "run it again"),
        ((1.0,) * 5, 300, "p99 of 300 completions a repeat", "--ids for 1,000 completions in spread"),
    ],
)
def test_unstable_repeats_say_why_and_what_to_change(
    scales: tuple[float, ...], count: int, reason: str, change: str
) -> None:
    """Too few, too far apart, one far from the rest, a percentile that rests on nothing."""
    rng = np.random.default_rng(2)
    sample = latencies(rng, count)
    races = [raced((sample * scale).astype(np.int64)) for scale in scales]
    warnings = list(instability(together(races)))
    assert any(reason in why and change in what for why, what in warnings), warnings


def test_repeats_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A B A B, in both journal modes each time; saved after each."""
    order: list[tuple[str, str]] = []

    def race(receiver: object, workload: Workload, settings: Settings, policy: Policy, *rest: object) -> Race:
        order.append((receiver.name, settings.journal))  # type: ignore[attr-defined]
        run = Race(receiver.name, workload, settings, policy, phases=plan(workload))  # type: ignore[attr-defined]
        run.history = run.drained = History.of([])
        run.before = run.between = run.after = State(0)
        return run

    monkeypatch.setattr(coordinator, "race", race)
    receivers = [load("immediate"), load("upsert")]
    work, policy = Workload(7, phases=("same",)), Policy()
    settings = [Settings("wal"), Settings("delete")]
    result = empty_result(receivers, work, settings, policy, None, 2)
    complete = [
        result.complete for _ in race_all(result, receivers, work, settings, policy, None, True, repeats=2)
    ]
    once = [(name, journal) for name in ("immediate", "upsert") for journal in ("wal", "delete")]
    assert order == once * 2
    assert complete == [False] * 7 + [True]
    assert [[len(race.repeats) for race in variant.races] for variant in result.variants] == [[2, 2], [2, 2]]


def test_repeats_are_saved_and_shown(tmp_path: Path) -> None:
    """By the command itself; what came of each is in run.json, what to change on the terminal."""
    command = [sys.executable, "-m", "oncebench"]
    words = [
        "run",
        "immediate",
        "--repeat",
        "2",
        "--ids",
        "4",
        "--journal",
        "wal",
        "--workload",
        "same,spread",
    ]
    ran = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 3), ran.stderr
    assert "2 repeats in turns" in ran.stdout
    assert "wal: unstable: 2 repeats are too few" in ran.stdout
    assert "--repeat 2" in ran.stdout.split("again: ")[1]
    [folder] = (tmp_path / "results").iterdir()
    run = json.loads((folder / "run.json").read_text())
    [race] = run["variants"][0]["races"]
    assert [one["deliveries"] for one in race["repeats"]] == [16 + 64, 16 + 64]
    assert race["tallies"]["deliveries"] == 160
    assert run["settings"]["repeat"] == 2
