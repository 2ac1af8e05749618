"""Keeps the scheduler and its workers on one core: only one of them moves at a time.

To wake a thread on another core costs ten times what it costs on the same.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Within, the calling thread stays on the core that it is on, and so do threads and processes it starts.

    Afterwards they are free again, but for processes. Nothing happens where the system refuses, or knows no
    such thing: see sched_setaffinity(2) of Linux.
    """
    try:
        free, here, others = os.sched_getaffinity(0), {_current()}, _threads()
        os.sched_setaffinity(0, here)
    except (AttributeError, OSError, ValueError, IndexError):
        yield
        return
    others.discard(threading.get_native_id())
    try:
        yield
    finally:
        for thread in _threads() - others:
            with contextlib.suppress(OSError):  # it has ended, or its cores are gone
                if os.sched_getaffinity(thread) == here:
                    os.sched_setaffinity(thread, free)


def _threads() -> set[int]:
    """Of this process, their numbers for the system."""
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}


def _current() -> int:
    """The core that the caller is on: the 39th field, see proc_pid_stat(5)."""
    return int(Path("/proc/thread-self/stat").read_text(errors="replace").rpartition(")")[2].split()[36])
