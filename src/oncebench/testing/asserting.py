"""Assertions that fail with the smallest schedule, its timeline, and the command that replays it."""

from __future__ import annotations

import warnings
from typing import Any

from oncebench.audit import Verdict
from oncebench.explore.plan import Plan
from oncebench.explore.strategies import Choose, play_chosen
from oncebench.testing import exploring
from oncebench.testing.exploration import USUAL, Exploration, Failure, Setting, on_schedule
from oncebench.testing.telling import explained, in_saved_form


def assert_once(receive: Any, **options: Any) -> Exploration:
    """Assert that a receiver is sound in every schedule that is explored; warn of what was not explored.

    Args:
        receive: A function `(db, id, qty) -> bool`, an object with `receive` and perhaps `setup`, `connect`,
            `observe`, or a target as on the command line.
        options: As for `oncebench.testing.explore`: workers, plans, journals, locks, preemptions, ...

    Returns:
        What was covered.

    Raises:
        AssertionError: It is broken, or nothing can be said of it.
        oncebench.BadInput: It cannot be explored.
    """
    __tracebackhide__ = True
    result = exploring.explore(receive, **options)
    if result.verdict is Verdict.BROKEN:
        smallest = next(iter(result.failures.values()))
        raise AssertionError(_message(result.name, smallest, in_saved_form(result).covered))
    if result.verdict is Verdict.UNKNOWN:
        raise AssertionError(f"{result.name} is unknown, because {'; '.join(result.because)}")
    for what in result.unexplored:
        warnings.warn(f"{result.name} is sound, but not explored: {what}", stacklevel=2)
    return result


def assert_schedule(receive: Any, plan: Plan, choose: Choose, setting: Setting = USUAL) -> None:
    """Assert that a receiver is sound in one schedule.

    Args:
        receive: As for `assert_once`.
        plan: What is delivered to whom.
        choose: Picks each move.
        setting: Journal mode and locks.

    Raises:
        AssertionError: It is broken.
        oncebench.BadInput: It cannot be explored.
    """
    __tracebackhide__ = True
    run, findings = exploring.play(receive, plan, lambda play: play_chosen(play, choose), setting, True)
    if findings.violations:
        violation = on_schedule(findings.violations[0], run)
        name = exploring.taken(receive).name
        raise AssertionError(_message(name, Failure(violation, run, setting, 1)))


def _message(name: str, failure: Failure, coverage: str = "") -> str:
    head = f"{name} is broken" + (f" in {failure.schedules:,} of {coverage}" if coverage else "")
    return f"{head}\n{explained(failure, name)}"
