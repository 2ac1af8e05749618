"""Keeps the scheduler and its workers on one core: only one of them moves at a time.

To wake a thread on another core costs ten times what it costs on the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Within, the calling thread stays on the core that it is on, and so do threads and processes it starts.

    Nothing happens where the system refuses, or knows no such thing: see sched_setaffinity(2) of Linux.
    """
    before = _pinned()
    try:
        yield
    finally:
        if before:
            os.sched_setaffinity(0, before)


def _pinned() -> set[int]:
    """The cores it could be on until now; none if it was not pinned."""
    try:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {_current()})
    except (AttributeError, OSError, ValueError, IndexError):
        return set()
    return before


def _current() -> int:
    """See proc_pid_stat(5): the 39th field."""
    return int(Path("/proc/thread-self/stat").read_text(errors="replace").rpartition(")")[2].split()[36])
