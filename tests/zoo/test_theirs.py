"""Receivers that nobody has declared anything of: right ones are not accused, wrong ones are caught."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from oncebench.race import Policy, race
from oncebench.receivers.loader import load
from oncebench.results.schema import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Journal, Settings
from oncebench.testing import explore
from oncebench.workload import Workload

from . import right, wrong

HERE = Path(__file__).parent


def written_in(module: object) -> list[str]:
    """The receivers of one of the files beside this one."""
    return [
        name
        for name, found in vars(module).items()
        if getattr(found, "__module__", "") == getattr(module, "__name__", "")
        and (inspect.isfunction(found) or hasattr(found, "receive"))
    ]


def raced(target: str, journal: Journal, **workload: object) -> RaceResult:
    settings = Settings(journal, "off")
    ended = race(load(target), Workload(seed=5, **workload), settings, Policy(deadline=20))  # type: ignore[arg-type]
    return of_race(ended)


@pytest.mark.parametrize("name", written_in(right))
def test_a_right_receiver_is_not_accused(name: str) -> None:
    """One after the other, by processes at once, and in interleavings with two preemptions."""
    target = f"{HERE / 'right.py'}:{name}"
    journal: Journal = "wal" if len(name) % 2 else "delete"  # half of them in each
    for result in (
        raced(target, "delete", workers=1, ids=12, phases=("sequence", "neighbours")),
        raced(target, journal, ids=12, phases=("same", "distinct", "conflicting", "paused", "impatient")),
    ):
        assert not result.violations
        assert all("raced nothing" in reason for reason in result.because), result.because  # a busy machine
    found = explore(target, journals=[journal], preemptions=2, most=100)
    assert found.failures == {}
    assert all("there are more" in reason for reason in found.because), found.because


@pytest.mark.parametrize("name", written_in(wrong))
def test_a_wrong_receiver_is_caught(name: str) -> None:
    """By one worker alone, or by a few at once."""
    target = f"{HERE / 'wrong.py'}:{name}"
    alone = raced(target, "wal", workers=1, ids=24, phases=("sequence", "neighbours"))
    together = raced(target, "wal", ids=24) if alone.verdict == "sound" else alone
    assert "broken" in (alone.verdict, together.verdict), (alone.notes, together.because)
