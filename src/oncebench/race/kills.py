"""Kills under load: workers that get SIGKILL at seeded moments of a race, and are started again.

Which worker dies how often, and in which of its deliveries, follows from the seed; so does whether it
dies before a certain statement or after a certain time. What it was doing to the file at that time does not.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oncebench.race.line import Job, Line
    from oncebench.receivers.loader import Receiver

MOST_STATEMENTS = 20
"""A kill by statement comes before one of the first so many of a call (triggers' included), or at its end."""
LONGEST_DELAY = 0.003
"""Seconds from a delivery's first call to a kill by time; short ones are likelier."""


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
        self._line = line
        self._armed = False
        self._clock = threading.Thread(target=self._after_a_while, daemon=True)

    def around(self, receiver: Receiver) -> Receiver:
        """The receiver, whose next call is deadly."""

        def receive(db: Any, id: str, qty: int) -> object:
            if not self._armed:
                self._armed = True
                self._line.say(said="doomed")
                if not self._statements_left:
                    self._clock.start()
            try:
                if self._statements_left and isinstance(db, sqlite3.Connection):
                    db.set_trace_callback(self._before_statement)
                return receiver.receive(db, id, qty)
            finally:
                if self._statements_left:
                    kill()

        return replace(receiver, receive=receive)

    def wait(self) -> None:
        """Let it come."""
        self._clock.join()

    def _before_statement(self, statement: str) -> None:
        self._statements_left -= 1
        if not self._statements_left:
            kill()

    def _after_a_while(self) -> None:
        time.sleep(self._delay)
        kill()


def kill() -> None:
    """End this process at once, whatever it is doing."""
    os.kill(os.getpid(), signal.SIGKILL)
