"""Workers as processes: `python -m oncebench.explore.processes LINE STACK`, inherited descriptors.

Each has the store to itself as a publisher's process would: its own SQLite, its own POSIX locks. A death is
SIGKILL. When the scheduler dies, the line ends and so do the workers.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import re
import select
import signal
import subprocess
import sys
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from types import TracebackType
from typing import Any

import oncebench
from oncebench.explore.core import one_core
from oncebench.explore.distant import Distant, Line, serve
from oncebench.explore.gate import Event
from oncebench.explore.pulse import Pulse, place, threads_of
from oncebench.explore.site import Site
from oncebench.messages import BadInput
from oncebench.receivers import loader

_START = 60.0  # seconds for a process to come up on a busy machine
_WHERE = signal.SIGVTALRM
_ANSWER = 0.2  # seconds for it to write down its stack


class Processes(Distant):
    """A crew of processes. Use it in a `with` statement."""

    def __init__(self, site: Site, workers: int, waits: bool, patience: float = 5.0) -> None:
        """Prepare.

        Args:
            site: The store.
            workers: How many.
            waits: Whether workers wait for locks where SQLite's busy handler would.
            patience: Seconds after which a worker that does not come back to a step is given up.

        Raises:
            BadInput: The receiver cannot be imported by another process.
        """
        name = site.receiver.name
        if "<locals>" in name or "<lambda>" in name:
            raise BadInput(
                f"{name} cannot be imported by another process: define it at the top of a module, "
                "or explore it on greenlets or threads"
            )
        self._site, self._waits, self._patience = site, waits, patience
        self._members: list[_Process] = []
        self._spare: _Process | None = None
        self._workers = workers
        self._around = contextlib.ExitStack()
        super().__init__([], patience)

    def __enter__(self) -> Processes:
        self._around.enter_context(one_core())
        try:
            self._members = [self._new() for _ in range(self._workers)]
            super().__init__(list(self._members), self._patience)
            for member in self._members:
                member.ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        members = [*self._members, *([self._spare] if self._spare else [])]
        self._members, self._spare = [], None
        with self._around:
            for member in members:
                member.kill()

    def kill(self, worker: int) -> None:
        """SIGKILL; a process that stood by, with a connection already open, takes its place."""
        self._members[worker].kill()
        self.forget(worker)
        spare = self._spare or self._new()
        self._spare = None
        self._members[worker] = self.lines[worker] = spare
        if not spare.connected:
            spare.ready()
        self.connected[worker] = spare.connected

    def stand_by(self) -> None:
        """Have a process ready to take the place of one that will be killed.

        Opening a connection takes a read lock, which another worker may refuse just then.
        """
        if self._spare is None:
            self._spare = self._new()
            self._spare.ready()
        if not self._spare.connected:
            self._spare.say(("connect",))
            self._spare.hear()
            self._spare.connected = True

    def disconnect(self) -> None:
        """Close all connections."""
        super().disconnect()
        if self._spare is not None and self._spare.connected:
            self._spare.say(("disconnect",))
            self._spare.hear()
            self._spare.connected = False

    def _new(self) -> _Process:
        return _Process(self._site, self._waits, self._patience)


class _Process(Line):
    """The near end of a process."""

    def __init__(self, site: Site, waits: bool, patience: float) -> None:
        super().__init__(patience)
        self.connected = False
        self._line, theirs = Pipe()
        self._ready = select.poll()  # the line's own poll makes one anew each time
        self._ready.register(self._line, select.POLLIN)
        self._stack, its_stack = os.pipe()
        environment = dict(os.environ)
        source = str(Path(oncebench.__file__).parents[1])
        environment["PYTHONPATH"] = os.pathsep.join([source, environment.get("PYTHONPATH", "")]).rstrip(
            os.pathsep
        )
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "oncebench.explore.processes", str(theirs.fileno()), str(its_stack)],
                pass_fds=[theirs.fileno(), its_stack],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
        finally:
            theirs.close()
            os.close(its_stack)
        self.say((site.receiver.name, list(sys.path), str(site.path), site.settings, waits))

    def ready(self) -> None:
        """Wait until it has come up.

        Raises:
            BadInput: It did not.
        """
        event = self.heard_within(_START)
        if event is None or event.kind != "done":
            raise BadInput(f"a worker process could not start: {event.what if event else 'no answer'}")

    def say(self, message: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the next hear() says so
            self._line.send_bytes(pickle.dumps(message))

    def pulse(self) -> Pulse:
        return Pulse(self._process.pid, lambda: threads_of(self._process.pid))

    def kill(self) -> None:
        """It may be killed already."""
        self._process.kill()
        self._process.wait()
        if not self._line.closed:
            self._line.close()
            os.close(self._stack)

    def heard_within(self, seconds: float) -> Event | None:
        try:
            if self._ready.poll(1000 * seconds):
                event: Event = pickle.loads(self._line.recv_bytes())
                return event
        except (EOFError, ConnectionResetError):
            return Event("refused", "its worker process ended by itself: a receiver must not end the process")
        return None

    def where(self) -> str:
        """Asks the process, which answers even from within a lock: a signal has it write down its stack."""
        self._process.send_signal(_WHERE)
        text = ""
        while select.select([self._stack], [], [], _ANSWER)[0] and (read := os.read(self._stack, 65536)):
            text += read.decode(errors="replace")
        return place((file, int(line)) for file, line in re.findall(r'File "(.+)", line (\d+) in', text))


def _main() -> None:
    line = Connection(int(sys.argv[1]))

    def hear() -> Any:
        return pickle.loads(line.recv_bytes())

    def say(event: Event) -> None:
        line.send_bytes(pickle.dumps(event))

    faulthandler.register(_WHERE, int(sys.argv[2]), all_threads=False)
    try:
        name, import_path, path, settings, waits = hear()
        sys.path[:] = import_path
        try:
            receiver = loader.load(name)
        except BadInput as error:
            say(Event("refused", str(error)))
            return
        say(Event("done"))
        from oncebench.explore.surroundings import surroundings

        with surroundings(str(Path(path).resolve())):
            serve(hear, say, receiver, Path(path), settings, waits, has_process=True)
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the scheduler is gone
        pass
    os._exit(0)


if __name__ == "__main__":
    _main()
