"""Skipping states that were reached before loses no outcome, and counts what it skips exactly."""

from collections.abc import Callable, Hashable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncebench.explore.greenlets import Greenlets
from oncebench.explore.plan import Plan
from oncebench.explore.play import Play
from oncebench.explore.search import Search
from oncebench.explore.site import Site
from oncebench.explore.views import Views
from oncebench.receivers import loader
from oncebench.stores.sqlite import Journal, Settings

from .programs import Program, Programs, programs


def outcomes(
    receiver: Any, plan: Plan, journal: Journal, waits: bool, reduce: bool, bound: int | None = None
) -> tuple[dict[Hashable, int], int]:
    """How many schedules end in each outcome, and how many were begun to find out."""
    site = Site(loader.receiver(receiver, "test"), Settings(journal, "off", 5.0))
    try:
        with Greenlets(site, plan.workers, waits) as crew:
            search = Search(crew, site, plan, Views(), bound, reduce)
            for _ in search.runs():
                pass
            assert search.complete
            found = {outcome: found.schedules for outcome, found in search.found.items()}
            return found, search.played + search.cut
    finally:
        site.close()


@settings(max_examples=25, deadline=None)  # an example plays up to some hundred schedules: time varies
@given(programs(2, 4), st.sampled_from(["wal", "delete"]), st.booleans())
def test_no_outcome_is_lost_with_two_workers(receiver: Programs, journal: Journal, waits: bool) -> None:
    """The same outcomes, each by the same number of schedules, as playing every schedule in full."""
    full, _ = outcomes(receiver, receiver.plan, journal, waits, reduce=False)
    reduced, _ = outcomes(receiver, receiver.plan, journal, waits, reduce=True)
    assert reduced == full


@settings(max_examples=5, deadline=None)
@given(programs(3, 3), st.sampled_from(["wal", "delete"]), st.booleans())
def test_no_outcome_is_lost_with_three_workers(receiver: Programs, journal: Journal, waits: bool) -> None:
    full, _ = outcomes(receiver, receiver.plan, journal, waits, reduce=False)
    reduced, _ = outcomes(receiver, receiver.plan, journal, waits, reduce=True)
    assert reduced == full


@settings(max_examples=10, deadline=None)
@given(programs(2, 4), st.sampled_from(["wal", "delete"]), st.booleans(), st.integers(0, 2))
def test_no_outcome_is_lost_within_a_bound(
    receiver: Programs, journal: Journal, waits: bool, bound: int
) -> None:
    full, _ = outcomes(receiver, receiver.plan, journal, waits, False, bound)
    reduced, _ = outcomes(receiver, receiver.plan, journal, waits, True, bound)
    assert reduced.keys() == full.keys()


@pytest.mark.parametrize("variant", ["immediate", "naive", "id_first"])
@pytest.mark.parametrize("waits", [False, True])
def test_no_outcome_is_lost_with_deaths(variant: str, waits: bool) -> None:
    code = loader.load(variant).receive
    full, begun = outcomes(code, Plan.of("death", 2), "delete", waits, reduce=False)
    reduced, fewer = outcomes(code, Plan.of("death", 2), "delete", waits, reduce=True)
    assert reduced == full
    assert fewer < begun


def test_the_comparison_notices_a_key_that_forgets_what_workers_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """The detector itself: with half of the state left out, outcomes are lost and the test above says so."""
    whole: Callable[[Play], Any] = Play.key

    def forgetful(self: Play) -> Hashable:
        content, seats, *rest = whole(self)
        return (content, tuple((seat[1], seat[4]) for seat in seats), *rest)

    receiver = Programs(
        (Program(("look", "write back"), False, False), Program(("add", "find"), False, False))
    )
    full, _ = outcomes(receiver, receiver.plan, "wal", False, reduce=False)
    monkeypatch.setattr(Play, "key", forgetful)
    reduced, _ = outcomes(receiver, receiver.plan, "wal", False, reduce=True)
    assert reduced != full
