"""Coroutines of one loop, as the workers of one process: connections that they may share."""

from pathlib import Path

import pytest

from oncebench.race import Policy, race
from oncebench.receivers.loader import load
from oncebench.results.schema import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Settings
from oncebench.workload import Workload


def raced(name: str, threads: int) -> RaceResult:
    target = f"{Path(__file__).parent / 'coroutines.py'}:{name}"
    workload = Workload(seed=3, ids=40, phases=("same", "distinct", "spread"))
    settings, policy = Settings(synchronous="off"), Policy(deadline=30, threads=threads)
    return of_race(race(load(target), workload, settings, policy))


@pytest.mark.parametrize("name", ["OneEach", "Taken", "OnPlainConnections"])
def test_right_receivers_are_sound_as_coroutines_of_one_loop(name: str) -> None:
    """With a connection each, theirs or the bench's, and with one that is taken for a whole transaction."""
    result = raced(name, 4)
    assert result.verdict == "sound", (result.violations, result.because, result.notes)
    assert result.tallies.deliveries == result.tallies.planned


def test_a_connection_that_coroutines_share_without_a_lock_is_broken() -> None:
    """Sound where each process has one worker, as it must be."""
    alone = raced("OneForAll", 1)
    assert (alone.verdict, alone.threaded) == ("sound", True)
    shared = raced("OneForAll", 4)
    assert shared.verdict == "broken"
    assert {"double_apply", "acked_but_lost", "record_effect_mismatch"} & set(shared.violation_counts)


def test_a_lock_of_one_loop_holds_coroutines_only() -> None:
    """Sound on four coroutines of one process, broken on four processes."""
    assert raced("LockOfOneLoop", 4).verdict == "sound"
    assert raced("LockOfOneLoop", 1).verdict == "broken"
