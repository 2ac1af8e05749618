"""What a coordinator and a worker say to each other: a job, moments at which gates open, lines of JSON."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar


@dataclass(frozen=True, slots=True)
class Job:
    """What one worker is to do.

    Attributes:
        target: The receiver, as the loader takes it.
        import_path: The coordinator's `sys.path`.
        folder: The run's folder, removed if the coordinator dies; the recording goes there.
        store: Path of the store.
        settings: Fields of `oncebench.stores.sqlite.Settings`.
        worker: Its number.
        seed: For pauses and backoff.
        max_tries: Calls for each delivery at most.
        insist: Try again after any failure, not only after a lock error, and stop after this many
            deliveries that stayed without an answer; 0 for neither.
        pause_share: Share of statements that a pause precedes in a paused phase.
        longest_pause: Seconds.
        phases: `[gated, paused, impatient, [[id, qty], ...], offered]` each; `offered` says when the
            deliveries are due, as `[place of the first, step, nanoseconds between two places]`, or is empty.
        offered_since: The moment from which that counts, where its gate was opened before this worker came.
        serving: Be what runs beside the workers instead.
        life: How many workers of this number were killed before this one.
        first_delivery: Deliveries that those had begun; the phases hold only what is left.
        first_call: Calls that those had made.
        gates: Gates on the way through the phases that were opened before this one came.
        until: Hand nothing over after this moment of the monotonic clock, in nanoseconds.
        dies_in: In which of its deliveries this one is to be killed, from 0; -1 for none.
    """

    target: str
    import_path: list[str]
    folder: str
    store: str
    settings: dict[str, Any]
    worker: int
    seed: int = 0
    max_tries: int = 1
    insist: int = 0
    pause_share: float = 0.5
    longest_pause: float = 0.001
    phases: list[list[Any]] | None = None
    offered_since: int = 0
    serving: bool = False
    life: int = 0
    first_delivery: int = 0
    first_call: int = 0
    gates: int = 0
    until: int = 2**63 - 1
    dies_in: int = -1


_Job = TypeVar("_Job", bound=Job)


class Line:
    """The worker's end of the socket."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._heard = self._socket.makefile("rb")
        self.opened = 0  # gates that need not be waited for
        self._working = False

    def job(self, kind: type[_Job]) -> _Job:
        """Wait for the job."""
        job = kind(**json.loads(self._hear()))
        self._working = True
        return job

    def say(self, **message: object) -> None:
        """Tell the coordinator."""
        self._send(json.dumps(message).encode() + b"\n")

    def gate(self) -> int:
        """Wait until all are here, then for the moment that all were given, awake, so as not to miss it.

        Returns:
            That moment; 0 if it was before this worker came.
        """
        if self.opened:
            self.opened -= 1
            return 0
        self._send(b"@\n")
        moment = int(self._hear())
        while time.perf_counter_ns() < moment:
            pass
        return moment

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except ConnectionError:
            self._await_end()

    def _hear(self) -> bytes:
        heard = self._heard.readline()
        if not heard:
            self._await_end()
        return heard

    def _await_end(self) -> NoReturn:
        """The coordinator is gone, or about to kill this process; `die_with` cleans up first."""
        if not self._working:
            os._exit(1)
        while True:
            time.sleep(60)
