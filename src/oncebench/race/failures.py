"""What an exception of a receiver means, and the words in which a worker tells of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from oncebench.messages import Outcome
from oncebench.race.line import Line

LOCK_ERRORS = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
"""Primary codes of a refusal for contention; the extended code is what is tallied."""
PROVES_NOTHING = frozenset(
    {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
)
"""Primary codes after which the work may or may not have been done."""
_LONGEST_DETAIL = 300


class Details:
    """Short texts by number; the coordinator is told of each once, so that they outlive the worker."""

    def __init__(self, line: Line) -> None:
        self._numbers = {"": 0}
        self._line = line

    def number(self, kind: str, example: Callable[[], str]) -> int:
        """The number of a kind of failure; its first example is kept, as far as it can be written."""
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self._numbers)
            self._line.say(said="detail", kind=written(kind), example=written(example()))
        return number


def written(text: str) -> str:
    """Cut to a readable length; what cannot be encoded, such as half a surrogate, is spelt out."""
    return text[:_LONGEST_DETAIL].encode("utf-8", "backslashreplace").decode()


def told(error: BaseException) -> str:
    """Class and message of an exception, even of one that cannot say it."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return f"{name}, whose message cannot be made"


def classify(error: BaseException) -> tuple[Outcome, str]:
    """What an exception of the receiver means, and under which name it is tallied.

    SQLite's own error counts even if the receiver, or a library between, wrapped it in another, or raised
    something else while it was handling it: the refusal is why the call failed.
    """
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        code = getattr(cause, "sqlite_errorcode", None)
        if isinstance(code, int):
            name = str(getattr(cause, "sqlite_errorname", code))
            if code & 0xFF in LOCK_ERRORS:
                return Outcome.LOCKED, name
            if code & 0xFF in PROVES_NOTHING:
                return Outcome.INDETERMINATE, name
            return Outcome.ERROR, name
        if cause.__cause__ is not None or cause.__suppress_context__:
            cause = cause.__cause__
        else:
            cause = cause.__context__
    if isinstance(error, EOFError | ConnectionError | TimeoutError):
        return Outcome.INDETERMINATE, type(error).__name__
    return Outcome.ERROR, type(error).__name__
