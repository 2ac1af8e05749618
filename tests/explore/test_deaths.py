"""A death between two statements undoes what was not committed, and the redelivery goes on from there."""

from oncebench.audit import Kind
from oncebench.explore.plan import Plan
from oncebench.explore.run import Run
from oncebench.explore.strategies import play_told
from oncebench.messages import NEVER, Outcome
from oncebench.testing.exploration import Setting
from oncebench.testing.exploring import play


def replayed(target: str, schedule: list[str], setting: Setting) -> Run:
    run, _ = play(target, Plan.of("death", 2), lambda at: play_told(at, schedule), setting)
    return run


def test_what_was_not_committed_is_gone_and_the_redelivery_works() -> None:
    run = replayed("immediate", [*"AAAA", "A!", *"AAAAA", *"BBB"], Setting())
    first, second, other = run.operations
    assert (first.outcome, first.completed) == (Outcome.INDETERMINATE, NEVER)
    assert (second.outcome, other.outcome) == (Outcome.APPLIED, Outcome.DUPLICATE)
    assert (second.worker, second.delivery) == (first.worker, first.delivery)
    assert second.call != first.call
    assert run.after.inbox == (("m1", 3),)
    assert run.after.total == 3


def test_a_death_lets_go_of_locks() -> None:
    """B waits for A's lock, A dies, B goes on; both journal modes, and with real kills."""
    for setting in (
        Setting("wal", "wait"),
        Setting("delete", "wait"),
        Setting("delete", "wait", on="processes"),
    ):
        run = replayed("immediate", [*"AAAB", "A!", *"BBBBB", *"AAA"], setting)
        assert [op.outcome for op in run.operations] == [
            Outcome.INDETERMINATE,
            Outcome.DUPLICATE,
            Outcome.APPLIED,
        ]
        assert run.after.total == 3


def test_a_death_between_two_commits_loses_the_effect() -> None:
    run, findings = play(
        "id_first", Plan.of("death", 2), lambda at: play_told(at, ["A", "A!", *"AA", *"BB"]), Setting()
    )
    assert Kind.RECORD_EFFECT_MISMATCH in findings.counts
    assert run.after.inbox == (("m1", 3),)
    assert run.after.total == 0
