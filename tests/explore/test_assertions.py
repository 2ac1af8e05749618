"""What a user's failing test says, and that their passing test passes."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from oncebench.explore.plan import Plan
from oncebench.explore.strategies import Choose
from oncebench.receivers import immediate, naive
from oncebench.testing import Setting, assert_once, assert_schedule
from oncebench.testing.strategies import plans, schedules, settings_of_locks

pytest_plugins = ["pytester"]
EXAMPLE = Path(__file__).parents[1] / "example_project"


def test_a_right_receiver_passes_and_says_what_was_covered() -> None:
    result = assert_once(immediate.receive, plans=["same", "conflict"])
    assert result.complete
    assert result.total == 80


def test_a_failing_one_shows_the_smallest_schedule_its_timeline_and_how_to_replay_it() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_once("naive", plans=["same"])
    message = str(failure.value)
    assert "smallest schedule: AABBBA (1 preemption, 6 steps" in message
    assert "UPDATE stock SET total = total + ?" in message
    assert message.rstrip().endswith("replay it: oncebench replay naive AABBBA")


def test_a_receiver_that_cannot_be_stepped_does_not_pass() -> None:
    with pytest.raises(AssertionError, match="its statements run in another process"):
        assert_once("group")


@settings(max_examples=25, deadline=None)  # an example makes a store of its own: its time varies
@given(plans(deaths=1), schedules(), settings_of_locks())
def test_a_right_receiver_stands_whatever_hypothesis_draws(
    plan: Plan, choose: Choose, setting: Setting
) -> None:
    assert_schedule(immediate.receive, plan, choose, setting)


def test_hypothesis_shrinks_to_two_workers_and_one_preemption() -> None:
    """Two workers, a delivery each, one preemption: less cannot break naive, see the bounded search."""
    seen: list[str] = []

    @settings(
        max_examples=300,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
    )
    @given(plans(quantities=1), schedules(preemptions=3, steps=12))
    def breaks(plan: Plan, choose: Choose) -> None:
        try:
            assert_schedule(naive.receive, plan, choose)
        except AssertionError as failure:
            seen.append(f"{plan}\n{failure}")
            raise

    with pytest.raises(AssertionError):
        breaks()
    assert seen[-1].startswith("m1:3/m1:3\n")
    assert "(1 preemption, 6 steps" in seen[-1]


def test_the_example_project_passes() -> None:
    """Its own receiver is tested in fifteen lines, run as its owner would."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    test = (EXAMPLE / "test_warehouse.py").read_text(encoding="utf-8")
    assert len([line for line in test.splitlines() if line.strip()]) <= 15


PLUGIN = ("-p", "oncebench.testing.plugin")


def test_the_marker_and_the_fixture_fail_a_test_of_a_broken_receiver(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.once("immediate", plans=["same"])
        def test_right(): pass

        @pytest.mark.once("naive", plans=["same"])
        def test_wrong(): pass

        def test_fixture_right(once): once("immediate", plans=["same"])

        def test_fixture_wrong(once): once("naive", plans=["same"])
        """
    )
    args = () if _is_installed() else PLUGIN
    result = pytester.runpytest_subprocess(*args, "--strict-markers", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*oncebench replay naive AABBBA"])


def test_the_example_database_and_the_seed_work_under_xdist(pytester: pytest.Pytester) -> None:
    """A failure is found again at once from the database; a seed makes the same examples in each worker."""
    pytester.makepyfile(
        """
        from hypothesis import given, settings
        from oncebench.testing import assert_schedule
        from oncebench.testing.strategies import plans, schedules

        @settings(deadline=None, max_examples=100)
        @given(plans(quantities=1), schedules(steps=12))
        def test_naive(plan, choose):
            assert_schedule("naive", plan, choose)
        """
    )
    first = pytester.runpytest_subprocess("-n", "2", "--hypothesis-seed=7", "-p", "no:cacheprovider")
    first.assert_outcomes(failed=1)
    first.stdout.fnmatch_lines(["*1 preemption, 6 steps*"])
    assert any((pytester.path / ".hypothesis").rglob("*"))
    again = pytester.runpytest_subprocess("--hypothesis-seed=8", "-p", "no:cacheprovider")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*1 preemption, 6 steps*"])
    assert "Flaky" not in first.stdout.str() + again.stdout.str()


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    return any(entry.value == "oncebench.testing.plugin" for entry in entry_points(group="pytest11"))
