"""Right: one writer process commits many deliveries in one transaction, and answers after the commit.

The workers hand their deliveries to it over a socket beside the store. One wait for the disk serves all
that arrived meanwhile, and nobody competes for the write lock, so nobody starves.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path

from oncebench.messages import Conflict
from oncebench.receivers.inbox import seen

_PATIENCE = 10.0  # seconds for the writer to come up


class Group:
    """A receiver whose connection leads to the one writer."""

    def connect(self, path: Path) -> Connection:
        """Reach the writer."""
        give_up = time.monotonic() + _PATIENCE
        while True:
            line = socket.socket(socket.AF_UNIX)
            try:
                line.connect(f"{path}-group")
                return Connection(line.detach())
            except (FileNotFoundError, ConnectionRefusedError):
                line.close()
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.01)

    def receive(self, line: Connection, id: str, qty: int) -> bool:
        """Hand the message over and wait for the commit."""
        line.send_bytes(json.dumps([id, qty]).encode())
        answer = json.loads(line.recv_bytes())
        if isinstance(answer, list):
            raise RuntimeError(f"the writer's transaction failed: {answer[0]}")
        if not isinstance(answer, bool):
            raise Conflict(answer)
        return answer

    def serve(self, db: sqlite3.Connection, path: Path) -> None:
        """Be the writer: everything that is waiting goes into one transaction."""
        address = Path(f"{path}-group")
        address.unlink(missing_ok=True)  # of a writer that was killed
        door = socket.socket(socket.AF_UNIX)
        door.bind(str(address))
        door.listen(128)
        lines: list[Connection] = []
        while True:
            ready = wait([door, *lines])
            if door in ready:
                lines.append(Connection(door.accept()[0].detach()))
            asked = [(line, heard) for line in lines if line in ready and (heard := _hear(line, lines))]
            if asked:
                answers: list[tuple[Connection, bool | str | list[str]]]
                try:
                    with db:
                        db.execute("BEGIN IMMEDIATE")
                        answers = [(line, _apply(db, *json.loads(heard))) for line, heard in asked]
                except sqlite3.Error as error:  # nothing of it is there, for nobody
                    answers = [(line, [str(error)]) for line, _ in asked]
                for line, answer in answers:
                    with contextlib.suppress(OSError):  # the worker died: its publisher delivers again
                        line.send_bytes(json.dumps(answer).encode())


def _apply(db: sqlite3.Connection, id: str, qty: int) -> bool | str:
    try:
        if seen(db, id, qty):
            return False
    except Conflict as conflict:
        return str(conflict)
    db.execute("INSERT INTO inbox VALUES (?, ?)", (id, qty))
    db.execute("UPDATE stock SET total = total + ?", (qty,))
    return True


def _hear(line: Connection, lines: list[Connection]) -> bytes:
    try:
        return line.recv_bytes()
    except (EOFError, ConnectionResetError):
        lines.remove(line)
        return b""


receiver = Group()
