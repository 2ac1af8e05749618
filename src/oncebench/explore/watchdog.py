"""Brings a receiver back that neither runs a statement nor returns."""

from __future__ import annotations

import ctypes
import signal
import threading
from types import FrameType

from oncebench.explore.gate import Killed

_ALARM = signal.SIGVTALRM  # nobody else's: pytest-timeout and users take SIGALRM


class Overdue(Killed):
    """The receiver did not come back to a step in time."""


class Watchdog:
    """Raises `Overdue` in the thread that started it, when one turn takes too long.

    On the main thread a signal ends even a lock or a sleep; on another thread only a loop in Python ends.

    Attributes:
        turn: A number that the watched one changes with each turn.
        inside: Whether a turn is under way.
    """

    def __init__(self, patience: float) -> None:
        """Prepare.

        Args:
            patience: Seconds that a turn may take.
        """
        self.turn = 0
        self.inside = False
        self._patience = patience
        self._called_off = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Watch the calling thread."""
        self._watched = threading.get_ident()
        self._by_signal = threading.current_thread() is threading.main_thread()
        if self._by_signal:
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
        if self._by_signal:
            signal.signal(_ALARM, self._before)

    def _watch(self) -> None:
        looked_at = -1
        while not self._called_off.wait(self._patience):
            if self.inside and looked_at == self.turn:
                if self._by_signal:
                    signal.pthread_kill(self._watched, _ALARM)
                else:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(self._watched), ctypes.py_object(Overdue)
                    )
            looked_at = self.turn

    def _bark(self, number: int, frame: FrameType | None) -> None:
        if self.inside:
            raise Overdue
