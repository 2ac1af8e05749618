"""Workers that share a process: threads, and connections that they may share."""

from pathlib import Path

import pytest

from oncebench.messages import BadInput
from oncebench.race import Policy, race
from oncebench.receivers.loader import load
from oncebench.results.schema import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Settings
from oncebench.workload import Workload


def named(name: str) -> str:
    return f"{Path(__file__).parent / 'threaded.py'}:{name}"


def raced(target: str, threads: int, *phases: str) -> RaceResult:
    workload = Workload(seed=3, ids=40, phases=phases or ("same", "distinct", "spread", "paused"))
    return of_race(race(load(target), workload, Settings(), Policy(deadline=10, threads=threads)))


@pytest.mark.parametrize("name", ["receive", "OneEach", "Taken"])
@pytest.mark.parametrize("threads", [2, 4])
def test_right_receivers_are_sound_on_threads(name: str, threads: int) -> None:
    """With a connection each, and with one that is taken for a whole transaction."""
    result = raced(named(name), threads)
    assert result.verdict == "sound", (result.violations, result.because, result.notes)
    assert result.tallies.deliveries == result.tallies.planned


def test_variants_are_what_they_are_on_threads_too() -> None:
    """With refusals, and with two processes of two threads."""
    for name, verdict in (("immediate", "sound"), ("naive", "broken")):
        assert raced(name, 2, "same", "impatient").verdict == verdict
        assert raced(name, 4, "same").verdict == verdict


def test_a_connection_that_threads_share_without_a_lock_is_broken() -> None:
    """Sound where each process has one worker, as it must be; and it is known that threads may share it."""
    alone = raced(named("OneForAll"), 1)
    assert (alone.verdict, alone.threaded) == ("sound", True)
    shared = raced(named("OneForAll"), 4)
    assert shared.verdict == "broken"
    assert {"double_apply", "acked_but_lost", "record_effect_mismatch"} & set(shared.violation_counts)


def test_a_lock_of_one_process_holds_threads_only() -> None:
    """Sound on four threads of one process, broken on four processes."""
    assert raced(named("LockOfOneProcess"), 4).verdict == "sound"
    assert "double_apply" in raced(named("LockOfOneProcess"), 1).violation_counts


def test_only_connections_for_several_threads_are_told_of() -> None:
    """Nobody else is raced on threads by a check."""
    assert not raced(named("receive"), 1, "same").threaded
    assert raced(named("OneEach"), 1, "same").threaded


def test_what_threads_cannot_have_is_refused() -> None:
    """Kills end a process, and so do restarts."""
    with pytest.raises(BadInput, match="--threads or --kills"):
        Policy(threads=2, kills=1)
    with pytest.raises(BadInput, match="leave sequence out"):
        raced("immediate", 2, "sequence")
