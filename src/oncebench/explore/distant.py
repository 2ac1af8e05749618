"""Workers that are spoken to over a line: the part that threads and processes have in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from oncebench.explore.clock import Clock
from oncebench.explore.gate import DIE, Event, Gate, Killed
from oncebench.explore.pulse import TICK, Pulse
from oncebench.explore.run import NeedsOthers
from oncebench.explore.worker import Call, connect, deliver, end_all, is_anothers
from oncebench.receivers import awaiting
from oncebench.receivers.loader import Receiver
from oncebench.stores.sqlite import Settings


def serve(
    hear: Callable[[], Any],
    say: Callable[[Event], None],
    receiver: Receiver,
    path: Path,
    settings: Settings,
    waits: bool,
    clock: Clock | None = None,
    has_process: bool = False,
) -> None:
    """Be a worker until told to quit: the loop at the far end of a line."""

    def park(event: Event) -> str:
        say(event)
        command: str = hear()
        return command

    gate = Gate(str(path.resolve()), waits, park, clock, has_process=has_process)
    db: Any = None
    while True:
        heard = hear()
        order, *details = [heard] if heard == DIE else heard  # whom nothing can reach any more
        event = Event("done")
        if order == "connect" and db is None:
            db = connect(gate, receiver, path, settings)
            event = Event("done", SHARED) if is_anothers(gate, db) else event
        elif order == "deliver":
            gate.dead = False
            try:
                event = deliver(gate, receiver, db, *details)
            except Killed:
                event = gate.objection or event
        elif order == "settle":
            end_all(gate)
        elif order in ("disconnect", "quit") and db is not None:
            gate.live = False
            receiver.close(db)
            db = None
        if order == "quit":
            awaiting.end()
        say(event)
        if order == "quit":
            return


SHARED = "shared"
"""What a worker says of a connection that another had opened."""
ALONE = 0.3
"""Seconds in which a worker that sleeps may wake before another is moved, the first time at that line."""


class Line(ABC):
    """The near end of a line.

    Attributes:
        patience: Seconds that the worker has to answer.
        is_overdue: Whether it once did not.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.is_overdue = False

    def hear(self) -> Event:
        """Wait for its answer; an "asleep" or "overdue" event while there is none."""
        if (event := self.heard_within(TICK)) is not None:
            return event
        pulse, until = self.pulse(), time.monotonic() + self.patience
        while time.monotonic() < until:
            if pulse.is_still():
                return Event("asleep", self.where())
            if (event := self.heard_within(TICK)) is not None:
                return event
        self.is_overdue = True
        return Event("overdue", self.where())

    @abstractmethod
    def say(self, message: Any) -> None:
        """Tell the worker."""

    @abstractmethod
    def heard_within(self, seconds: float) -> Event | None:
        """Its answer; None if none comes in that time."""

    @abstractmethod
    def pulse(self) -> Pulse:
        """That of the worker's threads."""

    @abstractmethod
    def where(self) -> str:
        """The receiver's line that it is at."""


class Distant:
    """A crew at the far ends of lines."""

    def __init__(self, lines: list[Line], patience: float) -> None:
        self.lines = lines
        self.patience = patience
        self.shares = False
        self.clock: Clock | None = None
        self._wakes_alone: dict[str, bool] = {}
        self.connected = [False] * len(lines)
        self._todo: list[tuple[Sequence[Call], bool] | None] = [None] * len(lines)
        self._under_way = [False] * len(lines)
        self._sleeps = [False] * len(lines)
        self._has_open = [False] * len(lines)
        self._lost = False

    def begin(self, worker: int, calls: Sequence[Call], live: bool = True) -> None:
        """Give a worker calls to make; it starts when it is moved. Statements are steps if `live`."""
        if not self.connected[worker]:
            self.shares |= self.ask(worker, "connect") == SHARED
            self.connected[worker] = self._has_open[worker] = True
        self._todo[worker] = calls, live

    def resume(self, worker: int, command: str) -> Event:
        """Move a worker until it comes back."""
        todo, self._todo[worker] = self._todo[worker], None
        self.lines[worker].say(command if todo is None else ("deliver", *todo))
        return self._noted(worker, self._awake(worker, self.lines[worker].hear()))

    def look_again(self, worker: int, seconds: float) -> Event | None:
        """What a worker that came back asleep has come back with since; None if it sleeps on."""
        line = self.lines[worker]
        event = line.heard_within(seconds) if seconds else line.hear()
        if event is None or event.kind in ("asleep", "overdue"):
            return None
        return self._noted(worker, event)

    def _awake(self, worker: int, event: Event) -> Event:
        """Lets one sleep that wakes by itself. Where it does was seen once, when nobody else moved."""
        if event.kind != "asleep":
            return event
        alone = self._wakes_alone.get(event.what)
        later = None
        if alone is not False:
            later = self.lines[worker].heard_within(self.patience if alone else min(self.patience, ALONE))
        self._wakes_alone.setdefault(event.what, later is not None)
        return later or event

    def _noted(self, worker: int, event: Event) -> Event:
        going_on = event.kind in ("step", "wait", "answer", "asleep", "overdue")
        self._under_way[worker] = going_on and not event.over
        self._has_open[worker] = event.holding > 0 or event.kind != "answer"
        self._sleeps[worker] = event.kind == "asleep"
        self._lost |= event.kind == "overdue"
        if event.kind == "needs":
            raise NeedsOthers("threads" if event.parameters == "threads" else "processes", event.what)
        return event

    def stand_by(self) -> None:
        """Nothing to do: the connection outlives its worker."""

    def kill(self, worker: int) -> None:
        """End a worker where it is; its connection, rolled back, serves its successor."""
        self.end(worker)
        self.ask(worker, "settle")

    def settle(self) -> None:
        """End all calls and all transactions that are open."""
        for worker in sorted(range(len(self.lines)), key=self._sleeps.__getitem__):  # the others wake them
            self.end(worker)
        for worker in range(len(self.lines)):
            if self._has_open[worker] and not self._lost:
                self._has_open[worker] = False
                self.ask(worker, "settle")

    def disconnect(self) -> None:
        """Close all connections."""
        for worker in range(len(self.lines)):
            if self.connected[worker] and not self._lost:
                self.ask(worker, "disconnect")
            self.connected[worker] = False

    def end(self, worker: int) -> None:
        """End a call that is under way."""
        self._todo[worker] = None
        if self._under_way[worker]:
            self._under_way[worker], self._has_open[worker] = False, True
            self.lines[worker].say(DIE)
            if self._lost:
                return
            if self._sleeps[worker]:  # first it comes back from there
                self._sleeps[worker] = False
                self._hear(worker)
            self._hear(worker)

    def forget(self, worker: int) -> None:
        """A worker is gone, with its call and its connection."""
        self._todo[worker] = None
        self._under_way[worker] = self._sleeps[worker] = False
        self._has_open[worker] = self.connected[worker] = False

    def ask(self, worker: int, order: str) -> str:
        """Have something done between calls, and hear what there is to say about it."""
        self.lines[worker].say((order,))
        return self._hear(worker)

    def _hear(self, worker: int) -> str:
        event = None if self._lost else self.lines[worker].heard_within(self.patience)
        self._lost = event is None
        return "" if event is None else event.what
