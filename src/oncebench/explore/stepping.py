"""Connections that park before every statement SQLite starts, whatever way the receiver calls.

A subclass of the receiver's own connection class says what the driver would say, one statement at a time:
the implicit BEGIN of the legacy mode, COMMIT and ROLLBACK of `with db:`, each row of `executemany`, each
statement of a script. A test holds that against SQLite's own trace.

Locks are SQLite's own answers: the busy timeout is always 0, so a refusal is seen at once. Where the real
busy handler would have waited, a gate that `waits` blocks the worker until another has moved. SQLite calls
the handler while a connection holds no transaction yet, and at COMMIT (`sqlite3BtreeBeginTrans`,
`pager_wait_on_lock`); whether one is held is asked of SQLite too, which refuses `PRAGMA wal_checkpoint` with
SQLITE_LOCKED exactly then, in every journal mode.
"""

from __future__ import annotations

import functools
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from oncebench.explore.clocks import trust
from oncebench.explore.gate import ANOTHERS, BESIDE, ONE_FILE, ONE_STORE, Gate, gate_of_caller
from oncebench.explore.sql import first_word, statements

_T = TypeVar("_T")
_BEGUN_FOR = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})
"""First words before which the driver's legacy mode begins a transaction."""
_MAY_WRITE = _BEGUN_FOR | {"WITH", "CREATE", "DROP", "ALTER", "REINDEX", "ANALYZE"}
_ENDS = frozenset({"COMMIT", "END", "RELEASE"})
_ISOLATION_LEVEL: Any = sqlite3.Connection.isolation_level
_AUTOCOMMIT: Any = getattr(sqlite3.Connection, "autocommit", None)


class Stepped(sqlite3.Connection):
    """A connection whose statements are steps; `stepped` puts it beneath any connection class."""

    store = ""
    """Real path of its file."""
    patient = True
    """Whether it has a busy timeout, so that its busy handler would wait at all."""
    owner: Gate
    """Of the worker that opened it."""
    user: Gate
    """Of the worker that ran the last statement on it: the same, but where workers share connections."""
    thread: int | None
    """The only one that may use it; None if any may."""
    readers: set[weakref.ref[SteppedCursor]]
    """Cursors not read to their end: each may hold a read lock."""

    @property
    def holds(self) -> bool:
        """Whether it may hold a lock: a transaction is open, or a cursor is still being read."""
        try:
            return self.in_transaction or bool(self.readers)
        except sqlite3.ProgrammingError:  # closed
            return False

    def cursor(self, factory: Any = None) -> Any:
        """As the driver's, with a cursor that steps."""
        gate = gate_of_caller.get()
        if gate is not None and gate is not self.owner and self.thread not in (None, threading.get_ident()):
            gate.refuse(ANOTHERS)
        return super().cursor(_stepped_cursor(factory or sqlite3.Cursor))

    # The driver's own shortcuts make a plain cursor, whatever `cursor` returns.
    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """As the driver's."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Any:
        """As the driver's."""
        return self.cursor().executemany(sql, parameters)

    def executescript(self, sql_script: str, /) -> Any:
        """As the driver's."""
        return self.cursor().executescript(sql_script)

    def commit(self) -> None:
        """COMMIT where the driver would."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """ROLLBACK where the driver would."""
        self._end("ROLLBACK")

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> Any:
        if _autocommit(self) is not True:
            if kind is not None:
                self.rollback()
            else:
                try:
                    self.commit()
                except BaseException:
                    self.rollback()
                    raise
        return False

    def close(self) -> None:
        """Close; what is open ends here, and others may be waiting for that."""
        gate = gate_of_caller.get()
        if gate is not None and self.holds and not gate.dead:
            gate.step("close()", ())
            gate.saw("closed")
        super().close()

    # Setting these runs a statement of its own: see "Transaction control" in sqlite3's documentation.
    @property
    def isolation_level(self) -> Any:
        """As the driver's."""
        return super().isolation_level

    @isolation_level.setter
    def isolation_level(self, level: Any) -> None:
        setting = functools.partial(_ISOLATION_LEVEL.__set__, self, level)
        if level is None and _autocommit(self) is False:  # the driver says both, which nothing can part
            self.perform("COMMIT", (), setting)
            self.perform("BEGIN", (), lambda: None)
            return
        if level is None:
            self.commit()
        setting()

    if sys.version_info >= (3, 12):

        @property
        def autocommit(self) -> Any:
            """As the driver's."""
            return super().autocommit

        @autocommit.setter
        def autocommit(self, mode: Any) -> None:
            if mode is True and self.in_transaction:
                self._say("COMMIT")
            elif mode is False and not self.in_transaction:
                self._say("BEGIN")
            _AUTOCOMMIT.__set__(self, mode)

    def _end(self, sql: str) -> None:
        mode = _autocommit(self)
        if mode is False:
            self._say(sql)
            self._say("BEGIN")
        elif mode is None and self.in_transaction:
            self._say(sql)

    def _say(self, sql: str) -> None:
        """A statement that the driver adds."""
        self.perform(sql, (), functools.partial(self.quietly, sql))
        _saw("ok")

    def quietly(self, sql: str) -> Any:
        """Run a statement without a step."""
        return sqlite3.Cursor(self).execute(sql)

    def begin_for(self, sql: str) -> None:
        """The BEGIN that the driver's legacy mode puts before a write."""
        if first_word(sql) in _BEGUN_FOR and _autocommit(self) is None and not self.in_transaction:
            level = self.isolation_level
            if level is not None:
                self._say(f"BEGIN {level}".rstrip())

    def perform(self, sql: str, parameters: object, action: Callable[[], _T]) -> _T:
        """Park, then run a statement, waiting for locks as the busy handler would."""
        gate = gate_of_caller.get()
        if gate is None:
            return action()
        if self.store != gate.store:
            gate.refuse(ONE_STORE)
        if gate.alone and gate is not self.owner and gate.handed is not self:
            gate.go_on("threads", BESIDE)  # it may be kept for each thread: then others would have their own
        gate.step(sql, parameters)
        if gate is not self.user:
            gate.uses(self)
        try:
            return action()
        except sqlite3.Error as error:
            if gate.waits and self.patient and _is_busy(error) and self._handler_is_called(sql):
                return self._wait(gate, sql, action, error)
            gate.saw(_name(error))
            raise

    def _handler_is_called(self, sql: str) -> bool:
        if not self.holds or first_word(sql) in _ENDS:
            return True
        try:
            self.quietly("PRAGMA wal_checkpoint").fetchone()
        except sqlite3.OperationalError as error:
            return error.sqlite_errorcode != sqlite3.SQLITE_LOCKED
        return True

    def _wait(self, gate: Gate, sql: str, action: Callable[[], _T], error: sqlite3.Error) -> _T:
        alone = not self.in_transaction and first_word(sql) in _MAY_WRITE and "RETURNING" not in sql.upper()
        while gate.wait(_name(error)):
            try:
                return self._spelled_out(gate, action) if alone else action()
            except sqlite3.Error as again:
                if not _is_busy(again):
                    gate.saw(_name(again))
                    raise
                error = again
        gate.saw(_name(error))
        raise error

    def _spelled_out(self, gate: Gate, action: Callable[[], _T]) -> _T:
        """A write that is a transaction by itself, as SQLite runs it: begin, write, commit.

        With a rollback journal that commit may have to wait for readers, and holds its locks meanwhile.
        """
        self.quietly("BEGIN")
        try:
            result = action()
            while True:
                try:
                    self.quietly("COMMIT")
                    return result
                except sqlite3.OperationalError as error:
                    if not _is_busy(error) or not gate.wait(_name(error)):
                        raise
        except BaseException:
            if self.in_transaction and not gate.dead:
                self.quietly("ROLLBACK")
            raise


class SteppedCursor(sqlite3.Cursor):
    """A cursor whose statements are steps, and which tells the gate what its reader sees."""

    _changed_by_many: int | None = None
    _reader: weakref.ref[SteppedCursor] | None = None

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """One statement, after the BEGIN that the driver may add."""
        db: Any = self.connection
        _refuse_attach(sql)
        db.begin_for(sql)
        if self._changed_by_many is not None:
            self._changed_by_many = None
        db.perform(sql, parameters, functools.partial(super().execute, sql, parameters))
        self._noted(db)
        _keep_ours(db, sql)
        return self

    def executemany(self, sql: str, rows: Iterable[Any], /) -> Any:
        """The statement once for each row of parameters."""
        db: Any = self.connection
        self._changed_by_many = None
        changed = 0
        for n, parameters in enumerate(rows):
            if n == 0:
                db.begin_for(sql)
            db.perform(sql, parameters, functools.partial(super().executemany, sql, (parameters,)))
            changed += max(super().rowcount, 0)
            self._changed_by_many = changed
            self._noted(db)
        if self._changed_by_many is None:  # no row: the driver knows what is to be said about the statement
            db.begin_for(sql)
            super().executemany(sql, ())
        return self

    def executescript(self, script: str, /) -> Any:
        """COMMIT of what is pending, then each statement of the script."""
        db: Any = self.connection
        if _autocommit(db) is None:
            db.commit()
        for sql in statements(script):
            _refuse_attach(sql)
            db.perform(sql, (), functools.partial(_run_to_its_end, db, sql))
            _saw("ok")
            _keep_ours(db, sql)
        return self

    def _noted(self, db: Any) -> None:
        if self.description is None:
            _saw(self.rowcount)
        else:
            if self._reader is None:
                self._reader = weakref.ref(self, db.readers.discard)
            db.readers.add(self._reader)
            _saw(())

    @property
    def rowcount(self) -> int:
        """As the driver's: of all rows after `executemany`."""
        return super().rowcount if self._changed_by_many is None else self._changed_by_many

    @property
    def lastrowid(self) -> Any:
        """As the driver's."""
        last = super().lastrowid
        _saw(last)
        return last

    def fetchone(self) -> Any:
        """As the driver's."""
        row = super().fetchone()
        _saw(row)
        if row is None:
            self._stop_reading()
        return row

    def fetchmany(self, *size: Any, **named: Any) -> Any:
        """As the driver's."""
        rows = super().fetchmany(*size, **named)
        _saw(rows)
        return rows

    def fetchall(self) -> Any:
        """As the driver's."""
        rows = super().fetchall()
        _saw(rows)
        self._stop_reading()
        return rows

    def __next__(self) -> Any:
        try:
            row = super().__next__()
        except StopIteration:
            _saw(None)
            self._stop_reading()
            raise
        _saw(row)
        return row

    def close(self) -> None:
        """As the driver's."""
        self._stop_reading()
        super().close()

    def _stop_reading(self) -> None:
        if self._reader is not None:
            db: Any = self.connection
            db.readers.discard(self._reader)


@functools.cache
def stepped(base: type[sqlite3.Connection]) -> type[Stepped]:
    """The class with `Stepped` beneath it, so that its own methods come first and reach ours by `super()`."""
    if issubclass(base, Stepped):
        return base
    return type(f"Stepped{base.__name__}", (Stepped,) if base is sqlite3.Connection else (base, Stepped), {})


@functools.cache
def _stepped_cursor(base: Any) -> Any:
    if not isinstance(base, type):  # a factory function makes what it makes: unseen, so not taken
        raise TypeError("explore needs a class as cursor factory, not a function")
    if issubclass(base, SteppedCursor):
        return base
    bases = (SteppedCursor,) if base is sqlite3.Cursor else (base, SteppedCursor)
    return type(f"Stepped{base.__name__}", bases, {})


def _autocommit(db: sqlite3.Connection) -> bool | None:
    """The `autocommit` attribute of Python 3.12; None for the legacy transaction control."""
    if _AUTOCOMMIT is None:
        return None
    mode = getattr(db, "autocommit", None)
    return mode if isinstance(mode, bool) else None


def _run_to_its_end(db: Stepped, sql: str) -> None:
    if _autocommit(db) is None and db.in_transaction:  # executescript would commit first
        db.quietly(sql).fetchall()
    else:
        sqlite3.Cursor(db).executescript(sql)


def _keep_ours(db: Stepped, sql: str) -> None:
    """Put back what exploring needs: refusals at once, though the receiver has a busy timeout; our clocks."""
    if first_word(sql) != "PRAGMA":
        return
    if "busy_timeout" in sql.lower():
        (milliseconds,) = db.quietly("PRAGMA busy_timeout").fetchone()
        db.patient = milliseconds > 0
        db.quietly("PRAGMA busy_timeout = 0")
    elif "trusted_schema" in sql.lower():
        trust(db)


def _refuse_attach(sql: str) -> None:
    if first_word(sql) == "ATTACH" and (gate := gate_of_caller.get()) is not None:
        gate.refuse(f"it attaches a second database with {sql!r}: {ONE_FILE}")


def _saw(result: object) -> None:
    gate = gate_of_caller.get()
    if gate is not None:
        gate.saw(result)


def _is_busy(error: sqlite3.Error) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_BUSY


def _name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", type(error).__name__))
