"""Whatever ends a campaign, no process, no port and no file stays behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "oncebench", "wire"]
LONG = ("immediate", "--messages", "400", "--pause", "20ms", "-q")

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes through /proc")


class Running:
    """One `oncebench wire` with a temporary folder and a port of its own."""

    def __init__(self, folder: Path) -> None:
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._folder = folder
        with socket.create_server(("127.0.0.1", 0)) as door:
            self.port = door.getsockname()[1]
        self.process: subprocess.Popen[str] | None = None

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments, "--port", str(self.port)],
            cwd=self._folder,
            env={**os.environ, "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self.process

    def children(self) -> dict[int, str]:
        """Everything that this command started, wherever it went: role by process id."""
        mine = f"TMPDIR={self.temporary}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (self.process is None or int(entry.name) != self.process.pid):
                with contextlib.suppress(OSError):
                    if mine in (entry / "environ").read_bytes().split(b"\0"):
                        words = (entry / "cmdline").read_bytes().split(b"\0")
                        found[int(entry.name)] = words[4].decode() if len(words) > 4 else "?"
        return found

    def wait_until_at_work(self) -> None:
        """All roles are there, and messages go through."""
        eventually(lambda: self._proofs() >= 3)
        # In the end: for a moment a child is the command's own image, until it has become what it is to be.
        eventually(lambda: set(self.children().values()) == {"server", "proxy", "publisher"})

    def _proofs(self) -> int:
        logs = self.temporary.glob("oncebench-*/events.jsonl")
        return sum(path.read_bytes().count(b'"proved"') for path in logs)

    def assert_clean(self) -> None:
        eventually(lambda: not self.children())
        eventually(lambda: not list(self.temporary.iterdir()))
        eventually(self._port_is_free)

    def _port_is_free(self) -> bool:
        try:
            socket.create_server(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True


def eventually(condition: Callable[[], bool], seconds: float = 30) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    yield made
    for pid in [*made.children(), *([made.process.pid] if made.process else [])]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if made.process is not None:
        made.process.communicate()


def test_after_success(running: Running) -> None:
    """A whole campaign, with deaths in it."""
    process = running.start("immediate", "--messages", "3", "--faults", "3", "--kills", "4", "-q")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    running.assert_clean()


def test_after_failure(running: Running, tmp_path: Path) -> None:
    """Servers that cannot begin: one sentence, exit code 2."""
    (tmp_path / "own.py").write_text(
        "import sys\n"
        "def receive(db, id, qty): return True\n"
        "if 'oncebench.wire.server' in sys.modules: raise OSError('no licence')\n"
    )
    process = running.start("own.py:receive", "-q")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "server" in err
    assert "no licence" in err
    assert "Traceback" not in err
    running.assert_clean()
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_an_interruption(running: Running, number: signal.Signals) -> None:
    """What was measured is told, the verdict is unknown."""
    process = running.start(*LONG)
    running.wait_until_at_work()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number, out + err
    assert "unknown, because it was interrupted" in out
    assert "Traceback" not in err
    running.assert_clean()


def test_after_kill_9(running: Running) -> None:
    """Nobody is left to clean up: the children see it, remove the folder and end."""
    process = running.start(*LONG)
    running.wait_until_at_work()
    process.kill()
    process.wait()
    running.assert_clean()


@pytest.mark.parametrize("role", ["server", "publisher"])
def test_child_that_somebody_else_kills(running: Running, tmp_path: Path, role: str) -> None:
    """`kill -9` from outside the plan: started again, and the campaign ends well."""
    process = running.start(
        "immediate", "--messages", "30", "--faults", "0", "--kills", "0", "--pause", "20ms", "--json", "-q"
    )
    running.wait_until_at_work()
    os.kill(next(pid for pid, what in running.children().items() if what == role), signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert '"verdict": "broken"' not in out, err
    assert f'"who": "{role} 1"' in out or f'"who": "{role} 2"' in out
    assert process.returncode in (0, 3), out + err  # 3: nothing had to be sent again
    running.assert_clean()


def test_what_a_receiver_starts_goes_with_it(running: Running, tmp_path: Path) -> None:
    """A forked child holds its server's line open; the server's death is noticed all the same."""
    (tmp_path / "own.py").write_text(
        "import os, time\n"
        "from oncebench.receivers import immediate\n"
        "def receive(db, id, qty):\n"
        "    if not os.fork():\n"
        "        time.sleep(10_000)\n"
        "    return immediate.receive(db, id, qty)\n"
    )
    process = running.start(
        "own.py:receive", "--messages", "4", "--faults", "3", "--kills", "6", "--servers", "1", "-q"
    )
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, out + err
    assert "sound as declared" in out
    running.assert_clean()


def test_retention_after_kill_9(running: Running) -> None:
    """The same for the other way of running."""
    process = running.start("pruned", "--retain", "5000", "-q")
    eventually(lambda: set(running.children().values()) == {"server"})
    process.kill()
    process.wait()
    running.assert_clean()
