"""The processes of a race: started together, heard over sockets, never outliving the race."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import oncebench
from oncebench.messages import BadInput
from oncebench.race.line import Job
from oncebench.race.recorder import Watch, recording

_TICK = 0.2  # seconds between looks at the deadline and calls of the progress line
_HEAD_START = 100_000  # nanoseconds from opening a gate to the moment all start, ...
_WAKE_UP = 25_000  # ... and for each worker that has to wake up until then
_START = 60.0  # seconds for an interpreter and somebody's module to come up


@dataclass
class Member:
    """One worker process, as the coordinator sees it.

    Attributes:
        details: Kinds of failure it met, by the number its recording uses.
        examples: The first message of each kind.
        effective: The settings its connection really has.
        end: Why it ended before its job was done; empty if it did not.
        hung: Whether it was killed because the receiver did not come back.
        doomed: Whether it has said that it is about to be killed, as planned.
        said: What else it said.
        threaded: Whether connections to the store were opened for use by several threads in its process,
            or by coroutines.
        dead: Whether its process was seen to have ended.
        failed: Whether it said that it could not go on, which is the bench's fault once it is ready.
        forked: Whether a child came of it while it held a connection.
        ended: Whether it and all it started are gone.
    """

    job: Job
    process: subprocess.Popen[bytes]
    line: socket.socket
    errors: Path
    watch: Watch
    ready: bool = False
    running: bool = True
    at_gate: bool = False
    heard: bytes = b""
    details: list[str] = field(default_factory=lambda: [""])
    examples: dict[str, str] = field(default_factory=dict)
    effective: dict[str, Any] | None = None
    calls: int = 0
    last_sign: float = field(default_factory=time.monotonic)
    end: str = ""
    hung: bool = False
    failed: bool = False
    forked: bool = False
    doomed: bool = False
    threaded: bool = False
    said: list[dict[str, Any]] = field(default_factory=list)
    dead: bool = False
    ended: bool = False


class Crew:
    """Start, hear, release and end worker processes.

    Each worker is a fresh interpreter that leads a session of its own: Ctrl-C reaches the coordinator
    alone, and whatever a receiver starts is ended with its worker.
    """

    def __init__(
        self,
        deadline: float,
        tick: Callable[[int], None],
        module: str = "oncebench.race.worker",
    ) -> None:
        """Prepare; nobody is started yet.

        Args:
            deadline: Seconds that one call may take.
            tick: Called a few times a second with the calls that came back.
            module: The one whose `main()` a worker runs.
        """
        self.members: list[Member] = []
        self.gates = 0
        """Gates that were opened so far."""
        self.marked, self.marked_moment = 0, 0
        """The number of a gate, from 1, and the moment at which it was opened; 0 until then."""
        self._deadline = deadline
        self.heard = tick
        """Called a few times a second with the calls that came back."""
        self._begin = (
            f"import sys; sys.path.insert(0, {str(Path(oncebench.__file__).parents[1])!r}); "
            f"from {module} import main; main()"
        )
        self._life, self._hold = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._next_tick = 0.0

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            _end(member)
            member.line.close()
        self._selector.close()
        os.close(self._life)
        os.close(self._hold)

    def start(self, jobs: Sequence[Job], threads: int = 1) -> list[Member]:
        """Start a process for each job, or for so many of them, and wait until all are ready.

        Raises:
            BadInput: One of them cannot begin.
        """
        groups = [jobs[n : n + threads] for n in range(0, len(jobs), threads)]
        started = [member for group in groups for member in self._spawn(group)]
        limit = time.monotonic() + _START
        while not all(member.ready for member in started):
            self._hear(_TICK)
            for member in started:
                if member.end and not member.ready:
                    raise BadInput(_did_not_begin(member))
                if time.monotonic() > limit and not member.ready:
                    raise BadInput(f"worker {member.job.worker} did not come up within {_START:g} s")
        return started

    def run(
        self,
        workers: list[Member],
        at_gate: Callable[[], None] = lambda: None,
        successor: Callable[[Member], Job | None] = lambda member: None,
    ) -> None:
        """Hear the workers until the last has ended.

        Args:
            workers: Those to hear; successors are added to it.
            at_gate: Called when all wait at a gate, before it is opened.
            successor: What is to be done in the place of one that has ended, if anything.
        """
        while running := [member for member in workers if member.running]:
            if all(member.at_gate for member in running):
                at_gate()
                self._open_gate(running)
            self._hear(_TICK)
            now = time.monotonic()
            if now >= self._next_tick:
                self._next_tick = now + _TICK
                self._look(running, now)
                self.heard(sum(member.calls for member in self.members))
            for member in running:
                if not member.running and (job := successor(member)) is not None:
                    workers += self._spawn([job])

    def end(self, members: Sequence[Member]) -> None:
        """Kill these, wait until they are gone, and hear what they said before."""
        for member in members:
            _end(member)
        for _ in members:  # as many rounds at the most: somebody whom they started may hold a line open
            if all(member.line.fileno() < 0 for member in members):
                break
            self._hear(_TICK)

    def _spawn(self, jobs: Sequence[Job]) -> list[Member]:
        """One process, with a line for each job."""
        pairs = [socket.socketpair() for _ in jobs]
        errors = Path(jobs[0].folder) / f"worker-{jobs[0].worker}.errors"
        descriptors = [theirs.fileno() for _, theirs in pairs] + [self._life]
        with contextlib.ExitStack() as stack:
            stderr = stack.enter_context(errors.open("wb"))
            for _, theirs in pairs:
                stack.enter_context(theirs)
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", self._begin, *map(str, descriptors)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=descriptors,
                start_new_session=True,
            )
        members = []
        for job, (mine, _) in zip(jobs, pairs, strict=True):
            watch = Watch(Path(job.folder) / recording(job.worker, job.life))
            members.append(member := Member(job, process, mine, errors, watch))
            self.members.append(member)
            self._selector.register(mine, selectors.EVENT_READ, member)
            with contextlib.suppress(OSError):  # it died already: its line says so
                mine.sendall(json.dumps(asdict(job)).encode() + b"\n")
        return members

    def _open_gate(self, running: list[Member]) -> None:
        self.gates += 1
        turn = self.gates % len(running)  # take turns in being released first
        moment = time.perf_counter_ns() + _HEAD_START + _WAKE_UP * len(running)
        if self.gates == self.marked:
            self.marked_moment = moment
        for member in running[turn:] + running[:turn]:
            member.at_gate = False
            with contextlib.suppress(OSError):
                member.line.send(b"%d\n" % moment)

    def _hear(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            member: Member = key.data
            try:
                data = member.line.recv(65536)
            except ConnectionError:
                data = b""
            if not data:
                self._left(member)
                continue
            *lines, member.heard = (member.heard + data).split(b"\n")
            for line in lines:
                if line == b"@":
                    member.at_gate = True
                else:
                    _take(member, json.loads(line))
            member.last_sign = time.monotonic()

    def _left(self, member: Member) -> None:
        """Its end of the line is closed."""
        self._selector.unregister(member.line)
        member.line.close()
        _end(member)
        if member.running:
            member.running = False
            member.end = member.end or f"ended by {_how(member.process.returncode)}"

    def _look(self, running: list[Member], now: float) -> None:
        """Kill those that have not come back from a call, or given a sign, for too long."""
        for member in running:
            calls, invoked = member.watch.look()
            if member.process.poll() is not None:
                if member.dead:  # its line was read to the end meanwhile, but a child of it holds it open
                    self._left(member)
                member.dead = True
            if calls > member.calls or member.at_gate:
                member.calls, member.last_sign = calls, now
            silent = (time.perf_counter_ns() - invoked) / 1e9 if invoked else now - member.last_sign
            if member.running and not member.at_gate and silent > self._deadline:
                member.hung = True
                member.end = f"killed: the receiver did not come back within {self._deadline:g} s"
                _end(member)


def _take(member: Member, message: dict[str, Any]) -> None:
    match message:
        case {"said": "ready"}:
            member.ready = True
            member.effective = message["effective"]
        case {"said": "detail"}:
            member.details.append(message["kind"])
            member.examples[message["kind"]] = message["example"]
        case {"said": "forked"}:
            member.forked = True
        case {"said": "failed"}:
            member.end = message["why"]
            member.failed = True
        case {"said": "doomed"}:
            member.doomed = True
        case {"said": "done"}:
            member.running = False
            member.threaded = message.get("threaded", False)
        case _:
            member.said.append(message)


def _end(member: Member) -> None:
    """Kill it and all it started, and wait until it is gone."""
    if not member.ended:
        member.ended = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(member.process.pid, signal.SIGKILL)
        member.process.wait()


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _did_not_begin(member: Member) -> str:
    said = member.errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    more = f": {said[-1]}" if said else ""
    return f"worker {member.job.worker} of {member.job.target} could not begin: {member.end}{more}"
