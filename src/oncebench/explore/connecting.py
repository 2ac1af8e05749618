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

from oncebench.explore.clocks import follow
from oncebench.explore.gate import (
    BESIDE,
    NOBODYS_THREAD,
    ONE_FILE,
    Killed,
    explores,
    gate_of_caller,
    opened_by_strangers,
    started_by,
)
from oncebench.explore.stepping import stepped
from oncebench.messages import BadInput
from oncebench.race.connections import CONNECT

_connect = sqlite3.connect
_start_plain = threading.Thread.start


@functools.wraps(_connect)
def connect_stepped(database: Any, *arguments: Any, **named: Any) -> Any:
    """As `sqlite3.connect`; what a worker opens steps."""
    gate = gate_of_caller.get()
    named.update(zip(CONNECT, arguments, strict=False))
    place = _place(database, bool(named.get("uri")))
    if gate is None:
        if place in _explored and not explores.get():
            opened_by_strangers.add(place)
            raise BadInput(NOBODYS_THREAD)
        return _connect(database, **named)
    if place != gate.store:
        gate.refuse(f"it opens a second database, {place or database!r}: {ONE_FILE}")
    if threading.get_ident() != gate.thread:
        if gate.alone:
            gate.go_on("threads", BESIDE)
        named["check_same_thread"] = False  # what it leaves open is rolled back by the worker's own thread
    thread = threading.get_ident() if named.get("check_same_thread", True) else None
    patient = named.pop("timeout", 5.0) > 0
    base = named.pop("factory", sqlite3.Connection)
    db = _connect(database, timeout=0, factory=stepped(base), **named)
    db.patient, db.store, db.owner, db.thread, db.readers = patient, place, gate, thread, set()
    follow(db)
    gate.uses(db)
    return db


def _start(thread: threading.Thread) -> None:
    """A thread is of whoever started it."""
    gate, ours = gate_of_caller.get(), explores.get()
    if gate is not None or ours:
        run = thread.run

        def run_for_its_owner() -> None:
            gate_of_caller.set(gate)
            explores.set(ours)
            with contextlib.suppress(Killed):
                run()

        thread.run = run_for_its_owner  # type: ignore[method-assign]
    _start_plain(thread)
    if gate is not None:
        before = started_by.get(gate.thread, [])
        started_by[gate.thread] = [*(known for known in before if known.is_alive()), thread]


def _place(database: Any, uri: bool) -> str:
    text = os.fsdecode(database)
    if uri and text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    return os.path.realpath(text) if text not in ("", ":memory:") else text


_explored: set[str] = set()
"""Stores that are being explored."""


@contextlib.contextmanager
def explored(store: str) -> Iterator[None]:
    """Within, the calling thread explores a store; threads that a worker starts run the worker's code too.

    Args:
        store: Real path of the one file that workers may open.
    """
    before = threading.Thread.start
    threading.Thread.start = _start  # type: ignore[assignment, method-assign]
    _explored.add(store)
    ours = explores.get()
    explores.set(True)
    try:
        yield
    finally:
        explores.set(ours)
        threading.Thread.start = before  # type: ignore[method-assign]
        _explored.discard(store)
        opened_by_strangers.discard(store)
