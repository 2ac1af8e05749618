"""Brings a receiver back that neither runs a statement nor returns: workers that are greenlets."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

from oncebench.explore.gate import Killed
from oncebench.explore.pulse import Pulse, frames, place

_ALARM = signal.SIGVTALRM  # nobody else's: pytest-timeout and users take SIGALRM

_TICK = 0.05  # seconds between two looks: each takes the interpreter away from whoever works


class Overdue(Killed):
    """The receiver did not come back to a step in time."""


class Watchdog:
    """Raises `Overdue` in the main thread when one turn takes too long, or does nothing but wait.

    A signal ends even a lock or a sleep, and reaches the main thread alone.

    Attributes:
        turn: A number that the watched one changes with each turn.
        inside: Whether a turn is under way.
        asleep: Of the turn that was ended: whether it waited for something, or worked for too long.
        where: The receiver's line that it was at.
    """

    def __init__(self, patience: float) -> None:
        """Prepare.

        Args:
            patience: Seconds that a turn may take.
        """
        self.turn = 0
        self.inside = False
        self.asleep = False
        self.where = ""
        self._patience = patience
        self._condemned = -1
        self._called_off = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Watch the main thread, which is the calling one."""
        self._before = signal.signal(_ALARM, self._bark)
        self._thread = threading.Thread(target=self._watch, name="oncebench watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        if self._thread is None:
            return
        self._called_off.set()
        self._thread.join()
        self._thread = None
        signal.signal(_ALARM, self._before)

    def _watch(self) -> None:
        main = threading.main_thread()
        turn, since = -1, 0.0
        pulse = Pulse(os.getpid(), lambda: [main.native_id or 0])
        while not self._called_off.wait(_TICK):
            now = time.monotonic()
            if not self.inside or self.turn != turn:
                turn, since = self.turn, now
                pulse = Pulse(os.getpid(), lambda: [main.native_id or 0])
                continue
            asleep = pulse.is_still()
            if asleep or now - since > self._patience:
                self.asleep, self._condemned, since = asleep, turn, now
                signal.pthread_kill(main.ident or 0, _ALARM)

    def _bark(self, number: int, frame: FrameType | None) -> None:
        if self.inside and self.turn == self._condemned:
            self.where = place(frames(frame))
            raise Overdue
