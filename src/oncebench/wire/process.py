"""The processes of a campaign: started, heard, killed and started again, and never outliving it.

Each is a fresh interpreter that leads a session of its own and runs `begin`. It gets its job over a socket
and says over it in lines of JSON that it is ready, and how it ended. When the campaign's process dies,
however it dies, a pipe closes and every child ends itself and removes the campaign's folder.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import oncebench
from oncebench.messages import BadInput
from oncebench.race.life import die_with

Role = Literal["server", "proxy", "publisher"]
"""Each is the module of that name beside this one, with a function `work(job, line)`."""
Kill = tuple[str, int]
"""A point and which of its occurrences, from 1, counted since the process began."""
START = 30.0
"""Seconds for a process to come up."""


class Line:
    """A child's end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._heard = end.makefile("rb")

    def hear(self) -> Any:
        """Wait for what the campaign says; ends the process if the campaign is gone."""
        line = self._heard.readline()
        if not line:
            os._exit(1)
        return json.loads(line)

    def say(self, **message: object) -> None:
        """Tell the campaign."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has just gone, and so will we
            self._end.sendall(json.dumps(message).encode() + b"\n")


class Death:
    """Kills its own process, as `kill -9` would, at a named point."""

    def __init__(self, kill: Sequence[Any] | None) -> None:
        self._point = str(kill[0]) if kill else ""
        self._left = int(kill[1]) if kill else 0
        self._lock = threading.Lock()

    def at(self, point: str) -> None:
        """To be called at every point."""
        if point != self._point:
            return
        with self._lock:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(START)  # the signal may take a moment: go no further


@dataclass
class Child:
    """One process.

    Attributes:
        name: How logs and sentences call it.
        process: To wait for.
        ready: Whether it said so.
        dead: Whether its process was seen to have ended.
        ended: Whether it and all it started are gone.
    """

    name: str
    process: subprocess.Popen[bytes]
    line: socket.socket
    errors: Path
    heard: bytes = b""
    ready: bool = False
    dead: bool = False
    ended: bool = False

    def say(self, **message: object) -> None:
        """Tell it something."""
        with contextlib.suppress(OSError):  # it is gone: its line will say so
            self.line.sendall(json.dumps(message).encode() + b"\n")


class Processes:
    """All children of one campaign; leaving the context ends every one of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[Child] = []
        self._life, self._hold = os.pipe()
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            end(child)
            child.line.close()
        self._selector.close()
        os.close(self._life)
        os.close(self._hold)

    def start(self, role: Role, name: str, job: dict[str, Any], *descriptors: int) -> Child:
        """Start one; it inherits these descriptors."""
        mine, theirs = socket.socketpair()
        errors = self._folder / f"{name.replace(' ', '-')}.errors"
        root = str(Path(oncebench.__file__).parents[1])
        code = f"import sys; sys.path.insert(0, {root!r}); from oncebench.wire.process import begin; begin()"
        with theirs, errors.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", code, role, str(theirs.fileno()), str(self._life)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=(theirs.fileno(), self._life, *descriptors),
                start_new_session=True,
            )
        child = Child(name, process, mine, errors)
        self._children.append(child)
        self._selector.register(mine, selectors.EVENT_READ, child)
        child.say(folder=str(self._folder), import_path=sys.path, job=job)
        return child

    def hear(self, timeout: float) -> list[tuple[Child, dict[str, Any]]]:
        """What children said, `{"said": "gone"}` for those that ended.

        Raises:
            BadInput: One of them could not begin.
        """
        said: list[tuple[Child, dict[str, Any]]] = []
        for key, _ in self._selector.select(timeout):
            child: Child = key.data
            try:
                data = child.line.recv(65536)
            except ConnectionError:
                data = b""
            *lines, child.heard = (child.heard + data).split(b"\n")
            said += [(child, json.loads(line)) for line in lines]
            if not data:
                said.append(self._bury(child))
        for child in self._children:
            if not child.ended and child.process.poll() is not None:
                if child.dead:  # its line was read to the end meanwhile, but a child of it holds it open
                    said.append(self._bury(child))
                child.dead = True
        for child, message in said:
            if message["said"] == "failed":
                what = "go on" if child.ready else "begin"
                raise BadInput(f"the {child.name} cannot {what}: {message['why']}")
            child.ready |= message["said"] == "ready"
            if message["said"] == "gone" and not child.ready:
                raise BadInput(f"the {child.name} could not begin: {_last_words(child)}")
        return said

    def _bury(self, child: Child) -> tuple[Child, dict[str, Any]]:
        self._selector.unregister(child.line)
        child.line.close()
        end(child)
        return child, {"said": "gone"}


def end(child: Child) -> None:
    """Kill it and all it started, and wait until it is gone."""
    if not child.ended:
        child.ended = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait()


def begin() -> None:
    """What a child runs: `ROLE LINE LIFE`, two inherited descriptors."""
    role, line, life = sys.argv[1], Line(socket.socket(fileno=int(sys.argv[2]))), int(sys.argv[3])
    told = line.hear()
    threading.Thread(target=die_with, args=(life, told["folder"]), daemon=True).start()
    sys.path[:] = told["import_path"]
    try:
        importlib.import_module(f"oncebench.wire.{role}").work(told["job"], line)
    except (BadInput, OSError) as error:
        line.say(said="failed", why=str(error))
    sys.stderr.flush()
    os._exit(0)  # whatever threads or exit handlers the receiver left behind


def _last_words(child: Child) -> str:
    said = child.errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    code = child.process.returncode
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"{how}: {said[-1]}" if said else how
