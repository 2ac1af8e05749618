"""Writes down each step of a schedule, for a timeline."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from oncebench.explore.draws import drawn
from oncebench.explore.gate import Event
from oncebench.explore.plan import TICK
from oncebench.explore.run import PASSES, Step
from oncebench.explore.seat import Seat
from oncebench.explore.site import Reading, Site
from oncebench.messages import Outcome
from oncebench.stores.sqlite import Unreadable


class Recorder:
    """Of one schedule.

    Attributes:
        steps: So far.
        early: What the worker had seen before the first statement of the call whose step comes next.
    """

    def __init__(self, site: Site) -> None:
        self.steps: list[Step] = []
        self.early: tuple[str, ...] = ()
        self._site = site
        self._writer = ""

    def step(self, seat: Seat, statement: str, parameters: str, event: Event, timed_out: bool) -> None:
        """A worker was moved and came back."""
        refused = refusal(event.seen)
        status = {"wait": "waits", "asleep": "asleep"}.get(event.kind, "refused" if refused else "ok")
        if timed_out:
            status = "timed out"
        shown = (event.what,) if event.kind in ("wait", "asleep") else event.seen
        seen = tuple([self._site.plain(text) for text in (*self.early, *shown) if not drawn((text,))])
        self.early = ()
        answer = Outcome(event.outcome).name.lower() if event.kind == "answer" else ""
        # Only one worker moved: if the write lock is taken since, it has it.
        if not self._site.is_write_locked():
            self._writer = ""
        elif not self._writer:
            self._writer = seat.name
        lock = "write" if self._writer == seat.name else "open" if event.holding else ""
        asked = self._site.plain(statement), self._site.plain(parameters)
        self.steps.append(Step(seat.name, *asked, seen, status, answer, lock, self._look()))

    def woke(self, seat: Seat, event: Event) -> None:
        """A worker came back that had waited outside SQLite: only now is known what its last step led to."""
        for at in range(len(self.steps) - 1, -1, -1):
            if (step := self.steps[at]).move == seat.name:
                seen = (*step.seen, *(self._site.plain(text) for text in event.seen))
                answer = Outcome(event.outcome).name.lower() if event.kind == "answer" else ""
                self.steps[at] = replace(step, seen=seen, answer=answer)
                return

    def death(self, seat: Seat, status: str) -> None:
        """A worker was killed."""
        self.steps.append(Step(f"{seat.name}!", "", "", (), status, reading=self._look()))

    def jump(self) -> None:
        """The clock was put forward."""
        self.steps.append(Step(TICK, "", "", (), PASSES, reading=self._look()))

    def _look(self) -> Reading | None:
        try:
            return self._site.read()
        except (sqlite3.Error, Unreadable):  # with a rollback journal nobody reads while somebody commits
            return None


def refusal(seen: Sequence[str]) -> str:
    """SQLite's name of the error among what a worker saw; empty if it saw none."""
    for text in seen:
        if text.startswith("'SQLITE_"):
            return text.strip("'")
    return ""
