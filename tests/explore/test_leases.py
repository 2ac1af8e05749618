"""Time as a step: claims that end while somebody works."""

import gc
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from oncebench.audit import Kind, Verdict
from oncebench.explore.plan import Plan, moves
from oncebench.explore.strategies import play_told
from oncebench.explore.timeline import timeline
from oncebench.messages import BadInput, Outcome
from oncebench.testing import explore
from oncebench.testing.exploring import play

from . import leases


def test_a_claim_that_ends_while_its_owner_works_is_found() -> None:
    """Sound in every schedule without a jump of the clock, broken with one; not before the clock is read."""
    result = explore(leases.Lease, plans=["same"], locks=["error"])
    plain, stalled = result.parts
    assert (plain.verdict, stalled.verdict) == (Verdict.SOUND, Verdict.BROKEN)
    assert "+" in result.failures[Kind.DOUBLE_APPLY].violation.schedule
    assert len(explore("immediate", plans=["same"], locks=["error"], journals=["wal"]).parts) == 1


@pytest.mark.parametrize("lease", [leases.ByName, leases.ByCalendar, leases.BySQLite, leases.ByKeyword])
def test_whatever_clock_the_claim_goes_by(lease: type[leases.Lease]) -> None:
    """Broken with a jump; looking at the claim again in the transaction makes it right."""
    few: dict[str, Any] = {"plans": ["same"], "locks": ["error"], "preemptions": 2}
    assert [part.verdict for part in explore(lease, **few).parts] == [Verdict.SOUND, Verdict.BROKEN]
    assert explore(type("", (lease,), {"fenced": True}), **few).verdict is Verdict.SOUND


def test_all_clocks_go_forward_together() -> None:
    result = explore(leases.SomeOfEach, plans=["same"], locks=["error"], preemptions=2)
    assert [part.verdict for part in result.parts] == [Verdict.SOUND] * 2
    assert not any(part.outcomes[Outcome.ERROR] for part in result.parts)


def test_what_is_timed_when_garbage_is_collected_is_not_the_receivers() -> None:
    """Whether that happens in a worker's turn is chance; a look at a clock would be a reason for a jump."""

    def timed(phase: str, info: dict[str, int]) -> None:
        perf_counter()

    usual = gc.get_threshold()
    gc.callbacks.append(timed)
    gc.set_threshold(20)
    try:
        parts = explore("immediate", plans=["same"], journals=["wal"], locks=["wait"]).parts
    finally:
        gc.set_threshold(*usual)
        gc.callbacks.remove(timed)
    assert [part.reads_the_clock for part in parts] == [False]


def test_a_claim_that_is_looked_at_in_the_transaction_is_right() -> None:
    """Also when its owner dies, and the redelivery has to wait until the claim has ended."""
    result = explore(leases.Fenced, plans=["same", "death"])
    assert (result.verdict, result.complete) == (Verdict.SOUND, True)


def test_a_jump_is_replayed_and_drawn() -> None:
    plan = Plan(Plan.parse("m1:3/m1:3").deliveries, clocked=True, jumps=1)
    told = moves("A+BBBBBBAAAAA", 2)
    run, findings = play(leases.Lease, plan, lambda at: play_told(at, told), recording=True)
    assert Kind.DOUBLE_APPLY in findings.counts
    assert "an hour passes" in timeline(run).plain
    with pytest.raises(BadInput, match=r"diverges at step 1 \(\+\): nobody is in a call"):
        play(leases.Lease, plan, lambda at: play_told(at, moves("+AB", 2)))


def test_the_command_replays_it_too() -> None:
    target = f"{Path(leases.__file__)}:Lease"
    failure = explore(target, plans=["same"], locks=["error"]).failures[Kind.DOUBLE_APPLY]
    assert failure.command("mine").endswith(failure.violation.schedule)
