"""Workers as threads of one process: each statement runs on a thread of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import sys
import threading
from types import TracebackType
from typing import Any

from oncebench.explore.clock import Clock
from oncebench.explore.core import one_core
from oncebench.explore.distant import Distant, Line, serve
from oncebench.explore.gate import DIE, Event, Killed, started_by
from oncebench.explore.pulse import Pulse, frames, place
from oncebench.explore.site import Site
from oncebench.explore.surroundings import surroundings
from oncebench.receivers import awaiting

_FAREWELL = 1.0  # seconds for a thread to end


class Threads(Distant):
    """A crew of threads. Use it in a `with` statement."""

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
        self._threads = [_Thread(site, waits, patience, clock) for _ in range(workers)]
        super().__init__(list(self._threads), patience)
        self.clock = clock
        self._store = str(site.path.resolve())
        self._around = contextlib.ExitStack()

    def __enter__(self) -> Threads:
        with contextlib.ExitStack() as around:
            around.enter_context(surroundings(self._store))
            around.enter_context(one_core())
            for thread in self._threads:
                thread.start()
            self._around = around.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        try:
            self.settle()
            for thread in self._threads:
                thread.stop()
        finally:
            self._around.close()


class _Thread(Line):
    """The near end of a thread."""

    def __init__(self, site: Site, waits: bool, patience: float, clock: Clock | None) -> None:
        super().__init__(patience)
        self._orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._run,
            args=(site.receiver, site.path, site.settings, waits, clock),
            name="oncebench worker",
            daemon=True,
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Let it end; one that is stuck in a call that no exception reaches is left to the process's end."""
        self.say(("quit",))
        for _ in self._started():  # one that outlived its call may be parked, and hear that in its place
            self.say(DIE)
            self.say(("quit",))
        if self.is_overdue and self._thread.ident is not None:
            awaiting.interrupt(self._thread.ident)
        self._thread.join(min(self.patience, _FAREWELL))
        if self._thread.is_alive() and self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(Killed)
            )
            self._thread.join(min(self.patience, _FAREWELL))

    def say(self, message: Any) -> None:
        self._orders.put(message)

    def pulse(self) -> Pulse:
        return Pulse(os.getpid(), self._numbers)

    def _numbers(self) -> list[int]:
        """Of the worker's threads: its own, and those that it started."""
        threads = [self._thread, *self._started()]
        return [thread.native_id or 0 for thread in threads if thread.is_alive()]

    def _started(self) -> list[threading.Thread]:
        return started_by.get(self._thread.ident or 0, [])

    def heard_within(self, seconds: float) -> Event | None:
        try:
            return self._events.get(timeout=seconds)
        except queue.Empty:
            return None

    def where(self) -> str:
        return place(frames(sys._current_frames().get(self._thread.ident or 0)))

    def _run(self, *arguments: Any) -> None:
        try:
            serve(self._orders.get, self._events.put, *arguments)
        except BaseException as error:  # whatever it is, the one who waits must hear of it
            self._events.put(Event("refused", f"{type(error).__name__}: {error}"))
