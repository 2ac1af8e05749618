"""One schedule, three ways to move the workers: greenlets, threads and processes come to the same."""

from collections.abc import Hashable

import pytest

from oncebench.explore.plan import Plan
from oncebench.explore.play import Play
from oncebench.explore.strategies import Random, play_chosen, play_told
from oncebench.explore.views import Views
from oncebench.stores.sqlite import Journal
from oncebench.testing.exploration import JOURNALS, LOCKS, Crewed, Locks, Setting
from oncebench.testing.exploring import taken
from oncebench.testing.stage import stage

DEATHS, CONFLICTS = 3, 20
"""Schedules for each receiver, journal mode and way to meet a lock: some hundreds in all. A death costs the
start of a process, so there are fewer with deaths."""


def played(
    on: Crewed, target: str, plan: Plan, journal: Journal, locks: Locks, told: list[tuple[str, ...]]
) -> list[Hashable]:
    """The outcome of each schedule; schedules are made up where none are told."""
    outcomes: list[Hashable] = []
    count = len(told) or (DEATHS if plan.deaths else CONFLICTS)
    setting = Setting(journal, locks, on)
    with stage(taken(target), plan, setting) as (site, crew):
        for nth in range(count):
            play = Play(crew, site, plan, Views())
            if len(told) <= nth:
                run = play_chosen(play, Random().chooser(nth, plan, len(journal), 1))
                told.append(run.schedule)
            else:
                run = play_told(play, told[nth])
            outcomes.append((run.schedule, run.outcome))
    return outcomes


@pytest.mark.parametrize(
    ("on", "target"),
    [
        *(("threads", target) for target in ("naive", "immediate", "deferred", "stock_first")),
        *(("processes", target) for target in ("naive", "immediate", "deferred")),
    ],
)
@pytest.mark.parametrize("journal", JOURNALS)
def test_the_same_outcome_on_greenlets_and(on: Crewed, target: str, journal: Journal) -> None:
    """Deaths among them, which are SIGKILL for processes and leave a hot journal in rollback mode."""
    for plan in (Plan.of("death", 2), Plan.of("conflict", 3)):
        for locks in LOCKS:
            told: list[tuple[str, ...]] = []
            fast = played("greenlets", target, plan, journal, locks, told)
            assert len(fast) >= DEATHS
            assert played(on, target, plan, journal, locks, told) == fast


def test_the_comparison_notices_another_receiver() -> None:
    """The detector itself: another receiver on the same schedules does not come to the same."""
    told: list[tuple[str, ...]] = []
    plan = Plan.of("same", 2)
    right = played("greenlets", "upsert", plan, "wal", "error", told)
    wrong = played("greenlets", "ignore_rowcount", plan, "wal", "error", [])
    assert right != wrong
