"""Tokens drawn at random, times of day and random pauses: they cost neither the reduction nor a verdict."""

from __future__ import annotations

import datetime
import random
import secrets
import sqlite3
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from oncebench.audit import Kind, Verdict
from oncebench.explore.clock import Clock
from oncebench.receivers import immediate, naive
from oncebench.testing import explore

QUICK: dict[str, Any] = {"plans": ["same", "death"], "journals": ["wal"], "locks": ["error"]}
DRAWS: list[Callable[[], object]] = [
    lambda: str(uuid.uuid4()),
    lambda: uuid.uuid4().hex,
    lambda: secrets.token_hex(),
    lambda: secrets.token_urlsafe(24),
    lambda: datetime.datetime.now().isoformat(),
]


class Tagged:
    """Says something of its own to the store, waits for a random time where it is refused, then works."""

    def __init__(
        self, draw: Callable[[], object], work: Callable[[sqlite3.Connection, str, int], bool]
    ) -> None:
        self._draw, self._work = draw, work

    def receive(self, db: sqlite3.Connection, id: str, qty: int) -> bool:
        db.execute("SELECT ?", (self._draw(),)).fetchone()
        for _ in range(3):
            try:
                return self._work(db, id, qty)
            except sqlite3.OperationalError:
                time.sleep(random.uniform(0, 0.05))
        return self._work(db, id, qty)


@pytest.mark.parametrize("draw", DRAWS)
def test_what_is_drawn_is_the_same_state_whatever_it_is(draw: Callable[[], object]) -> None:
    result = explore(Tagged(draw, immediate.receive), **QUICK)
    assert (result.verdict, result.complete) == (Verdict.SOUND, True)
    assert not [note for part in result.parts for note in part.notes]
    assert all(part.run < (part.total or 0) for part in result.parts if part.plan.name != "same stalled")


@pytest.mark.parametrize("draw", DRAWS)
def test_a_fault_is_found_whatever_is_drawn_and_has_one_schedule(draw: Callable[[], object]) -> None:
    first, again = (explore(Tagged(draw, naive.receive), **QUICK).failures[Kind.DOUBLE_APPLY] for _ in "12")
    assert first.run.schedule == again.run.schedule


def test_a_timeline_has_a_name_for_what_was_drawn() -> None:
    """The same whenever it is played."""
    failure = explore(Tagged(DRAWS[0], naive.receive), **QUICK).failures[Kind.DOUBLE_APPLY]
    tags = [step.parameters for step in failure.run.steps if step.statement == "SELECT ?"]
    assert tags == ["('random A1',)", "('random B1',)"]
    assert not [text for step in failure.run.steps for text in step.seen if "drew" in text]


def test_one_whose_steps_depend_on_what_it_draws_is_found_out() -> None:
    def tosses(db: sqlite3.Connection, id: str, qty: int) -> bool:
        for _ in range(uuid.uuid4().int % 50):
            db.execute("SELECT 1")
        return immediate.receive(db, id, qty)

    result = explore(tosses, **QUICK)
    assert result.verdict is Verdict.UNKNOWN
    assert "does not do the same on the same schedule" in result.because[0]


def test_sleeps_take_whole_tenths_of_a_second() -> None:
    clock = Clock()
    began = clock.now("monotonic")
    for seconds, reads in ((0.0, 0.0), (0.01, 0.1), (0.1, 0.2), (3.0, 3.2)):
        clock.sleep(seconds)
        assert clock.now("monotonic") - began == pytest.approx(reads)
