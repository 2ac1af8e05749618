"""Where a schedule has come to: where each worker is, what has happened, and so who may move."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from oncebench.explore.log import Log
from oncebench.explore.plan import TICK, Plan
from oncebench.explore.seat import Seat, Status

MOST_REFUSALS = 3
"""Refusals in a row after which a worker must let another move first, as time would: else it only spins."""


@dataclass(slots=True)
class Position:
    """All that is known of a schedule before its next move.

    Attributes:
        seats: Where each worker is.
        log: Who called when.
        content: The number of what is committed.
        commits: How often it has changed.
        schedule: The moves so far.
        preemptions: How many of them left a worker that could have gone on, or killed one.
        deadlocks: How often everybody waited for everybody.
        deaths: How many workers were killed by a move.
        jumps: How often the clock was put forward.
        slept: Lines of the receiver at which somebody waited outside SQLite.
        uncounted: Whether somebody may have committed since the log was told last.
    """

    seats: list[Seat]
    log: Log
    content: int
    commits: int = 0
    schedule: list[str] = field(default_factory=list)
    preemptions: int = 0
    deadlocks: int = 0
    deaths: int = 0
    jumps: int = 0
    slept: dict[str, None] = field(default_factory=dict)
    uncounted: bool = False
    _able: list[Seat] | None = None

    def changes(self) -> None:
        """Somebody moves, or has come back."""
        self._able = None

    def able(self) -> list[Seat]:
        """Who can go on. Asked before a move is picked, and again for what it costs."""
        if self._able is None:
            able = [seat for seat in self.seats if seat.can_go_on]
            able = [seat for seat in able if seat.refusals < MOST_REFUSALS] or able
            # If everybody waits, a timeout passes.
            self._able = able or [self.seats[number] for number in self.queue()[:1]]
        return self._able

    def asleep(self) -> list[Seat]:
        """Who waits outside SQLite."""
        return [seat for seat in self.seats if seat.status is Status.ASLEEP]

    def queue(self) -> tuple[int, ...]:
        """Those who wait for a lock, the longest first."""
        waiting = [(seat.waiting_since, seat.number) for seat in self.seats if seat.status is Status.WAITING]
        return tuple([number for _, number in sorted(waiting)])

    def moves(self, plan: Plan) -> list[str]:
        """The moves that can be made, that of the worker moved last first."""
        names = [seat.name for seat in self.able()]
        last = self.schedule[-1][0] if self.schedule else ""
        if last in names[1:]:
            names.remove(last)
            names.insert(0, last)
        if not names:
            return []
        if self.deaths < plan.deaths:
            names += [f"{seat.name}!" for seat in self.seats if seat.is_in_a_call]
        if self.jumps < plan.jumps and any(seat.is_in_a_call for seat in self.seats):
            names.append(TICK)
        return names

    def costs(self, move: str) -> int:
        """1 if the move leaves a worker that could go on, or kills one; else 0."""
        if len(move) > 1 or move == TICK:
            return 1
        last = self.schedule[-1] if self.schedule else move
        if move == last or len(last) > 1 or last == TICK:
            return 0
        return int(self.seat(last) in self.able())

    def seat(self, move: str) -> Seat:
        """Of the worker that a move moves."""
        return self.seats[ord(move[0]) - ord("A")]

    def key(self, time: float | None) -> Hashable:
        """All that the future depends on: what is committed, and for each worker what it has seen and holds.

        What a worker has written and not committed follows from what it has seen and what was committed when
        it did; whether its snapshot is out of date, from whether anybody has committed since. The order of
        ends and beginnings of calls belongs to it because a judge sees it.

        Args:
            time: How far the workers' clock was put forward; None for the system's.
        """
        if self.slept:  # what waits outside SQLite depends on more than can be seen here
            return tuple(self.schedule)
        seats = [
            (
                seat.view,
                seat.status,
                seat.retry,
                seat.refusals,
                seat.delivered,
                tuple([(content, commits == self.commits) for content, commits in seat.marks]),
            )
            for seat in self.seats
        ]
        counts = self.deaths, self.deadlocks, self.jumps, time
        return self.content, tuple(seats), self.queue(), self.log.order, counts, *self.schedule[-1:]
