"""Counts that are known in advance, the order of the search, and the strategies that do not play all."""

from collections.abc import Sequence

import pytest

from oncebench.audit import Kind, Verdict
from oncebench.explore.greenlets import Greenlets
from oncebench.explore.plan import Plan
from oncebench.explore.search import Search
from oncebench.explore.site import Site
from oncebench.explore.strategies import PCT, Random, Sample
from oncebench.explore.views import Views
from oncebench.receivers import loader
from oncebench.stores.sqlite import Settings
from oncebench.testing import explore
from oncebench.testing.exploring import judge


@pytest.mark.parametrize(
    ("name", "workers", "total", "broken"),
    [("naive", 2, 20, 18), ("immediate", 2, 10, 0), ("naive", 3, 1428, 1422), ("immediate", 3, 102, 0)],
)
def test_counts_of_the_model(name: str, workers: int, total: int, broken: int) -> None:
    """Four steps each but for who comes late: counted by hand and by another program before this one."""
    (part,) = explore(name, workers=workers, plans=["same"], journals=["wal"], locks=["error"]).parts
    assert (part.total, part.broken, part.complete) == (total, broken, True)


@pytest.mark.parametrize("name", ["naive", "immediate"])
@pytest.mark.parametrize("locks", ["error", "wait"])
def test_three_workers_are_covered(name: str, locks: str) -> None:
    result = explore(name, workers=3, plans=["same", "conflict"], locks=[locks])  # type: ignore[list-item]
    assert result.complete
    assert result.verdict == ("broken" if name == "naive" else "sound")


def test_lock_errors_are_tallied_over_all_schedules() -> None:
    (part,) = explore("immediate", plans=["same"], journals=["wal"], locks=["error"]).parts
    assert dict(part.locked) == {"SQLITE_BUSY": 8}  # in 8 of 10 schedules one of the two is refused
    (part,) = explore("deferred", plans=["same"], journals=["wal"], locks=["wait"]).parts
    assert part.locked.keys() == {"SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT"}  # refused at once, patience or not


def search(name: str, bound: int | None = None) -> tuple[Search, list[tuple[int, bool]]]:
    """A search of one plan, and for each run its preemptions and whether it breaks the receiver."""
    site = Site(loader.load(name), Settings("wal", "off", 5.0))
    try:
        with Greenlets(site, 2, False) as crew:
            found = Search(crew, site, Plan.of("same", 2), Views(), bound)
            return found, [(run.preemptions, bool(judge(run).violations)) for run in found.runs()]
    finally:
        site.close()


def test_fewest_preemptions_first() -> None:
    _, runs = search("naive")
    costs = [cost for cost, _ in runs]
    assert costs == sorted(costs)


def test_the_bug_is_among_the_first_five_schedules() -> None:
    _, runs = search("naive")
    assert any(broken for _, broken in runs[:5])


def test_no_smaller_bound_breaks_it() -> None:
    """The smallest failure is certified by all schedules with fewer preemptions."""
    result = explore("naive", plans=["same"], journals=["wal"], locks=["error"])
    (failure,) = result.failures.values()
    assert failure.run.preemptions == 1
    found, runs = search("naive", bound=0)
    assert found.complete
    assert found.bounded
    assert not any(broken for _, broken in runs)


def test_a_bound_counts_the_schedules_within_it() -> None:
    """Two workers of three steps when neither knows of the other: 2 + ... as counted by hand."""
    none, _ = search("unique_only", bound=0)
    assert none.total == 2
    every, _ = search("unique_only")
    assert every.total is not None
    bounds = [search("unique_only", bound)[0].total or 0 for bound in range(6)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == every.total


def test_a_search_that_is_cut_short_says_so() -> None:
    result = explore("immediate", plans=["same"], journals=["wal"], locks=["error"], most=2)
    assert not result.complete
    assert result.verdict is Verdict.UNKNOWN
    assert "only 2 schedules" in result.because[0]


@pytest.mark.parametrize("strategy", [Random(60), PCT(60, depth=2)])
def test_samples_find_the_bug_and_follow_from_the_seed(strategy: Random | PCT) -> None:
    def schedules(seed: int) -> Sequence[tuple[str, ...]]:
        site = Site(loader.load("naive"), Settings("wal", "off", 5.0))
        try:
            with Greenlets(site, 2, False) as crew:
                sample = Sample(crew, site, Plan.of("same", 2), Views(), strategy, seed)
                return [run.schedule for run in sample.runs()]
        finally:
            site.close()

    assert schedules(1) == schedules(1)
    assert schedules(1) != schedules(2)
    result = explore("naive", plans=["same"], strategy=strategy)
    assert Kind.DOUBLE_APPLY in result.failures
    assert not result.complete
    assert result.total is None
    assert explore("immediate", plans=["same"], strategy=strategy).verdict is Verdict.SOUND


def test_pct_states_its_bound() -> None:
    assert PCT(1, depth=3).bound(workers=2, steps=10) == pytest.approx(1 / 200)
    (part,) = explore("naive", plans=["same"], journals=["wal"], locks=["error"], strategy=PCT(10)).parts
    assert ">= " in part.notes[0]
