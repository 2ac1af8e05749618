"""Open load: who waits for a worker that stands still waits, though nobody called yet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from oncebench.messages import BadInput, Delivery, History, Operation, Outcome, State
from oncebench.race import Policy, Race, race
from oncebench.receivers.loader import load
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Settings
from oncebench.workload import Phase, Workload

MS = 1_000_000
HERE = Path(__file__).parent
SINCE = 5_000 * MS
"""When the phase began."""


def recorded(stall: int, rate: float) -> Race:
    """One worker, 100 deliveries due every 10 ms, each taking 1 ms but the twentieth, and what came of it."""
    operations, free = [], 0
    for n in range(100):
        began = max(SINCE + 10 * MS * n, free)
        free = began + (stall if n == 20 else MS)
        operations.append(Operation(0, f"spread-{n}", 1, began, free, Outcome.APPLIED, delivery=1 + n))
    run = Race("mine", Workload(workers=1, phases=("spread",), rate=rate), Settings(), Policy())
    run.phases = [
        Phase("warm-up", [[Delivery("w", 1)]]),
        Phase("spread", [[Delivery("x", 1)] * 100], rate=rate),
    ]
    run.history = run.drained = History.of(operations)
    run.before = State(0)
    run.between = run.after = State(100, [(f"spread-{n}", 1) for n in range(100)])
    run.offered_since = SINCE if rate else 0
    return run


def test_stall_is_seen_by_all_that_were_due_meanwhile() -> None:
    """Over 50 deliveries wait for it in an open load; read as a closed loop the same columns show one."""
    open_, closed = of_race(recorded(500 * MS, 100)), of_race(recorded(500 * MS, 0))
    waited = [count for bound, count in open_.latency.histogram if bound > 5 * MS]
    assert sum(waited) > 50
    assert open_.latency.p90 > 400 * MS
    assert open_.latency.max == closed.latency.max == 500 * MS
    assert (closed.latency.p50, closed.latency.p90, closed.latency.p99) == (MS, MS, MS)
    assert (closed.load.kind, closed.load.rate) == ("closed loop", 0)
    assert (open_.load.kind, open_.load.rate) == ("open load", 100)
    assert round(open_.load.reached) == 100
    assert open_.notes == []


def test_without_a_stall_both_say_the_same() -> None:
    """Every delivery began when it was due."""
    open_, closed = of_race(recorded(MS, 100)), of_race(recorded(MS, 0))
    assert open_.latency == closed.latency


def test_rate_that_was_not_kept_is_said() -> None:
    """The worker was busy to the end, and began its last delivery four seconds late."""
    result = of_race(recorded(5_000 * MS, 100))
    assert result.load.reached < 25
    assert "100/s were offered and 19/s handed over" in result.notes[0]


def test_retries_wait_from_the_same_moment() -> None:
    """A delivery that was refused twice has waited since it was due."""
    run = recorded(MS, 100)
    calls = [
        Operation(
            0, "spread-0", 1, SINCE + n * 3 * MS, SINCE + (n * 3 + 1) * MS, outcome, "SQLITE_BUSY", delivery=1
        )
        for n, outcome in enumerate((Outcome.LOCKED, Outcome.LOCKED, Outcome.APPLIED))
    ]
    run.history = run.drained = History.of(calls)
    result = of_race(run)
    assert result.latency.max == 7 * MS
    assert result.lock_latency.max == MS


def due(ended: Race) -> npt.NDArray[np.int64]:
    """Nanoseconds from when each delivery of `spread` was due to its call and to its completion."""
    at = next(n for n, phase in enumerate(ended.phases) if phase.rate)
    workers, history = ended.workload.workers, ended.history
    first = [sum(len(phase.deliveries[w]) for phase in ended.phases[:at]) for w in range(workers)]
    rows = [row for row, id in enumerate(history.id) if history.ids[id].startswith("spread")]
    moments = [
        ended.offered_since
        + int(((history.delivery[row] - first[w]) * workers + w) * 1e9 / ended.workload.rate)
        for row in rows
        for w in [int(history.worker[row])]
    ]
    return np.array([history.invoked[rows] - moments, history.completed[rows] - moments])


def test_real_workers_hand_over_nothing_before_it_is_due_and_count_from_then() -> None:
    """In each of two workers eleven deliveries come due while it stands still; all of them waited for it."""
    workload = Workload(3, workers=2, ids=2, phases=("same", "spread"), rate=80)
    receiver = load(f"{HERE / 'misbehaving.py'}:stalls_once_for_half_a_second")
    ended = race(receiver, workload, Settings(synchronous="off"), Policy())
    called, completed = due(ended)
    assert len(called) == 32
    assert called.min() >= 0
    assert (completed > 200 * MS).sum() >= 24
    result = of_race(ended)
    assert result.load.kind == "open load"
    assert result.latency.p50 > 200 * MS
    assert result.latency.max == completed.max()


def test_worker_that_is_started_again_keeps_to_the_same_moments() -> None:
    """Whether its predecessor was killed before the part with the rate or in it."""
    workload = Workload(3, workers=2, ids=3, phases=("paused", "spread", "neighbours"), rate=200)
    ended = race(load("immediate"), workload, Settings(synchronous="off"), Policy(kills=4, time_limit=100))
    called, _ = due(ended)
    assert ended.kills
    assert called.min() >= 0
    assert of_race(ended).load.rate == 200


@pytest.mark.parametrize(
    ("rate", "phases", "sentence"),
    [
        (
            0.5,
            ("spread",),
            "at 0.5 deliveries a second 1,920 deliveries take 3.84e.03 s, longer than the time",
        ),
        (-1, ("spread",), "rate must be 0"),
        (float("nan"), ("spread",), "rate must be 0"),
        (5, ("same",), "add it to the workload"),
    ],
)
def test_rate_that_cannot_be_is_refused(rate: float, phases: tuple[str, ...], sentence: str) -> None:
    """Before anything is started."""
    with pytest.raises(BadInput, match=sentence):
        race(load("immediate"), Workload(phases=phases, rate=rate), Settings(), Policy())
