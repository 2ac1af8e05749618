"""Each variant gets the verdict it declares for exploring, by the violations it declares."""

import functools

import pytest

from oncebench.explore.strategies import play_told
from oncebench.receivers.registry import LESSON, VARIANTS
from oncebench.testing import explore
from oncebench.testing.exploring import declared, play, taken


@pytest.mark.parametrize("name", LESSON)
def test_verdict_and_kinds_are_the_declared_ones(name: str) -> None:
    variant = VARIANTS[name]
    # Those with their own way of being read get a new file for each schedule: slow, so in one mode only.
    slow = taken(name).own_observe is not None
    result = explore(name, journals=["wal"], locks=["wait"]) if slow else explore(name)
    assert str(result.verdict) == variant.expected_in("explore")
    assert {str(kind) for kind in result.failures} == set(variant.explore_kinds)
    assert result.complete or result.verdict == "unknown"
    assert bool(result.because) == (result.verdict == "unknown")


@pytest.mark.parametrize("name", [name for name in LESSON if VARIANTS[name].explore_kinds])
def test_each_failure_replays(name: str) -> None:
    """The smallest schedule of each kind, played alone on a fresh store, shows that kind again."""
    result = explore(name, journals=["wal"], locks=["error"])
    for kind, failure in result.failures.items():
        told = functools.partial(play_told, moves=failure.run.schedule)
        run, findings = play(name, failure.run.plan, told, failure.setting)
        assert kind in findings.counts
        assert run.schedule == failure.run.schedule


def test_a_receiver_of_anybody_is_to_be_sound() -> None:
    assert declared(taken(lambda db, id, qty: True)) == "sound"
