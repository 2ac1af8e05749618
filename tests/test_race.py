"""Races with real processes: every receiver gets the verdict it deserves, for the right reason."""

import sys
from pathlib import Path

import msgspec
import pytest

from oncebench.messages import BadInput, History, Outcome
from oncebench.race import Policy, Race, race
from oncebench.receivers.loader import load
from oncebench.receivers.registry import LESSON, VARIANTS
from oncebench.results import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Journal, Settings
from oncebench.workload import Workload

HERE = Path(__file__).parent
QUICK = Policy(deadline=10)


def raced(
    target: str,
    journal: Journal = "wal",
    ids: int = 40,
    policy: Policy = QUICK,
    path: Path | None = None,
    busy_timeout: float = 5.0,
    workers: int = 4,
    phases: tuple[str, ...] = Workload().phases,
) -> tuple[Race, RaceResult]:
    """A small race in each phase, with the figures that come of it."""
    workload = Workload(seed=3, ids=ids, workers=workers, phases=phases)
    settings = Settings(journal=journal, synchronous="off", busy_timeout=busy_timeout)
    ended = race(load(target), workload, settings, policy, path)
    return ended, of_race(ended)


def own(name: str) -> str:
    return f"{HERE / 'their_own.py'}:{name}"


def misbehaving(name: str) -> str:
    return f"{HERE / 'misbehaving.py'}:{name}"


def tallied(result: RaceResult) -> int:
    """All calls, by what became of them."""
    t = result.tallies
    return t.applied + t.duplicate + t.conflict + sum(t.locked.values()) + t.error + t.indeterminate


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("name", LESSON)
def test_variant_gets_its_declared_verdict(name: str, journal: Journal) -> None:
    """Every shipped variant, in both journal modes, with the kinds of violation it is known for."""
    variant = VARIANTS[name]
    _, result = raced(name, journal, ids=80)
    assert result.verdict == variant.expected, result.violations
    assert set(variant.kinds) <= set(result.violation_counts)
    assert tallied(result) == result.tallies.deliveries + result.tallies.retries
    assert result.tallies.deliveries == result.tallies.planned
    for violation in result.violations:
        assert violation.operations or not violation.id
    if variant.expected == "sound":
        assert result.effects.expected == result.effects.observed
        assert result.effects.witnessed in (result.effects.ids, None)  # a schema of its own has no witness


def test_naive_is_proved_by_two_operations_that_overlapped() -> None:
    """The smallest proof names one id, two calls in flight at once, and the sums."""
    _, result = raced("naive", phases=("same", "paused"), ids=40)
    proof = next(v for v in result.violations if v.kind == "double_apply")
    first, second = proof.operations
    assert first.id == second.id == proof.id
    assert first.worker != second.worker
    assert first.completed is not None
    assert first.invoked <= second.invoked <= first.completed
    assert "effects of" in proof.message
    assert result.effects.observed > result.effects.expected


RIGHT = [
    "Ledger",
    "LegacyTransactions",
    "counts_total_changes",
    "brings_a_second_connection",
    "tries_again_itself",
    "adds_one_by_one",
    "in_a_script_and_savepoint",
    "helps_the_others_out",
    "tries_again_blindly",
    "reads_rows_as_dicts",
    "closes_what_it_was_given",
    "has_a_trigger_of_its_own",
    pytest.param(
        "Autocommit", marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="needs Python 3.12")
    ),
]


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("name", RIGHT)
def test_right_receiver_of_somebody_else_is_not_accused(name: str, journal: Journal) -> None:
    """Own schemas, drivers' habits, own retries: all sound."""
    _, result = raced(own(name), journal)
    assert result.verdict == "sound", (result.violations, result.because)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NaiveLedger", "double_apply"),
        ("LegacyLookFirst", "double_apply"),
        ("sum_in_python", "record_effect_mismatch"),
        ("folds_case", "acked_but_lost"),
        ("cuts_long_ids", "acked_but_lost"),
        ("makes_a_key_for_each_attempt", "double_apply"),
        ("gives_up_silently", "acked_but_lost"),
        ("hides_other_failures", "acked_but_lost"),
        ("lock_of_one_process", "double_apply"),
        ("prunes_early", "double_apply"),
        ("reads_lastrowid", "double_apply"),
        ("runs_a_script", "record_effect_mismatch"),
        ("opens_anew_and_swallows", "acked_but_lost"),
        ("claims_and_insists", "wrong_answer"),
    ],
)
def test_wrong_receiver_of_somebody_else_is_caught(name: str, kind: str) -> None:
    """The broken twins of the above."""
    _, result = raced(own(name))
    assert result.verdict == "broken"
    assert kind in result.violation_counts


def test_failure_after_the_commit_is_a_remark() -> None:
    """A call that failed although its work was done: redelivery finds it, so nothing is wrong."""
    _, result = raced(misbehaving("raises_after_the_commit"))
    assert result.verdict == "sound"
    assert result.tallies.errors["RuntimeError"].count == result.tallies.error > 0
    assert result.drain.duplicate > 0
    assert {remark.kind for remark in result.remarks} == {"ghost_apply"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("raises", "ValueError"),
        ("exits", "SystemExit"),
        ("is_interrupted", "KeyboardInterrupt"),
        ("returns_none", "returned NoneType"),
        ("returns_one", "returned int"),
    ],
)
def test_anything_but_true_and_false_is_an_error(name: str, kind: str) -> None:
    """Only True and False are answers; the first example is kept; never answered is stuck."""
    _, result = raced(misbehaving(name), ids=4, phases=("same",))
    assert result.tallies.error == result.tallies.deliveries
    assert list(result.tallies.errors) == [kind]
    assert result.tallies.errors[kind].example
    assert result.verdict == "broken"
    assert "stuck" in result.violation_counts


def test_left_open_on_conflict_and_on_a_refused_commit() -> None:
    """A transaction that outlives its call is seen; the same code without the fault is `immediate`."""
    _, result = raced(misbehaving("leaves_open_on_conflict"))
    assert "left_open" in result.violation_counts
    _, result = raced(misbehaving("ignores_a_refused_commit"), "delete", ids=80)
    assert "left_open" in result.violation_counts


def test_hanging_call_ends_the_worker_not_the_race() -> None:
    """Killed at the deadline: indeterminate, and stuck by name; the ids of the rounds before stay applied."""
    ended, result = raced(
        misbehaving("sleeps_for_ever_on_one_id"),
        policy=Policy(deadline=1),
        busy_timeout=0.5,
        phases=("same",),
        ids=5,
    )
    assert result.tallies.indeterminate == 4
    assert result.tallies.deliveries == 12
    assert "stuck" in result.violation_counts
    assert any("did not come back within 1 s" in note for note in result.notes)
    assert {id for id, _ in ended.between.inbox if not id.startswith("warm")} == {"same-0", "same-1"}  # type: ignore[union-attr]


def test_receiver_that_never_answers_is_stuck() -> None:
    """Even the warm-up does not come back; the race ends all the same."""
    _, result = raced(
        misbehaving("never_answers"), policy=Policy(deadline=1), busy_timeout=0.5, phases=("same",), ids=2
    )
    assert result.verdict == "broken"
    assert list(result.violation_counts) == ["stuck"]


def test_killed_worker_leaves_one_indeterminate_delivery() -> None:
    """SIGKILL after the commit: no answer, redelivered in the drain, applied once."""
    ended, result = raced(misbehaving("kills_itself_once"), phases=("same",), ids=8)
    assert result.verdict == "sound", result.violations
    assert result.tallies.indeterminate == 1
    assert result.tallies.indeterminates == {
        "its worker died": result.tallies.indeterminates["its worker died"]
    }
    assert result.tallies.deliveries == 4 * 3 + 4 + 3 * 4
    assert result.notes == [f"worker {_dead(ended.history)} ended by signal 9"]


def _dead(history: History) -> int:
    [row] = (history.outcome == Outcome.INDETERMINATE).nonzero()[0].tolist()
    return history[row].worker


def test_output_of_a_receiver_reaches_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    """Megabytes on both streams neither block the race nor show up."""
    _, result = raced(misbehaving("prints_megabytes"), phases=("same", "paused"), ids=40)
    assert result.verdict == "sound", (result.because, result.notes)
    assert capfd.readouterr() == ("", "")


def test_lock_errors_retries_and_completions_are_counted_apart() -> None:
    """Retried deliveries and retries are figures of their own; what is refused for good is drained."""
    _, once = raced("deferred", policy=Policy(max_tries=1))
    assert once.tallies.retries == once.tallies.retried == 0
    assert sum(once.tallies.locked.values()) == once.tallies.unanswered > 0
    assert once.drain.redelivered > 0
    _, again = raced("deferred", policy=Policy(max_tries=50))
    assert 0 < again.tallies.retried <= again.tallies.retries
    assert sum(again.tallies.locked.values()) == again.tallies.retries + again.tallies.unanswered
    assert again.tallies.unanswered < once.tallies.unanswered
    for result in (once, again):
        assert result.lock_latency.count == sum(result.tallies.locked.values())
        assert result.verdict == "sound"


def test_one_worker_races_nothing() -> None:
    """A pass that raced nothing is unknown and says so."""
    _, result = raced("immediate", workers=1, ids=5)
    assert result.overlapped_ids == 0
    assert result.verdict == "unknown"
    assert "raced nothing" in result.because[0]


def test_without_a_witness_the_sums_decide() -> None:
    """The witness can be left out; naive is still caught, immediate still sound."""
    policy = Policy(watched=False, deadline=10)
    _, result = raced("naive", policy=policy)
    assert result.effects.witnessed is None
    assert "double_apply" in result.violation_counts
    _, result = raced("immediate", policy=policy)
    assert result.verdict == "sound"


def test_effective_settings_are_read_back_from_every_worker() -> None:
    """What the connections really ran with."""
    _, result = raced("immediate", "delete", ids=4, busy_timeout=0.25)
    assert result.effective == [("delete", "off", 0.25)] * 4


def test_same_seed_same_deliveries() -> None:
    """Two races hand each worker the same messages in the same order."""
    first, _ = raced("immediate", ids=6)
    second, _ = raced("immediate", ids=6)
    assert first.phases == second.phases
    for worker in range(4):
        messages = [
            [(e.history.ids[i], q) for i, q in zip(e.history.id[rows], e.history.qty[rows], strict=True)]
            for e in (first, second)
            for rows in [e.history.worker == worker]
        ]
        assert messages[0] == messages[1]


def test_deadline_must_exceed_the_busy_timeout() -> None:
    """Otherwise a worker that still waits would be taken for one that hangs."""
    with pytest.raises(BadInput, match="longer than the busy timeout"):
        raced("immediate", policy=Policy(deadline=1), busy_timeout=5)


def test_strange_exceptions_are_tallied_and_told() -> None:
    """Neither their text nor their cause can end the worker or spoil the saved form."""
    from oncebench.results.schema import Tallies
    from oncebench.results.summary import of_variant

    _, result = raced(misbehaving("raises_the_unspeakable"), ids=8, phases=("same", "paused"))
    assert set(result.tallies.errors) == {"Unspeakable", "ValueError"}
    assert isinstance(of_variant("x", "sound", [result]).tallies, Tallies)
    assert result.tallies.deliveries == result.tallies.planned
    msgspec.json.encode(result)


def test_fork_is_named() -> None:
    """No verdict rests on connections that were carried over."""
    _, result = raced(misbehaving("forks_with_a_connection"), ids=8, phases=("same", "paused"))
    assert result.verdict != "sound"
    assert any("forks while it holds a connection" in reason for reason in result.because)


def test_part_of_the_workload_that_nobody_came_to_is_told() -> None:
    """A race whose last part never ran did not show what that part is for."""
    ended, result = raced("immediate", phases=("same", "paused"), ids=40)
    assert result.verdict == "sound"
    ended.phases.append(ended.phases[-1])
    again = of_race(ended)
    assert again.verdict == "unknown"
    assert "nothing was delivered in the part paused of the workload" in again.because


def test_patience_of_other_connections_is_taken_and_given_back() -> None:
    """Refusals come in the impatient part only, whoever opened the connection."""
    for name in ("Ledger", "brings_a_second_connection"):
        _, result = raced(own(name), phases=("same", "spread"), ids=20)
        assert result.tallies.locked == {}
        _, result = raced(own(name), phases=("same", "impatient"), ids=40)
        assert sum(result.tallies.locked.values()) > 0
        _, result = raced(own(name), phases=("impatient", "same", "spread"), ids=5)
        assert result.verdict == "sound"


def test_a_time_limit_ends_a_race_and_accuses_nobody() -> None:
    """What was handed over is judged, what was not is counted; kills and restarts to come are left out."""
    policy = Policy(deadline=10, kills=20, time_limit=0.5)
    workload = Workload(seed=3, ids=20_000, phases=("spread", "sequence", "impatient"))
    ended = race(load("immediate"), workload, Settings(synchronous="off"), policy)
    result = of_race(ended)
    assert result.verdict == "unknown", result.violations
    assert ended.cut and not ended.complete
    left = result.tallies.planned - result.tallies.deliveries
    assert f"it was stopped after 0.5 s: {left:,} of {result.tallies.planned:,}" in result.because[0]


@pytest.mark.parametrize("name", ["upsert", "memory"])
def test_all_workers_are_started_anew_before_the_last_part_of_a_sequence(name: str) -> None:
    """What lived in a process is gone; kills and parts of the workload around it stay in step."""
    policy = Policy(deadline=10, kills=6)
    ended, result = raced(name, ids=20, policy=policy, phases=("same", "sequence", "distinct"))
    assert result.verdict == VARIANTS[name].expected
    assert result.tallies.deliveries == result.tallies.planned
    assert ended.kills == 6
    alone = of_race(
        race(
            load(name), Workload(ids=20, workers=1, phases=("sequence",)), Settings(synchronous="off"), QUICK
        )
    )
    assert alone.verdict == VARIANTS[name].expected  # and not unknown: nothing has to race here


def extreme(target: str) -> RaceResult:
    workload = Workload(workers=1, phases=("extremes", "overflow"))
    return of_race(race(load(target), workload, Settings(synchronous="off"), QUICK))


@pytest.mark.parametrize("name", ["immediate", "deferred", "upsert", "group"])
def test_an_overflow_of_the_total_is_an_error_of_its_delivery(name: str) -> None:
    """Right receivers refuse what the total has no room for, and the rest is judged as ever."""
    result = extreme(name)
    assert result.verdict == "sound", (result.violations, result.because)
    assert result.effects.observed == result.effects.expected == 2**63 - 1
    assert result.tallies.error == 4
    assert any("no room for 2 messages" in note for note in result.notes)


def test_half_of_a_message_that_the_total_has_no_room_for_is_found() -> None:
    """`id_first` records it, and then cannot add it; floating point changes what it adds."""
    assert "record_effect_mismatch" in extreme("id_first").violation_counts
    assert "record_effect_mismatch" in extreme(misbehaving("floating")).violation_counts


def test_a_column_that_takes_no_large_quantities_is_no_fault() -> None:
    """It refuses them whole, so they were not tried; of the usual quantities none may be refused for ever."""
    result = extreme(misbehaving("small"))
    assert (result.verdict, result.violations) == ("unknown", [])
    assert "stuck" in raced(misbehaving("smaller"), phases=("spread",), ids=10)[1].violation_counts
