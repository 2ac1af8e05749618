"""What the publisher owes: its own database, one row for each message, in the order in which they are sent.

A row is `pending` until an answer proved that the message was accepted (`done`), or that another quantity or
content came first (`conflict`: kept aside for a person). Only `mark` changes it, in one commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from oncebench.messages import BadInput
from oncebench.wire.message import Malformed, check_id, check_qty, check_schema, encode, parse

State = Literal["pending", "done", "conflict"]
APPLICATION_ID = 0x4F555442  # "OUTB"
LOCK_PATIENCE = 5.0
"""Seconds to wait for another program's lock on the outbox."""
_SCHEMA = """
CREATE TABLE outbox(
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    qty INTEGER NOT NULL,
    schema INTEGER,
    payload TEXT,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'done', 'conflict'))
);
CREATE INDEX outbox_pending ON outbox(seq) WHERE state = 'pending';
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One message to send.

    Attributes:
        seq: Its place in the order.
        schema: Version of the payload's form; None without one.
        payload: JSON text, sent as it is spelled; None for none.
    """

    seq: int
    id: str
    qty: int
    state: State = "pending"
    schema: int | None = None
    payload: str | None = None


class Outbox:
    """The publisher's database; several programs may have it open."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it.

        Raises:
            BadInput: Something else is there, it cannot be written, or another program has it locked.
        """
        self._path = path
        with self._clearly():
            self._db = sqlite3.connect(path, isolation_level=None, timeout=LOCK_PATIENCE)
            try:
                self._db.execute("PRAGMA synchronous = full")
                self._make()
            except BaseException:
                self._db.close()
                raise

    def _make(self) -> None:
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            (mark,) = self._db.execute("PRAGMA application_id").fetchone()
            (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if mark == APPLICATION_ID:
                return
            if tables:
                raise BadInput(f"{self._path} holds tables that are no outbox: name another with --outbox")
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)

    @contextmanager
    def _clearly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise BadInput(
                    f"the outbox {self._path} has been locked by another program for more than "
                    f"{LOCK_PATIENCE:g} s: end that program and start again; nothing is lost"
                ) from error
            raise BadInput(f"the outbox {self._path} cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise BadInput(
                f"{self._path} is no outbox ({error}): name one, or a free path, with --outbox"
            ) from error

    def put(self, id: str, qty: int, schema: int | None = None, payload: str | None = None) -> int:
        """Add a message; the same id may come again.

        Returns:
            Its place in the order.

        Raises:
            BadInput: No warehouse would take it, so it would be sent for ever.
        """
        try:
            check_id(id)
            check_qty(qty)
            if payload is not None:
                check_schema(schema)
                parse(encode(id, qty, schema, payload))
        except Malformed as error:
            raise BadInput(f"a message cannot go into the outbox: {error}") from error
        with self._clearly():
            added = self._db.execute(
                "INSERT INTO outbox(id, qty, schema, payload) VALUES (?, ?, ?, ?)", (id, qty, schema, payload)
            )
            assert added.lastrowid is not None
            return added.lastrowid

    def pending(self, most: int) -> list[Row]:
        """The next so many that are to be sent, in order."""
        return self._rows("WHERE state = 'pending' ORDER BY seq LIMIT ?", most)

    def rows(self) -> list[Row]:
        """All, in order."""
        return self._rows("ORDER BY seq LIMIT ?", -1)

    def mark(self, seq: int, state: State) -> None:
        """What became of a row; durable on return."""
        with self._clearly():
            self._db.execute("UPDATE outbox SET state = ? WHERE seq = ?", (state, seq))

    def close(self) -> None:
        """Close it."""
        self._db.close()

    def _rows(self, which: str, most: int) -> list[Row]:
        columns = "seq, id, qty, state, schema, payload"
        with self._clearly():
            return [Row(*row) for row in self._db.execute(f"SELECT {columns} FROM outbox {which}", (most,))]
