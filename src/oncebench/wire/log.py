"""What happened, one JSON object a line: ids, quantities and outcomes, never payloads.

It is both what `--log` keeps and what a campaign is judged by, so each line is one write, which a `kill -9`
of the writer a moment later does not take back.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Log:
    """Appends to a file that several processes share; without a path it is off and costs nothing."""

    def __init__(self, path: Path | str | None, who: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = None if path is None else os.open(path, flags, 0o600)
        self._who = who

    def write(self, event: str, at: int | None = None, **fields: int | str | bool | None) -> None:
        """Add a line.

        Args:
            event: What happened.
            at: Nanoseconds of the machine's monotonic clock; now if not given.
            **fields: Of what, and with which outcome.

        Raises:
            OSError: It cannot be written.
        """
        if self._file is not None:
            at = time.perf_counter_ns() if at is None else at
            line = json.dumps({"at": at, "who": self._who, "event": event, **fields})
            os.write(self._file, line.encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read(path: Path, start: int = 0) -> Iterator[dict[str, Any]]:
    """Every whole line from an offset; a writer that the disk had no room for may have left half of one."""
    for line in path.read_bytes()[start:].split(b"\n")[:-1]:
        try:
            yield json.loads(line)
        except ValueError:
            continue
