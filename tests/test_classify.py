"""What an exception of the receiver means: by SQLite's extended code, wrapped or not."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from oncebench.messages import Outcome
from oncebench.race.failures import classify

LOCKED, ERROR, UNKNOWN = Outcome.LOCKED, Outcome.ERROR, Outcome.INDETERMINATE


def sqlite_error(name: str) -> sqlite3.Error:
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorname = name
    error.sqlite_errorcode = getattr(sqlite3, name)
    return error


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("SQLITE_BUSY", LOCKED),
        ("SQLITE_BUSY_SNAPSHOT", LOCKED),
        ("SQLITE_BUSY_RECOVERY", LOCKED),
        ("SQLITE_BUSY_TIMEOUT", LOCKED),
        ("SQLITE_LOCKED", LOCKED),
        ("SQLITE_LOCKED_SHAREDCACHE", LOCKED),
        ("SQLITE_PROTOCOL", LOCKED),
        ("SQLITE_IOERR_WRITE", UNKNOWN),
        ("SQLITE_FULL", UNKNOWN),
        ("SQLITE_CORRUPT", UNKNOWN),
        ("SQLITE_NOTADB", UNKNOWN),
        ("SQLITE_CONSTRAINT_PRIMARYKEY", ERROR),
        ("SQLITE_READONLY", ERROR),
        ("SQLITE_INTERRUPT", ERROR),
    ],
)
def test_sqlite_codes(name: str, outcome: Outcome) -> None:
    """The primary code decides, the extended one is the name it is tallied under."""
    assert classify(sqlite_error(name)) == (outcome, name)


def caught(raise_: Callable[[], None]) -> BaseException:
    try:
        raise_()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_wrapped_lock_error_is_one() -> None:
    """Raised from it, or while it was handled, as libraries do; not if the author cut the chain."""

    def explicitly() -> None:
        raise RuntimeError("library") from sqlite_error("SQLITE_BUSY")

    def implicitly() -> None:
        try:
            raise sqlite_error("SQLITE_BUSY_SNAPSHOT")
        except sqlite3.Error:
            raise ValueError("while handling")  # noqa: B904

    def cut() -> None:
        try:
            raise sqlite_error("SQLITE_BUSY")
        except sqlite3.Error:
            raise ValueError("something else") from None

    assert classify(caught(explicitly)) == (LOCKED, "SQLITE_BUSY")
    assert classify(caught(implicitly)) == (LOCKED, "SQLITE_BUSY_SNAPSHOT")
    assert classify(caught(cut)) == (ERROR, "ValueError")


def test_chain_that_bites_its_tail_ends() -> None:
    """Two exceptions that are each other's cause."""
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert classify(first) == (ERROR, "ValueError")


@pytest.mark.parametrize("error", [EOFError(), ConnectionResetError(), BrokenPipeError(), TimeoutError()])
def test_cut_connection_proves_nothing(error: BaseException) -> None:
    """The answer got lost, not necessarily the work."""
    assert classify(error) == (UNKNOWN, type(error).__name__)


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(1), MemoryError()])
def test_anything_else_is_an_error(error: BaseException) -> None:
    """Tallied by class."""
    assert classify(error) == (ERROR, type(error).__name__)
