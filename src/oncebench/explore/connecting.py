"""What `sqlite3.connect` is while workers run: it opens connections that step."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from oncebench.explore.gate import ONE_FILE, ONE_THREAD, gate_of_caller, opened_by_strangers
from oncebench.explore.stepping import stepped
from oncebench.messages import BadInput

_CONNECT = (  # positional parameters of sqlite3.connect after the first
    "timeout",
    "detect_types",
    "isolation_level",
    "check_same_thread",
    "factory",
    "cached_statements",
    "uri",
)

_connect = sqlite3.connect


@functools.wraps(_connect)
def _connect_stepped(database: Any, *arguments: Any, **named: Any) -> Any:
    gate = gate_of_caller.get()
    named.update(zip(_CONNECT, arguments, strict=False))
    place = _place(database, bool(named.get("uri")))
    if gate is None:
        if _explored.get(place, threading.get_ident()) != threading.get_ident():
            opened_by_strangers.add(place)
            raise BadInput(ONE_THREAD)
        return _connect(database, **named)
    if place != gate.store:
        gate.refuse(f"it opens a second database, {place or database!r}: {ONE_FILE}")
    patient = named.pop("timeout", 5.0) > 0
    base = named.pop("factory", sqlite3.Connection)
    db = _connect(database, timeout=0, factory=stepped(base), **named)
    db.patient, db.store = patient, place
    gate.opened(db)
    return db


def _place(database: Any, uri: bool) -> str:
    text = os.fsdecode(database)
    if uri and text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    return os.path.realpath(text) if text not in ("", ":memory:") else text


_explored: dict[str, int] = {}
"""Stores that are being explored, each with the thread that does."""


@contextlib.contextmanager
def connections_stepped(store: str) -> Iterator[None]:
    """Within, `sqlite3.connect` called by a worker's code opens stepped connections; others see no change.

    Args:
        store: Real path of the one file that workers may open.
    """
    before = sqlite3.connect, sqlite3.dbapi2.connect
    sqlite3.connect = sqlite3.dbapi2.connect = _connect_stepped
    _explored[store] = threading.get_ident()
    try:
        yield
    finally:
        sqlite3.connect, sqlite3.dbapi2.connect = before
        del _explored[store]
        opened_by_strangers.discard(store)
