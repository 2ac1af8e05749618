"""Kills under load: workers that get SIGKILL or SIGTERM at seeded moments of a race, and are started again.

Which worker dies how often, by what, and in which of its deliveries, follows from the seed; so does whether
it dies at a certain statement or after a certain time. What it was doing to the file at that time does not.

SIGKILL comes in the midst of anything. SIGTERM comes as to any service: by default it ends the process
through SystemExit, past the receiver's `finally` and `with`; a receiver that brings its own handler keeps it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from oncebench.receivers import awaiting

if TYPE_CHECKING:
    from oncebench.race.line import Job, Line
    from oncebench.receivers.loader import Receiver

MOST_STATEMENTS = 20
"""A kill by statement comes before one of the first so many of a call (triggers' included), or at its end."""
LONGEST_DELAY = 0.003
"""Seconds from a delivery's first call to a kill by time; short ones are likelier."""
_BENCH = tuple(str(Path(__file__).parents[1] / room) for room in ("race", "stores"))


def plan_kills(seed: int, kills: int, lengths: Sequence[int]) -> list[list[int]]:
    """In which of its deliveries each worker is to die, in order.

    Args:
        seed: From which all of it follows.
        kills: How many together; fewer if there are not so many deliveries.
        lengths: Deliveries of each worker.
    """
    rng = random.Random(f"{seed} kills")
    places = [(worker, n) for worker, length in enumerate(lengths) for n in range(length)]
    chosen: list[list[int]] = [[] for _ in lengths]
    for drawn in range(min(kills, len(places))):
        other = drawn + int(rng.random() * (len(places) - drawn))
        places[drawn], places[other] = places[other], places[drawn]
        worker, n = places[drawn]
        chosen[worker].append(n)
    return [sorted(deliveries) for deliveries in chosen]


class Death:
    """The end of this process."""

    def __init__(self, job: Job, line: Line) -> None:
        rng = random.Random(f"{job.seed} death of {job.worker} in {job.first_delivery + job.dies_in}")
        by_statement = rng.random() < 0.5
        self._statements_left = 1 + int(rng.random() * MOST_STATEMENTS) if by_statement else 0
        self._delay = rng.random() ** 3 * LONGEST_DELAY
        self._by = signal.SIGTERM if rng.random() < 0.5 else signal.SIGKILL
        self._line = line
        self._armed = False
        self._sent = False
        self._clock = threading.Thread(target=self._after_a_while, daemon=True)
        self._due = 0.0

    def around(self, receiver: Receiver) -> Receiver:
        """The receiver, whose next call is deadly."""
        deadly = self._killed if self._by == signal.SIGKILL else self._stopped

        def receive(db: Any, id: str, qty: int) -> object:
            if not self._armed:
                self._armed = True
                self._line.say(said="doomed")
                self._due = time.monotonic() + self._delay
                if self._by == signal.SIGKILL and not self._statements_left:
                    self._clock.start()
            return deadly(receiver.receive, db, id, qty)

        return replace(receiver, receive=receive)

    def wait(self) -> None:
        """Let it come."""
        self._clock.join()

    def end_delivery(self, db: Any) -> None:
        """A process that was asked to stop, and answered all the same, goes now.

        Args:
            db: What the receiver was handed.
        """
        if self._by == signal.SIGTERM:
            leave(db)

    def _killed(self, receive: Callable[..., object], db: Any, id: str, qty: int) -> object:
        try:
            if self._statements_left and isinstance(db, sqlite3.Connection):
                db.set_trace_callback(self._before_statement)
            return receive(db, id, qty)
        finally:
            if self._statements_left:
                kill()

    def _before_statement(self, statement: str) -> None:
        self._statements_left -= 1
        if not self._statements_left:
            kill()

    def _after_a_while(self) -> None:
        time.sleep(self._delay)
        kill()

    def _stopped(self, receive: Callable[..., object], db: Any, id: str, qty: int) -> object:
        if not self._sent:
            sys.setprofile(self._between)
        try:
            try:
                return receive(db, id, qty)
            finally:
                sys.setprofile(None)
                self._stop()  # after its last line, before its answer is written down
        except SystemExit:
            if self._sent:
                leave(db)
            raise

    def _between(self, frame: FrameType, event: str, function: object) -> None:
        """Called by Python, never within SQLite, which would swallow what a handler of the signal raises."""
        if frame.f_code.co_filename.startswith(_BENCH):
            return
        if self._statements_left:
            of = getattr(function, "__self__", None) if event == "c_return" else None
            if not isinstance(of, sqlite3.Connection | sqlite3.Cursor):
                return
            self._statements_left -= 1
            if self._statements_left:
                return
        elif time.monotonic() < self._due:
            return
        self._stop()

    def _stop(self) -> None:
        if not self._sent:
            self._sent = True
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGTERM)


def kill() -> None:
    """End this process at once, whatever it is doing."""
    os.kill(os.getpid(), signal.SIGKILL)


def stop(number: int, frame: FrameType | None) -> NoReturn:
    """What SIGTERM does to a service that has no handler of its own."""
    raise SystemExit(128 + number)


def leave(db: Any) -> NoReturn:
    """End as a process does that was asked to: its connection is closed, nothing more is said."""
    with contextlib.suppress(Exception):
        awaiting.finished(db.close())
    os._exit(128 + signal.SIGTERM)
