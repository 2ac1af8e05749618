"""Every connection that the receiver's process has to the store, whoever opened it.

A receiver need not use the connection that it is given: an engine's pool, or `sqlite3.connect` in each
call, would see no pause and no refusal, and pass untried. So the worker hears of all of them.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from oncebench.stores import sqlite
from oncebench.stores.witness import Witnessed

CONNECT = (  # positional parameters of sqlite3.connect after the first
    "timeout",
    "detect_types",
    "isolation_level",
    "check_same_thread",
    "factory",
    "cached_statements",
    "uri",
)
_BENCH = (sqlite3.Connection, Witnessed)  # factories that the bench itself asks for, by name


class Opened(sqlite3.Connection):
    """A connection like any other that a weak reference can be kept to."""


def when_opened(
    then: Callable[[sqlite3.Connection, dict[str, Any]], None],
    factory: type[sqlite3.Connection] = sqlite3.Connection,
    for_any_thread: Callable[[], bool] = lambda: False,
) -> None:
    """From now on `sqlite3.connect`, whoever calls it in this process, tells of each connection.

    Args:
        then: Called with each, and with the options that it was opened with.
        factory: The class of those for which none was named.
        for_any_thread: Says whether every thread may use them, whatever was asked for.
    """
    original: Callable[..., sqlite3.Connection] = sqlite3.connect

    def connect(database: Any, *arguments: Any, **options: Any) -> sqlite3.Connection:
        options = {
            "check_same_thread": True,
            "factory": factory,
            **dict(zip(CONNECT, arguments, strict=False)),
            **options,
        }
        changed = {"check_same_thread": False} if for_any_thread() else {}
        db = original(database, **options | changed)
        then(db, options)
        return db

    sqlite3.connect = sqlite3.dbapi2.connect = connect  # type: ignore[assignment]


class Connections:
    """Those opened through `sqlite3.connect` while it is replaced, as far as they are to the store.

    Attributes:
        before_statement: Called with each statement that one of them is about to run.
        for_any_thread: Whether every thread may use them: a loop's thread runs what a worker's looks at.
        heard: Whether they are. Not where threads may share one: while SQLite calls back it holds the
            connection and waits for Python, which another thread holds that waits for the connection.
        threaded: Whether one of them was opened with `check_same_thread=False`, which is how Python code
            says that threads may share it.
        beside: Connections to the store that the bench itself has opened, beside those for the receiver.
    """

    def __init__(self, store: str) -> None:
        self.before_statement: Callable[[str], None] = lambda statement: None
        self.for_any_thread = False
        self.heard = True
        self.threaded = False
        self.beside = 0
        self._store = os.path.realpath(store)
        self._patience: weakref.WeakKeyDictionary[sqlite3.Connection, float] = weakref.WeakKeyDictionary()
        self._impatient = False
        self._adjusting = False
        self._all: weakref.WeakSet[sqlite3.Connection] = weakref.WeakSet()

    def listen(self) -> None:
        """From now on, in this process, hear of each connection that is opened."""
        when_opened(self._take, Opened, lambda: self.for_any_thread)

    def are_open(self) -> bool:
        """Whether the process has one, of any driver; taken for granted where /proc does not say."""
        try:
            files = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
        except OSError:
            return True
        return files.count(self._store) > self.beside

    def leave(self, db: sqlite3.Connection) -> None:
        """Leave one connection to its owner: the worker sees to the one that it hands to the receiver."""
        with contextlib.suppress(TypeError):  # one that no weak reference can be kept to
            self._all.discard(db)

    def set_impatient(self, impatient: bool) -> None:
        """Take the busy timeout from all of them, those still to come included, or give it back."""
        self._impatient = impatient
        for db in list(self._all):
            self._adjust(db)

    def _take(self, db: sqlite3.Connection, options: dict[str, Any]) -> None:
        with contextlib.suppress(sqlite3.Error, TypeError):
            if options["factory"] in _BENCH or os.path.realpath(sqlite.file_of(db)) != self._store:
                return
            self.threaded |= not options["check_same_thread"]
            self._all.add(db)
            if self.heard:
                db.set_trace_callback(partial(self._before, weakref.ref(db)))
            self._adjust(db)

    def _before(self, known: weakref.ref[sqlite3.Connection], statement: str) -> None:
        """Called by SQLite on the connection's own thread, which alone may change its busy timeout."""
        if self._adjusting:
            return
        db = known()
        if db is not None and self._impatient != (db in self._patience):
            self._adjust(db)
        self.before_statement(statement)

    def _adjust(self, db: sqlite3.Connection) -> None:
        self._adjusting = True
        with contextlib.suppress(sqlite3.Error):  # closed, or another thread's: at its next statement
            if not self._impatient:
                if db in self._patience:
                    sqlite.set_busy_timeout(db, self._patience[db])
                    del self._patience[db]
            elif db not in self._patience:
                patience = sqlite.effective(db).busy_timeout
                sqlite.set_busy_timeout(db, 0)
                self._patience[db] = patience
        self._adjusting = False
