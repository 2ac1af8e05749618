"""The store that schedules are played on, made new before each, and read by a connection of its own."""

from __future__ import annotations

import itertools
import os
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oncebench.messages import State, Witness
from oncebench.receivers.loader import Receiver
from oncebench.stores import witness
from oncebench.stores.folder import Folder
from oncebench.stores.sqlite import Settings, Unreadable

_SIDE_FILES = ("", "-journal", "-wal", "-shm")
_FAST = Path("/dev/shm")  # locks there are the kernel's, as on a disk; only the wait for the disk is gone

FOLDER = "oncebench-explore-"
"""What the name of a site's folder begins with; the process's number follows."""
_tokens = itertools.count(1)  # of the process, as is what a receiver may remember
WITNESS = "oncebench_witness"
_RENEWAL = (  # one by one, since the driver keeps statements, but not scripts
    "BEGIN IMMEDIATE",
    "DELETE FROM inbox",
    "DELETE FROM stock",
    "INSERT INTO stock VALUES (0)",
    f"DELETE FROM {WITNESS}",
    "COMMIT",
)

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What an independent connection reads, as plain tuples: comparable, and cheap.

    Attributes:
        total: The stock.
        inbox: `(id, qty)`, sorted.
        witness: `(event, amount, call, time of its commit, id)` in order; None where nobody watches.
    """

    total: int
    inbox: tuple[tuple[str, int], ...]
    witness: tuple[Row, ...] | None

    def state(self) -> State:
        """In the form the audit takes."""
        if self.witness is None:
            return State(self.total, self.inbox)
        import numpy as np

        columns = list(zip(*self.witness, strict=True)) or [(), (), (), (), ()]
        event, amount, call, at = (np.array(column, dtype=np.int64) for column in columns[:4])
        return State(self.total, self.inbox, Witness(event, amount, call, at, columns[4]))


_EMPTY = Reading(0, (), ())


class Site:
    """A folder of its own with one store in it; `close` removes it.

    Attributes:
        path: The store.
        token: What is appended to every id, other for each schedule: a receiver that remembers ids in the
            process must not take a new schedule for a redelivery. Taken off wherever ids are shown.
        drawn: Random texts of this schedule, and what stands for each wherever it is shown.
        is_wal: Whether it can be read at any time, since nobody who commits locks readers out.
    """

    def __init__(self, receiver: Receiver, settings: Settings, folder: Path | None = None) -> None:
        """Make it.

        Args:
            receiver: Whose store it is.
            settings: With which the bench's own connections are opened.
            folder: Where to make the folder; None for memory if it can be had, else the temporary folder.

        Raises:
            oncebench.messages.BadInput: The store cannot be made.
        """
        self.receiver = receiver
        self.settings = settings
        prefix = f"{FOLDER}{os.getpid()}-"
        place = folder or (_FAST if _FAST.is_dir() else Path(tempfile.gettempdir()))
        try:
            self._folder = Folder(prefix, place)
        except OSError:
            self._folder = Folder(prefix)
        self.path = self._folder.path / "store.db"
        self.token = ""
        self.drawn: dict[str, str] = {}
        self._clean = self._seen = -1
        self._aside = False
        self._renewable = True
        self._ours = receiver.own_setup is None and receiver.own_observe is None
        try:
            receiver.setup(self.path, settings, watched=True)
            self._template = self._files()
            self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove everything."""
        observer = getattr(self, "_observer", None)
        if observer is not None:
            observer.close()
        self._folder.close()

    def renew(self, disconnect: Callable[[], None]) -> Reading:
        """Make the store as new for the next schedule, and say how that reads.

        Args:
            disconnect: Closes all workers' connections; called if the file itself must be replaced.
        """
        self.token = f"@{next(_tokens)}"
        self.drawn.clear()
        if not self._is_as_made():
            self._observer.close()
            disconnect()
            for suffix in _SIDE_FILES:
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            for suffix, content in self._template.items():
                Path(f"{self.path}{suffix}").write_bytes(content)
            self._open()
        elif self._commits() != self._clean:
            for sql in _RENEWAL:
                self._observer.execute(sql)
        self._clean = self._seen = self._commits()
        return _EMPTY if self._ours else self.read()

    def _is_as_made(self) -> bool:
        """Whether the store differs from a new one by rows alone."""
        if not self._ours or not self._renewable:
            return False
        try:
            return self._schema_version() == self._schema and self._is_in_wal_mode() == self.is_wal
        except sqlite3.Error:
            return False

    def step_aside(self) -> None:
        """Close the bench's own connection until it is read again: also an idle one is in somebody's way."""
        self._observer.close()
        self._aside = True

    def come_back(self) -> None:
        """Open it again, if it was closed."""
        if self._aside:
            self._open()
            self._aside = self._renewable = False

    def read(self) -> Reading:
        """What the receiver left.

        Raises:
            oncebench.stores.sqlite.Unreadable: It cannot be read.
            sqlite3.Error: The same.
        """
        if not self._ours:
            state = self.receiver.observe(self.path)
            inbox = tuple(sorted((self.plain(id), qty) for id, qty in state.inbox))
            return Reading(state.total, inbox, None)
        if self._file() != self._made:
            raise Unreadable(f"the store {self.path.name} is gone: somebody has removed or replaced it")
        query = self._observer.execute
        totals = query("SELECT total FROM stock").fetchall()
        rows = query("SELECT id, qty FROM inbox ORDER BY id").fetchall()
        watched = self._schema_version() == self._schema or witness.is_whole(self._observer)
        seen = query(
            f"SELECT event, amount, coalesce(call, -1), 0, id FROM {WITNESS} ORDER BY seq"
        ).fetchall()
        whole = [total for (total,) in totals if isinstance(total, int)]
        return Reading(
            sum(whole),
            tuple([(self.plain(id), qty if isinstance(qty, int) else 0) for id, qty in rows]),
            tuple(
                [
                    (event, amount or 0, call, at, id and self.plain(id))
                    for event, amount, call, at, id in seen
                ]
            )
            if watched
            else None,
        )

    def plain(self, text: object) -> str:
        """A text without what differs from schedule to schedule: the token, and what was drawn at random."""
        plain = (text if isinstance(text, str) else repr(text)).replace(self.token, "")
        for drawn, name in self.drawn.items():
            plain = plain.replace(drawn, name)
        return plain

    def changed(self) -> bool:
        """Whether anybody has committed since this was asked last."""
        try:
            commits = self._commits()
        except sqlite3.OperationalError:  # with a rollback journal somebody is about to commit, but has not
            return False
        changed = commits != self._seen
        self._seen = commits
        return changed

    def is_write_locked(self) -> bool:
        """Whether anybody holds the write lock: SQLite says so by refusing it."""
        try:
            self._observer.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        self._observer.execute("ROLLBACK")
        return False

    def witnessed(self) -> int:
        """How many rows of the witness are committed; 0 where nobody watches."""
        if WITNESS not in self._tables:
            return 0
        (rows,) = self._observer.execute(f"SELECT coalesce(max(seq), 0) FROM {WITNESS}").fetchone()
        return int(rows)

    def content(self) -> list[tuple[str, list[Row]]]:
        """All rows of all tables."""
        if self._schema_version() != self._tables_of:
            self._list_tables()
        return [(name, self._rows(name)) for name in self._tables]

    def _list_tables(self) -> None:
        found = self._observer.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_stat%' ESCAPE '!'"
            " ORDER BY name"
        )
        self._tables = [name for (name,) in found]
        self._tables_of = self._schema_version()

    def _rows(self, table: str) -> list[Row]:
        if table == WITNESS:  # but for the clock
            return self._observer.execute(f"SELECT seq, event, id, amount, call FROM {WITNESS}").fetchall()
        name = '"' + table.replace('"', '""') + '"'
        try:
            return self._observer.execute(f"SELECT rowid, * FROM {name} ORDER BY rowid").fetchall()
        except sqlite3.OperationalError:  # a table without rowid
            return sorted(self._observer.execute(f"SELECT * FROM {name}").fetchall(), key=repr)

    def _open(self) -> None:
        self._observer = sqlite3.connect(self.path, isolation_level=None, timeout=0)
        self._observer.execute("PRAGMA synchronous = off")
        self._renewable = True
        self._made = self._file()
        self.is_wal = self._is_in_wal_mode()
        self._schema = self._schema_version()
        self._list_tables()
        self._clean = self._seen = self._commits()

    def _commits(self) -> int:
        """A number that changes with each commit of another connection."""
        (version,) = self._observer.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _file(self) -> int:
        """The number of the file that is there now; 0 for none."""
        try:
            return self.path.stat().st_ino
        except FileNotFoundError:
            return 0

    def _is_in_wal_mode(self) -> bool:
        return bool(self._observer.execute("PRAGMA journal_mode").fetchone() == ("wal",))

    def _schema_version(self) -> int:
        (version,) = self._observer.execute("PRAGMA schema_version").fetchone()
        return int(version)

    def _files(self) -> dict[str, bytes]:
        found = {suffix: Path(f"{self.path}{suffix}") for suffix in _SIDE_FILES if suffix != "-shm"}
        return {suffix: path.read_bytes() for suffix, path in found.items() if path.exists()}
