"""Nothing leaks, nothing hangs: whatever is killed, no process, no file and no lie stays behind."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oncebench.results.schema import RunResult

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-m", "oncebench"]
SLOW = f"{HERE / 'misbehaving.py'}:sleeps_a_little"

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes through /proc")


class Bench:
    """One `oncebench` in a temporary folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.out = folder / "results"
        self.process: subprocess.Popen[str] | None = None

    def start(self, *arguments: str, before: Callable[[], None] | None = None) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments, "--out", str(self.out)],
            env={**os.environ, "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
            start_new_session=True,
        )
        return self.process

    def finish(self, *arguments: str, before: Callable[[], None] | None = None) -> tuple[int, str, str]:
        process = self.start(*arguments, before=before)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def workers(self) -> list[int]:
        """Processes that work in this bench's temporary folder or were started by it."""
        mine = f"TMPDIR={self.temporary}"
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (self.process is None or int(entry.name) != self.process.pid):
                with contextlib.suppress(OSError):
                    if mine.encode() in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return sorted(found)

    def wait_for_workers(self, count: int) -> list[int]:
        """Until they are at work: their recordings are being written."""
        eventually(lambda: len(list(self.temporary.glob("oncebench-*/*.calls"))) >= count)
        return self.workers()

    def saved(self) -> Any:
        [file] = self.out.glob("*/run.json")
        return json.loads(file.read_text())

    def assert_clean(self) -> None:
        eventually(lambda: not self.workers())
        eventually(lambda: not list(self.temporary.iterdir()))
        assert [path.name for path in self.out.glob("*/*")] in ([], ["run.json"])


def eventually(condition: Callable[[], bool], seconds: float = 20) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for pid in [*made.workers(), *([made.process.pid] if made.process else [])]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if made.process is not None:
        made.process.communicate()


def test_ordinary_run_leaves_only_its_result(bench: Bench) -> None:
    """No process, no store, one run.json."""
    code, out, err = bench.finish("run", "immediate", "--ids", "10", "--journal", "wal")
    assert (code, "sound as declared" in out) == (0, True), err
    assert bench.saved()["complete"] is True
    bench.assert_clean()


def test_killed_coordinator_takes_all_with_it(bench: Bench) -> None:
    """Kill -9 of the coordinator: its workers notice, remove the store and end."""
    process = bench.start("run", SLOW, "--ids", "2000", "--journal", "wal")
    assert len(bench.wait_for_workers(4)) == 4
    process.kill()
    process.wait()
    bench.assert_clean()


def test_killed_coordinator_takes_a_hanging_worker_with_it(bench: Bench) -> None:
    """The same when the workers hang in the receiver."""
    process = bench.start("run", f"{HERE / 'misbehaving.py'}:never_answers", "--journal", "wal")
    bench.wait_for_workers(4)
    process.kill()
    process.wait()
    bench.assert_clean()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_saves_what_it_had(bench: Bench, number: signal.Signals) -> None:
    """Ctrl-C and a polite kill: told, kept, exit code 128 + signal, nothing left."""
    process = bench.start("run", SLOW, "--ids", "2000", "--journal", "wal", "--workload", "spread")
    bench.wait_for_workers(4)
    time.sleep(0.5)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "interrupted" in out
    assert "unknown" in out
    saved = bench.saved()
    assert saved["complete"] is False
    [variant] = saved["variants"]
    assert variant["verdict"] == "unknown"
    assert 0 < variant["tallies"]["deliveries"] < variant["tallies"]["planned"]
    bench.assert_clean()


def test_killed_worker_is_told_and_the_rest_goes_on(bench: Bench) -> None:
    """Kill -9 of one worker from outside: at most its open delivery is indeterminate; the verdict stands."""
    process = bench.start("run", SLOW, "--ids", "30", "--journal", "wal", "--workload", "spread,same")
    victim = bench.wait_for_workers(4)[1]
    time.sleep(0.5)
    os.kill(victim, signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    assert "ended by signal 9" in out
    [variant] = bench.saved()["variants"]
    assert variant["verdict"] == "sound"
    assert variant["tallies"]["indeterminate"] <= 1
    assert variant["tallies"]["deliveries"] < variant["tallies"]["planned"]
    bench.assert_clean()


def test_hanging_receiver_ends_within_the_deadline(bench: Bench) -> None:
    """A clear sentence, the right tally, exit code 1, nothing left."""
    code, out, _ = bench.finish(
        "run", f"{HERE / 'misbehaving.py'}:sleeps_for_ever_on_one_id",
        "--journal", "wal", "--deadline", "1s", "--busy-timeout", "500ms", "--ids", "5",
    )  # fmt: skip
    assert code == 1
    assert "did not come back within 1 s" in out
    [variant] = bench.saved()["variants"]
    assert variant["tallies"]["indeterminate"] == 4
    bench.assert_clean()


def test_children_of_a_receiver_end_with_it(bench: Bench) -> None:
    """A process that a receiver started does not outlive the race."""
    code, out, _ = bench.finish(
        "run", f"{HERE / 'misbehaving.py'}:starts_a_child", "--journal", "wal", "--ids", "5"
    )
    assert code in (0, 3), out
    bench.assert_clean()


def test_limited_file_size_is_not_held_against_the_receiver(bench: Bench) -> None:
    """RLIMIT_FSIZE: I/O errors are indeterminate, the verdict is unknown with the reason."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    code, out, err = bench.finish("run", "immediate", "--journal", "wal", before=limit)
    assert code == 3, out + err
    assert "no fault of the receiver" in out
    [variant] = bench.saved()["variants"]
    assert variant["tallies"]["indeterminate"] > 0
    assert not variant["violations"]
    bench.assert_clean()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system, which only root can")
@pytest.mark.parametrize("full", ["store", "results"])
def test_full_disk(bench: Bench, full: str) -> None:
    """No room for the store: unknown; no room for the result: a sentence after the table."""
    small = bench.folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", small], check=False).returncode:
        pytest.skip("mount is not allowed here")
    try:
        if full == "store":
            code, out, _ = bench.finish("run", "immediate", "--journal", "wal", "--db", str(small / "x.db"))
            assert code == 3
            assert "SQLITE_FULL, which is no fault of the receiver" in out
            assert bench.saved()["complete"] is True
        else:
            (small / "ballast").write_bytes(bytes(300_000))
            bench.out = small / "results"
            code, out, err = bench.finish("run", "immediate", "--journal", "wal", "--ids", "10")
            assert code == 2
            assert "sound as declared" in out, "what was measured is told even if it cannot be kept"
            assert "No space left on device" in err
            assert "Traceback" not in err
            assert not list(bench.out.glob("*/*"))
    finally:
        subprocess.run(["umount", small], check=True)
    eventually(lambda: not bench.workers())


def test_saved_form_is_the_documented_one(bench: Bench) -> None:
    """The keys that others rely on, in the file and on standard output alike."""
    import msgspec

    code, out, _ = bench.finish("run", "naive", "--json", "--ids", "20", "--journal", "wal", "-q")
    assert code == 0
    printed = json.loads(out)
    assert printed == bench.saved()
    assert {"schema", "seed", "settings", "environment", "variants"} <= set(printed)
    [variant] = printed["variants"]
    assert {
        "name", "verdict", "expected_verdict", "tallies", "effects", "overlapped_ids", "violations",
    } <= set(variant)  # fmt: skip
    counts = "deliveries applied duplicate conflict locked error indeterminate retried retries"
    assert set(counts.split()) <= set(variant["tallies"])
    assert {"expected", "observed"} <= set(variant["effects"])
    for violation in variant["violations"]:
        assert {"kind", "id", "message", "operations", "schedule"} <= set(violation)
    assert msgspec.convert(printed, RunResult).variants[0].verdict == "broken"
