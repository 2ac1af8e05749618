"""What `sqlite3.connect` is while workers run: it opens connections that step."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from oncebench.explore.gate import ONE_FILE, gate_of_caller
from oncebench.explore.stepping import stepped

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
    if gate is None:
        return _connect(database, *arguments, **named)
    named.update(zip(_CONNECT, arguments, strict=False))
    place = _place(database, bool(named.get("uri")))
    if place != gate.store:
        gate.refuse(f"it opens a second database, {place or database!r}: {ONE_FILE}")
    patient = named.pop("timeout", 5.0) > 0
    base = named.pop("factory", sqlite3.Connection)
    db = _connect(database, timeout=0, factory=stepped(base), **named)
    db.patient = patient
    gate.opened(db)
    return db


def _place(database: Any, uri: bool) -> str:
    text = os.fsdecode(database)
    if uri and text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    return os.path.realpath(text) if text not in ("", ":memory:") else text


@contextlib.contextmanager
def connections_stepped() -> Iterator[None]:
    """Within, `sqlite3.connect` called by a worker's code opens stepped connections; others see no change."""
    before = sqlite3.connect, sqlite3.dbapi2.connect
    sqlite3.connect = sqlite3.dbapi2.connect = _connect_stepped
    try:
        yield
    finally:
        sqlite3.connect, sqlite3.dbapi2.connect = before
