"""The clocks that a worker can look at, Python's and SQLite's: all go forward together."""

from __future__ import annotations

import datetime
import functools
import gc
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import Any

from oncebench.explore.clock import REAL
from oncebench.explore.gate import Gate, gate_of_caller
from oncebench.explore.pulse import NOT_THEIRS

READ = "read the clock"
"""The text of a look at a clock, among the things that a worker has seen."""
SLEPT = "slept "
"""What the text of a sleep begins with, there."""

_SQL = {  # SQLite's functions of time, and the version that brought them (https://sqlite.org/lang_datefunc.html)
    "date": (3,),
    "time": (3,),
    "datetime": (3,),
    "julianday": (3,),
    "strftime": (3,),
    "unixepoch": (3, 38),
    "timediff": (3, 43),
}
_WITHOUT_BRACKETS = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}
_connect = sqlite3.connect
_REAL_TIME = REAL["time"]


def _looked_at() -> Gate | None:
    """The gate of the worker whose code asks for the time; None if Python's own code does, or ours.

    Nor is it theirs what runs whenever garbage is collected, as Hypothesis's timer does.
    """
    gate = gate_of_caller.get()
    if gate is None:
        return None
    asking = sys._getframe(2).f_code
    if asking.co_filename.startswith(NOT_THEIRS):
        return None
    if any(getattr(called, "__code__", None) is asking for called in gc.callbacks):
        return None
    gate.saw(READ)
    return gate if gate.clock is not None else None


def _clock(name: str) -> Callable[[], float]:
    real = REAL[name]

    @functools.wraps(real)
    def now() -> float:
        gate = _looked_at()
        return real() if gate is None or gate.clock is None else gate.clock.now(name)

    return now


def _broken_down(real: Any, at: int) -> Any:
    """As `time.localtime` and its like, which take the time now where none is given."""

    @functools.wraps(real)
    def of(*given: Any) -> Any:
        gate = _looked_at() if len(given) <= at or given[at] is None else None
        if gate is None or gate.clock is None:
            return real(*given)
        seconds = gate.clock.now("time")
        return real(*given[:at], time.localtime(seconds) if real is time.strftime else seconds)

    return of


class _Kind(type):
    def __instancecheck__(cls, thing: object) -> bool:
        return isinstance(thing, _datetime)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, _datetime)


_datetime = datetime.datetime


class _Datetime(datetime.datetime, metaclass=_Kind):
    """Makes plain datetimes, which is what the drivers' adapters and others go by."""

    def __new__(cls, *parts: Any, **named: Any) -> Any:
        return _datetime(*parts, **named)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        gate = _looked_at()
        if gate is None or gate.clock is None:
            return _datetime.now(tz)
        return _datetime.fromtimestamp(gate.clock.now("time"), tz)

    @classmethod
    def utcnow(cls) -> Any:
        gate = _looked_at()
        seconds = _REAL_TIME() if gate is None or gate.clock is None else gate.clock.now("time")
        return _datetime.fromtimestamp(seconds, datetime.UTC).replace(tzinfo=None)


_adapt = sqlite3.register_adapter


@functools.wraps(_adapt)
def _register_adapter(kind: Any, adapter: Any, /) -> None:
    _adapt(_datetime if kind is _Datetime else kind, adapter)


PYTHONS: dict[Any, Any] = {
    **{getattr(time, name): _clock(name) for name in REAL},
    **{
        getattr(time, name): _broken_down(getattr(time, name), 0) for name in ("gmtime", "localtime", "ctime")
    },
    time.strftime: _broken_down(time.strftime, 1),
    datetime.datetime: _Datetime,
    sqlite3.register_adapter: _register_adapter,
}
"""What stands for each of Python's clocks; `datetime.date.today` asks `time.time`."""


def follow(db: sqlite3.Connection) -> None:
    """Have SQLite's functions of time, on this connection, go by the clock of the worker that calls."""
    for name, since in _SQL.items():
        if sqlite3.sqlite_version_info >= since:
            asked = functools.partial(_sql, name)
            sqlite3.Connection.create_function(db, name, -1, asked, deterministic=True)
    for name, function in _WITHOUT_BRACKETS.items():
        asked = functools.partial(_sql, function, "now")
        sqlite3.Connection.create_function(db, name, 0, asked, deterministic=True)
    trust(db)


def trust(db: sqlite3.Connection) -> None:
    """A schema's own defaults and triggers may call functions of the application, as they may SQLite's."""
    sqlite3.Cursor(db).execute("PRAGMA trusted_schema = on")


def _sql(function: str, *given: Any) -> Any:
    """As SQLite's own, which is asked with the time that "now" stands for."""
    gate = gate_of_caller.get()
    arguments = list(given)
    if len(arguments) == (function == "strftime"):
        arguments.append("now")
    names_now = [n for n, argument in enumerate(arguments) if str(argument).lower() == "now"]
    if gate is not None and names_now:
        gate.saw(READ)
        if gate.moment is None:  # one for the whole statement
            gate.moment = _REAL_TIME() if gate.clock is None else gate.clock.now("time")
        for n in names_now:
            text = _datetime.fromtimestamp(gate.moment, datetime.UTC).isoformat(" ", "milliseconds")
            arguments[n] = text.replace("+00:00", "Z")
    (answer,) = (
        _calculator().execute(f"SELECT {function}({','.join('?' * len(arguments))})", arguments).fetchone()
    )
    return answer


@functools.cache
def _calculator() -> sqlite3.Connection:
    return _connect(":memory:", check_same_thread=False)
