"""Workers that are spoken to over a line: the part that threads and processes have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from oncebench.explore.gate import DIE, Event, Gate, Killed
from oncebench.explore.worker import Call, connect, deliver, roll_back
from oncebench.receivers.loader import Receiver
from oncebench.stores.sqlite import Settings


def serve(
    hear: Callable[[], Any],
    say: Callable[[Event], None],
    receiver: Receiver,
    path: Path,
    settings: Settings,
    waits: bool,
) -> None:
    """Be a worker until told to quit: the loop at the far end of a line."""

    def park(event: Event) -> str:
        say(event)
        command: str = hear()
        return command

    gate = Gate(str(path.resolve()), waits, park)
    db: Any = None
    while True:
        order, *details = hear()
        event = Event("done")
        if order == "connect" and db is None:
            db = connect(gate, receiver, path, settings)
        elif order == "deliver":
            gate.dead = False
            try:
                deliver(gate, receiver, db, *details)
            except Killed:
                event = Event("refused", gate.refusal) if gate.refusal else event
        elif order == "settle":
            for known in gate.connections:
                roll_back(known())
        elif order in ("disconnect", "quit") and db is not None:
            gate.live = False
            db.close()
            db = None
        say(event)
        if order == "quit":
            return


class Line(Protocol):
    """The near end of a line."""

    def say(self, message: Any) -> None:
        """Tell the worker."""

    def hear(self) -> Event:
        """Wait for its answer; an "overdue" event if none comes in time."""


class Distant:
    """A crew at the far ends of lines."""

    def __init__(self, lines: list[Line]) -> None:
        self.lines = lines
        self.connected = [False] * len(lines)
        self._todo: list[tuple[Sequence[Call], bool] | None] = [None] * len(lines)
        self._under_way = [False] * len(lines)
        self._lost = False

    def begin(self, worker: int, calls: Sequence[Call], live: bool = True) -> None:
        """Give a worker calls to make; it starts when it is moved. Statements are steps if `live`."""
        if not self.connected[worker]:
            self.ask(worker, "connect")
            self.connected[worker] = True
        self._todo[worker] = calls, live

    def resume(self, worker: int, command: str) -> Event:
        """Move a worker until it comes back."""
        todo, self._todo[worker] = self._todo[worker], None
        self.lines[worker].say(command if todo is None else ("deliver", *todo))
        event = self.lines[worker].hear()
        self._under_way[worker] = event.kind in ("step", "wait", "answer")
        self._lost |= event.kind == "overdue"
        return event

    def stand_by(self) -> None:
        """Nothing to do: the connection outlives its worker."""

    def kill(self, worker: int) -> None:
        """End a worker where it is; its connection, rolled back, serves its successor."""
        self.end(worker)
        self.ask(worker, "settle")

    def settle(self) -> None:
        """End all calls and all transactions that are open."""
        for worker in range(len(self.lines)):
            self.end(worker)
            if self.connected[worker] and not self._lost:
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
        if self._under_way[worker] and not self._lost:
            self._under_way[worker] = False
            self.lines[worker].say(DIE)
            self.lines[worker].hear()

    def forget(self, worker: int) -> None:
        """A worker is gone, with its call and its connection."""
        self._todo[worker] = None
        self._under_way[worker] = self.connected[worker] = False

    def ask(self, worker: int, order: str) -> None:
        """Have something done between calls."""
        self.lines[worker].say((order,))
        self.lines[worker].hear()
