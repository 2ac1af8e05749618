"""Figures of a race, from a history made by hand."""

from __future__ import annotations

from oncebench.audit import Kind
from oncebench.messages import DEADLINE, NEVER, Delivery, History, Operation, Outcome, State
from oncebench.race import Policy, Race
from oncebench.results.schema import Failure, Latency
from oncebench.results.summary import of_race, of_variant
from oncebench.stores.sqlite import Settings
from oncebench.workload import Phase, Workload

A, D, C, L, E, U = Outcome
MS = 1_000_000


def op(
    worker: int, id: str, invoked: int, took: int | None, outcome: Outcome, delivery: int, **more: object
) -> Operation:
    """Times in milliseconds; each worker's deliveries are numbered after one of warm-up."""
    completed = NEVER if took is None else (invoked + took) * MS
    return Operation(worker, id, 5, invoked * MS, completed, outcome, delivery=1 + delivery, **more)  # type: ignore[arg-type]


def made(
    operations: list[Operation], store: State, drain: list[Operation] | None = None, **changes: object
) -> Race:
    """A race of two workers: one gated phase of two deliveries, then three free ones, for each."""
    lists = [[Delivery("x", 5)] * 2] * 2
    race = Race("mine", Workload(workers=2), Settings(), Policy())
    race.phases = [
        Phase("warm-up", [[Delivery("w", 1)]] * 2),
        Phase("same", lists, gated=True),
        Phase("spread", [[Delivery("x", 5)] * 3] * 2),
    ]
    race.history = History.of(operations)
    race.drained = History.of(operations + (drain or []))
    race.before = State(0)
    race.between = race.after = store
    race.seconds = 1.5
    for name, value in changes.items():
        setattr(race, name, value)
    return race


SOUND = [
    op(0, "a", 0, 4, A, 0),
    op(1, "a", 1, 4, D, 0),
    op(0, "b", 10, 1, L, 1, detail="SQLITE_BUSY"),
    op(0, "b", 12, 2, A, 1),
    op(1, "b", 11, 1, L, 1, detail="SQLITE_BUSY_SNAPSHOT"),
    op(0, "c", 20, 2, A, 2),
    op(1, "c", 21, 8, D, 2),
    op(0, "c", 23, 1, D, 3),
    op(1, "d", 30, 2, A, 3),
    op(0, "d", 40, 10, D, 4),
    op(1, "d", 33, 1, E, 4, detail="ValueError"),
]
STORE = State(20, [("a", 5), ("b", 5), ("c", 5), ("d", 5)])


def test_every_call_is_in_one_tally_and_lock_errors_are_completions_of_none() -> None:
    """Deliveries, retried deliveries, retries, and what is left to the drain."""
    result = of_race(made(SOUND, STORE, examples={"ValueError": "ValueError: no"}))
    tallies = result.tallies
    assert (tallies.deliveries, tallies.planned) == (10, 10)
    assert (tallies.applied, tallies.duplicate, tallies.conflict) == (4, 4, 0)
    assert tallies.locked == {"SQLITE_BUSY": 1, "SQLITE_BUSY_SNAPSHOT": 1}
    assert tallies.errors == {"ValueError": Failure(1, "ValueError: no")}
    assert (tallies.retried, tallies.retries, tallies.unanswered) == (1, 1, 2)
    assert (result.effects.expected, result.effects.observed, result.effects.ids) == (20, 20, 4)
    assert (result.ids, result.overlapped_ids) == (4, 3)
    assert result.verdict == "sound"


def test_speed_is_taken_from_the_free_running_phase() -> None:
    """Gated rounds do not count; completions and lock errors have latencies of their own."""
    result = of_race(made(SOUND, STORE))
    assert result.measured == "spread"
    assert result.throughput == 5 / 0.030
    assert (result.latency.count, result.latency.max, result.latency.p50) == (5, 10 * MS, 2 * MS)
    assert (result.lock_latency.count, result.lock_latency.max) == (2, 1 * MS)
    assert sum(count for _, count in result.latency.histogram) == 5
    for lower, _ in result.latency.histogram:
        assert 1 * MS * 0.9 <= lower <= 10 * MS


def test_fairness_is_measured_when_the_first_worker_is_through() -> None:
    """By then worker 1 had all its answers, worker 0 two of three; waits include the time of retries."""
    fairness = of_race(made(SOUND, STORE)).fairness
    assert fairness.completions == [2, 2]
    assert fairness.longest_wait == [10 * MS, 8 * MS]


def test_pass_that_raced_nothing_is_unknown() -> None:
    """One after the other: nothing wrong, nothing shown."""
    result = of_race(made([op(0, "a", 0, 1, A, 0), op(1, "a", 5, 1, D, 0)], State(5, [("a", 5)])))
    assert (result.verdict, result.overlapped_ids) == ("unknown", 0)
    assert "raced nothing" in result.because[-1]


def test_broken_stays_broken_whatever_is_missing() -> None:
    """An interruption does not wash a proof away; without one it is unknown."""
    broken = made(SOUND, State(25, STORE.inbox), interrupted=True)
    assert of_race(broken).verdict == "broken"
    cut = of_race(made(SOUND, STORE, interrupted=True, after=None))
    assert (cut.verdict, cut.because) == ("unknown", ["it was interrupted"])
    assert cut.interrupted


def test_unreadable_store_is_unknown_with_its_reason() -> None:
    """Never a verdict from a corrupt file."""
    race = made(SOUND, STORE, between=None, after=None, notes=["no verdict can rest on this: it is corrupt"])
    assert of_race(race).verdict == "unknown"
    assert of_race(race).because == ["no verdict can rest on this: it is corrupt"]


def test_stuck_is_the_receivers_unless_the_disk_was_full() -> None:
    """The drain's last word decides whose fault it is."""
    for detail, verdict in (
        ("ValueError", "broken"),
        ("SQLITE_FULL", "unknown"),
        ("SQLITE_READONLY", "unknown"),
    ):
        outcome = U if detail == "SQLITE_FULL" else E
        drain = [op(2, "d", 60 + n, 1, outcome, 0, detail=detail) for n in range(5)]
        result = of_race(made(SOUND, STORE, drain, stuck=[len(SOUND) + 4]))
        assert result.verdict == verdict
        assert ("stuck" in result.violation_counts) == (verdict == "broken")
        assert result.drain.stuck == 1


def test_call_that_hung_is_stuck_though_the_drain_got_through() -> None:
    """A receiver that did not come back did not, whatever a later call does."""
    hung = [*SOUND[:-1], op(1, "d", 33, None, U, 4, detail=DEADLINE)]
    result = of_race(made(hung, STORE, [op(2, "d", 60, 1, D, 0)]))
    assert result.violation_counts == {Kind.STUCK: 1}
    [violation] = result.violations
    assert violation.operations[0].completed is None


def test_what_the_drain_answered_is_apart_from_the_tallies() -> None:
    """Its operations are judged, not counted among the race's."""
    drain = [op(2, "d", 60, 1, D, 0), op(2, "b", 62, 1, D, 1)]
    result = of_race(made(SOUND, STORE, drain))
    assert (result.drain.redelivered, result.drain.duplicate, result.drain.stuck) == (2, 2, 0)
    assert result.tallies.duplicate == 4
    assert result.verdict == "sound"


def test_races_of_a_variant_add_up_and_the_worst_verdict_wins() -> None:
    """Sums of counts; figures of speed stay with their journal mode."""
    sound, broken = of_race(made(SOUND, STORE)), of_race(made(SOUND, State(25, STORE.inbox)))
    variant = of_variant("mine", "sound", [sound, broken])
    assert variant.verdict == "broken"
    assert variant.tallies.deliveries == 20
    assert variant.tallies.locked == {"SQLITE_BUSY": 2, "SQLITE_BUSY_SNAPSHOT": 2}
    assert variant.effects.observed == 45
    assert variant.overlapped_ids == 6
    assert len(variant.violations) == len(broken.violations) > 0


def test_empty_race_has_figures_too() -> None:
    """Interrupted before the first answer."""
    result = of_race(made([], State(0), interrupted=True))
    assert result.verdict == "unknown"
    assert result.latency == Latency()
    assert result.throughput == 0
