"""What moves workers: `greenlets` (fast), `threads` and `processes` (faithful) each make a crew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from oncebench.explore.clock import Clock
from oncebench.explore.gate import Event
from oncebench.explore.worker import Call


class Crew(Protocol):
    """What moves workers; their numbers count from 0.

    Attributes:
        patience: Seconds after which a worker that does not come back to a step is given up.
        clock: What workers take for the time; None for the system's.
        shares: Whether a worker was given a connection that another had opened.
    """

    patience: float
    clock: Clock | None
    shares: bool

    def begin(self, worker: int, calls: Sequence[Call], live: bool = True) -> None:
        """Give a worker calls to make; it starts when it is moved. Statements are steps if `live`."""

    def resume(self, worker: int, command: str) -> Event:
        """Move a worker until it comes back."""

    def look_again(self, worker: int, seconds: float) -> Event | None:
        """What a worker that came back asleep has come back with since; None if it sleeps on.

        Args:
            worker: Its number.
            seconds: To wait for it; 0 for as long as it takes to know that it still sleeps.
        """

    def stand_by(self) -> None:
        """Be ready for a death: a successor may not be able to connect just then."""

    def kill(self, worker: int) -> None:
        """End a worker where it is."""

    def settle(self) -> None:
        """End all calls and all transactions that are open."""

    def disconnect(self) -> None:
        """Close all connections."""
