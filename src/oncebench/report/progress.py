"""The progress line: on standard error, in place on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence

_EVERY = 1.0  # seconds between lines
_WIDTH = 20  # of a bar


class Progress:
    """Says how far a run has come."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self.in_place = sys.stderr.isatty()
        """Whether each line takes the place of the one before."""

    @contextlib.contextmanager
    def of(self, what: str, unit: str = "deliveries") -> Iterator[Callable[[int, int], None]]:
        """A function that takes how many of the unit are done, and how many are planned."""
        began = time.monotonic()
        last = began

        def report(done: int, planned: int) -> None:
            nonlocal last
            now = time.monotonic()
            if self.in_place or now - last >= _EVERY:
                last = now
                self.say(f"{what}: {done:,} of {planned:,} {unit}, {now - began:.0f} s")

        try:
            yield report
        finally:
            self.clear()

    def clear(self) -> None:
        """Take the line away, where there is one."""
        if self._shown and self.in_place:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def say(self, line: str) -> None:
        """Show a line."""
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{line}" if self.in_place else f"{line}\n")
            sys.stderr.flush()


class Bar:
    """How many cells of a sweep are done, and about how long the rest will take."""

    def __init__(self, shown: bool, done: int, planned: int) -> None:
        self._progress = Progress(shown)
        self._done, self._planned = done - 1, planned
        self._took: list[float] = []
        self._began = 0.0

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *ended: object) -> None:
        self._progress.clear()

    def begin(self, what: str) -> Callable[[int, int], None]:
        """The one before is done and this one begins; returns what hears of its deliveries."""
        now = time.monotonic()
        if self._began:
            self._took.append(now - self._began)
        self._began = now
        self._done += 1
        self._progress.say(self._line(what, 0.0))

        def report(done: int, planned: int) -> None:
            if self._progress.in_place:
                self._progress.say(self._line(what, done / planned if planned else 0.0))

        return report

    def _line(self, what: str, share: float) -> str:
        filled = round((self._done + share) / self._planned * _WIDTH)
        rest = time_left(self._took, self._planned - self._done, time.monotonic() - self._began)
        return f"{'━' * filled}{'╌' * (_WIDTH - filled)} {self._done} of {self._planned}{rest}: {what}"


def time_left(took: Sequence[float], cells: int, elapsed: float) -> str:
    """In words, from how long each cell took so far; empty before the first is done.

    Args:
        took: Seconds, one for each cell that is done.
        cells: That are left, with the present one.
        elapsed: Seconds since that began.
    """
    if not took:
        return ""
    seconds = max(0.0, sum(took) / len(took) * cells - elapsed)
    return f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"
