"""What is not SQLite's, as workers find it: a fork is refused, a sleep takes no time, a clock may jump.

A lock on a file is only a lock among processes.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import functools
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from oncebench.explore.clocks import PYTHONS, SLEPT
from oncebench.explore.connecting import connect_stepped, explored
from oncebench.explore.draws import DRAWS, MODULES
from oncebench.explore.gate import gate_of_caller
from oncebench.explore.pulse import NOT_THEIRS, frames, place
from oncebench.explore.terminal import interrupts_known

ONE_PROCESS = "explore moves one process for each worker at the most, so call SQLite in the process it is in"

_LOCKS = (fcntl.F_SETLK, fcntl.F_SETLKW)
_OURS = str(Path(__file__).parents[1])
_RECEIVERS = f"{_OURS}{os.sep}receivers"

_fork, _sleep, _exit = os.fork, time.sleep, os._exit


@functools.wraps(_fork)
def _no_fork() -> int:
    gate = gate_of_caller.get()
    if gate is not None:
        gate.refuse(f"it forks: {ONE_PROCESS}")
    return _fork()


@functools.wraps(_exit)
def _no_exit(status: int) -> NoReturn:
    gate = gate_of_caller.get()
    if gate is not None:
        gate.refuse(f"it ends its process with os._exit({status!r}), which explores: race it, or kill it")
    _exit(status)


@functools.wraps(_sleep)
def _no_sleep(seconds: Any, /) -> None:
    gate = gate_of_caller.get()
    if gate is None:
        _sleep(seconds)
    else:
        _sleep(min(seconds, 0))  # says what is wrong with a number that is none
        gate.saw(f"{SLEPT}{seconds:g} s")
        if gate.clock is not None:
            gate.clock.sleep(seconds)


def _locked_by_process(real: Any, asks: Callable[..., bool]) -> Any:
    """Threads of one process are one owner of such a lock, and greenlets, or share the file it is on."""

    @functools.wraps(real)
    def lock(*arguments: Any) -> Any:
        gate = gate_of_caller.get()
        if gate is not None and gate.live and not gate.has_process and asks(*arguments):
            gate.go_on("processes", place(frames(sys._getframe(1))))
        return real(*arguments)

    return lock


_STANDS_FOR: dict[Any, Any] = {
    os.fork: _no_fork,
    os._exit: _no_exit,
    time.sleep: _no_sleep,
    os.lockf: _locked_by_process(os.lockf, lambda *_: True),
    fcntl.lockf: _locked_by_process(fcntl.lockf, lambda *_: True),
    fcntl.flock: _locked_by_process(fcntl.flock, lambda *_: True),
    fcntl.fcntl: _locked_by_process(fcntl.fcntl, lambda _, command, *__: command in _LOCKS),
    sqlite3.connect: connect_stepped,
    **PYTHONS,
    **DRAWS,
}


def _theirs() -> Iterator[ModuleType]:
    """Modules that may hold a receiver, or what it calls."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(_RECEIVERS) or (file and not file.startswith((*NOT_THEIRS, _OURS))):
            yield module


@contextlib.contextmanager
def surroundings(store: str) -> Iterator[None]:
    """Within, a worker's code finds connections that step; whoever is no worker sees no change.

    Names bound by `from time import time` are found in the modules that were imported until now.

    Args:
        store: Real path of the one file that workers may open.
    """
    stands_for = {id(real): (real, other) for real, other in _STANDS_FOR.items()}
    changed: list[tuple[ModuleType, str, Any]] = []
    try:
        for module in (os, time, datetime, fcntl, sqlite3, sqlite3.dbapi2, *MODULES, *_theirs()):
            for name, value in list(vars(module).items()):
                real, other = stands_for.get(id(value), (None, None))
                if other is not None:
                    setattr(module, name, other)
                    changed.append((module, name, real))
        with explored(store), interrupts_known():
            yield
    finally:
        for module, name, real in changed:
            setattr(module, name, real)
