"""The time of day as workers find it where a schedule says when it goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

JUMP = 3600.0
"""Seconds by which a `+` in a schedule puts the clock forward: a worker may be held up for an hour."""

REAL: dict[str, Callable[[], float]] = {
    f"{name}{unit}": getattr(time, f"{name}{unit}")
    for name in ("time", "monotonic", "perf_counter")
    for unit in ("", "_ns")
}
"""The system's clocks, by their names in `time`."""


class Clock:
    """Stands still but for jumps, and for sleeps, which take no time.

    Attributes:
        offset: Seconds since the schedule began.
    """

    def __init__(self) -> None:
        self.offset = 0.0
        self._began = {name: real() for name, real in REAL.items()}

    def sleep(self, seconds: float) -> None:
        """Goes forward by whole tenths: a sleep may take longer, and random ones come to a few times."""
        self.offset = round(self.offset + math.ceil(seconds * 10) / 10, 1)

    def now(self, name: str) -> float:
        """As `time.<name>()`."""
        if name.endswith("_ns"):
            return self._began[name] + int(self.offset * 1e9)
        return self._began[name] + self.offset
