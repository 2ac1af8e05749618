"""What is not SQLite's, as workers find it: a fork is refused, a sleep takes no time, a clock may jump."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from oncebench.explore.clock import REAL
from oncebench.explore.connecting import connections_stepped
from oncebench.explore.gate import gate_of_caller
from oncebench.explore.pulse import NOT_THEIRS

ONE_PROCESS = "explore moves one process for each worker at the most, so call SQLite in the process it is in"
SLEPT = "slept "
"""What the text of a sleep begins with, among the things that a worker has seen."""

READ = "read the clock"
"""The text of a look at the clock among these."""

_fork, _sleep = os.fork, time.sleep


@functools.wraps(_fork)
def _no_fork() -> int:
    gate = gate_of_caller.get()
    if gate is not None:
        gate.refuse(f"it forks: {ONE_PROCESS}")
    return _fork()


@functools.wraps(_sleep)
def _no_sleep(seconds: Any, /) -> None:
    gate = gate_of_caller.get()
    if gate is None:
        _sleep(seconds)
    else:
        _sleep(min(seconds, 0))  # says what is wrong with a number that is none
        gate.saw(f"{SLEPT}{seconds:g} s")
        if gate.clock is not None:
            gate.clock.offset += seconds


def _clock(name: str) -> Callable[[], float]:
    real = REAL[name]

    @functools.wraps(real)
    def now() -> float:
        gate = gate_of_caller.get()
        if gate is None or sys._getframe(1).f_code.co_filename.startswith(NOT_THEIRS):
            return real()
        gate.saw(READ)
        return real() if gate.clock is None else gate.clock.now(name)

    return now


_clocks = {name: _clock(name) for name in REAL}


@contextlib.contextmanager
def surroundings(store: str) -> Iterator[None]:
    """Within, a worker's code finds connections that step; whoever is no worker sees no change.

    Args:
        store: Real path of the one file that workers may open.
    """
    before = os.fork, time.sleep, {name: getattr(time, name) for name in REAL}
    os.fork, time.sleep = _no_fork, _no_sleep
    for name, clock in _clocks.items():
        setattr(time, name, clock)
    try:
        with connections_stepped(store):
            yield
    finally:
        os.fork, time.sleep, clocks = before
        for name, clock in clocks.items():
            setattr(time, name, clock)
