"""Workers as greenlets on the main thread: the fast way to move them.

What one of them waits for outside SQLite, none of the others can bring about: then threads are needed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from contextvars import copy_context
from types import TracebackType
from typing import Any

from greenlet import getcurrent, greenlet

from oncebench.explore.clock import Clock
from oncebench.explore.gate import DIE, Event, Gate, Killed
from oncebench.explore.run import NeedsOthers
from oncebench.explore.site import Site
from oncebench.explore.surroundings import surroundings
from oncebench.explore.watchdog import Overdue, Watchdog
from oncebench.explore.worker import Call, connect, deliver, end_all, is_anothers


class Greenlets:
    """A crew on the calling thread, which is the main one. Use it in a `with` statement."""

    def __init__(
        self, site: Site, workers: int, waits: bool, patience: float = 5.0, clock: Clock | None = None
    ) -> None:
        """Prepare.

        Args:
            site: The store.
            workers: How many.
            waits: Whether workers wait for locks where SQLite's busy handler would.
            patience: Seconds after which a worker that does not come back to a step is given up.
            clock: What they take for the time; None for the system's.
        """
        self.patience = patience
        self.shares = False
        self.clock = clock
        self._site = site
        self._hub = getcurrent()
        store = str(site.path.resolve())
        self._gates = [Gate(store, waits, self._park, clock, alone=True) for _ in range(workers)]
        self._connections: list[Any] = [None] * workers
        # They outlive schedules: to start a greenlet costs as much as several switches.
        self._running = [greenlet(functools.partial(self._run, worker)) for worker in range(workers)]
        self._inside = [False] * workers
        self._todo: list[tuple[Sequence[Call], bool]] = [((), False)] * workers
        self._watchdog = Watchdog(patience)
        self._stepped = surroundings(store)

    def __enter__(self) -> Greenlets:
        self._stepped.__enter__()
        self._watchdog.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        try:
            self.settle()
            self.disconnect()
        finally:
            self._watchdog.stop()
            self._stepped.__exit__(None, None, None)

    def begin(self, worker: int, calls: Sequence[Call], live: bool = True) -> None:
        """Give a worker calls to make; it starts when it is moved. Statements are steps if `live`."""
        if self._connections[worker] is None:
            self._connections[worker] = copy_context().run(
                connect, self._gates[worker], self._site.receiver, self._site.path, self._site.settings
            )
            self.shares |= is_anothers(self._gates[worker], self._connections[worker])
        self._gates[worker].dead = False
        self._todo[worker] = calls, live

    def resume(self, worker: int, command: str) -> Event:
        """Move a worker until it comes back.

        Raises:
            NeedsOthers: It waits outside SQLite, or runs statements beside.
        """
        self._hub = getcurrent()
        watchdog = self._watchdog
        watchdog.turn += 1
        watchdog.inside = True
        try:
            event: Event = self._running[worker].switch(command)
        finally:
            watchdog.inside = False
        if event.kind == "asleep":
            raise NeedsOthers("threads", event.what)
        if event.kind == "needs":
            raise NeedsOthers("threads" if event.parameters == "threads" else "processes", event.what)
        return event

    def stand_by(self) -> None:
        """Nothing to do: the connection outlives its worker."""

    def kill(self, worker: int) -> None:
        """End a worker where it is: what it had not committed is gone.

        Its connection, rolled back, serves its successor: to open another would need a lock itself.
        """
        self._end(worker)

    def settle(self) -> None:
        """End all calls and all transactions that are open."""
        for worker in range(len(self._gates)):
            self._end(worker)

    def disconnect(self) -> None:
        """Close all connections."""
        for worker, db in enumerate(self._connections):
            self._connections[worker] = None
            if db is not None:
                self._site.receiver.close(db)

    def _end(self, worker: int) -> None:
        if self._inside[worker]:
            self._hub = getcurrent()
            self._running[worker].switch(DIE)
        end_all(self._gates[worker])

    def _run(self, worker: int, command: str) -> None:
        """Of a worker's greenlet, without end; what calls leave in a context is gone with them."""
        while True:
            self._inside[worker] = True
            event = copy_context().run(self._deliver, worker)
            self._inside[worker] = False
            self._hub.switch(event)

    def _deliver(self, worker: int) -> Event:
        gate = self._gates[worker]
        try:
            return deliver(gate, self._site.receiver, self._connections[worker], *self._todo[worker])
        except Overdue:
            return Event("asleep" if self._watchdog.asleep else "overdue", self._watchdog.where)
        except Killed:
            pass
        return gate.objection or Event("end")

    def look_again(self, worker: int, seconds: float) -> Event | None:
        """Nobody is ever asleep here."""
        raise AssertionError

    def _park(self, event: Event) -> str:
        asyncio: Any = sys.modules.get("asyncio")
        if asyncio is not None and asyncio._get_running_loop() is not None:  # one for all on this thread
            event = Event("asleep", "an event loop of asyncio")
        command: str = self._hub.switch(event)
        return command
