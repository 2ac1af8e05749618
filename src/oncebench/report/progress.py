"""The progress line: on standard error, in place on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_EVERY = 1.0  # seconds between lines


class Progress:
    """Says how far a run has come."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._in_place = sys.stderr.isatty()

    @contextlib.contextmanager
    def of(self, what: str, unit: str = "deliveries") -> Iterator[Callable[[int, int], None]]:
        """A function that takes how many of the unit are done, and how many are planned."""
        began = time.monotonic()
        last = began

        def report(done: int, planned: int) -> None:
            nonlocal last
            now = time.monotonic()
            if self._in_place or now - last >= _EVERY:
                last = now
                self._write(f"{what}: {done:,} of {planned:,} {unit}, {now - began:.0f} s")

        try:
            yield report
        finally:
            if self._shown and self._in_place:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def _write(self, line: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{line}" if self._in_place else f"{line}\n")
            sys.stderr.flush()
