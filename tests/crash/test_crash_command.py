"""`oncebench crash` with real processes: tables, saved form, exit codes, bad input, and no leaks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oncebench.results.files import load

HERE = Path(__file__).parent
ONCEBENCH = """
from oncebench import cli
from oncebench.cli.crash import crash

if crash not in [command.callback for command in cli.app.registered_commands]:
    cli.app.command()(crash)
cli.main()
"""
NEVER_ANSWERS = f"{HERE.parent / 'misbehaving.py'}:never_answers"


class Bench:
    """One `oncebench` in a temporary folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.out = folder / "results"
        self.process: subprocess.Popen[str] | None = None

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            [sys.executable, "-c", ONCEBENCH, *arguments],
            cwd=self.folder,
            env={**os.environ, "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return self.process

    def finish(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=90)
        return process.returncode, out, err

    def others(self) -> list[int]:
        """Processes that were started by this bench."""
        mine = f"TMPDIR={self.temporary}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (self.process is None or int(entry.name) != self.process.pid):
                with contextlib.suppress(OSError):
                    if mine in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found

    def wait_for_case(self, number: int) -> None:
        """Until that many stores were made."""
        eventually(lambda: bool(list(self.temporary.glob(f"oncebench-*/case-{number}"))))

    def saved(self) -> Any:
        [file] = self.out.glob("*/run.json")
        return json.loads(file.read_text())

    def assert_clean(self) -> None:
        eventually(lambda: not self.others())
        eventually(lambda: not list(self.temporary.iterdir()))
        assert [path.name for path in self.out.glob("*/*")] in ([], ["run.json"])


def eventually(condition: Callable[[], bool], seconds: float = 40) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    for pid in [*made.others(), *([made.process.pid] if made.process else [])]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if made.process is not None:
        made.process.communicate()


needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes through /proc")


def test_table_and_saved_form(bench: Bench) -> None:
    """Point x receiver, a line each; the JSON has the same; `show` prints what `crash` printed."""
    code, out, err = bench.finish("crash", "immediate", "id_first", "--journal", "wal", "--signal", "kill")
    assert code == 0, err
    [folder] = bench.out.iterdir()
    lines = out.splitlines()
    [line] = [line for line in lines if line.startswith("immediate  ")]
    assert line.split() == ["immediate", *["0", "0", "T", "7"] * 3, *["1", "7", "F", "7"] * 2]
    [line] = [line for line in lines if line.startswith("id_first  ")]
    assert line.split()[:9] == ["id_first", "1", "0", "F", "0", "1", "7", "F", "7"]
    assert "found lost: after 1 of" in out
    assert max(len(line) for line in lines if "again:" not in line and "saved:" not in line) <= 80
    assert "immediate: sound as declared" in out
    assert "id_first: broken as declared" in out
    saved = bench.saved()
    assert (saved["schema"], saved["kind"], saved["complete"]) == (1, "crash", True)
    point = saved["variants"][0]["points"][3]
    assert {key: point[key] for key in ("journal", "delivery", "signal", "process", "place", "number")} == {
        "journal": "wal",
        "delivery": "first",
        "signal": "SIGKILL",
        "process": "worker",
        "place": "after statement",
        "number": 3,
    }
    assert point["names"] == ["after inbox insert"]
    assert saved["variants"][1]["violations"][0]["point"].startswith("SIGKILL after 1 INSERT INTO inbox")
    assert load(folder).variants[0].points[3].names == ["after inbox insert"]
    shown, again, _ = bench.finish("show", str(folder))
    assert shown == 0
    assert out.startswith(again)


def test_json_and_the_line_that_runs_it_again(bench: Bench) -> None:
    """Every option that matters is in it."""
    asked = ["--journal", "delete", "--signal", "term", "--synchronous", "off", "--seed", "3"]
    code, out, err = bench.finish("crash", "memory", "--json", *asked, "--busy-timeout", "250ms")
    assert (code, json.loads(out)["variants"][0]["name"]) == (0, "memory"), err
    words = json.loads(out)["command"].split()
    assert words[:3] == ["oncebench", "crash", "memory"]
    assert words[3:] == [
        "--seed", "3", "--journal", "delete", "--signal", "term", "--synchronous", "off",
        "--busy-timeout", "0.25",
    ]  # fmt: skip


def test_exit_codes(bench: Bench) -> None:
    """1 for somebody's own that is broken, with the proof; 3 for what could not be killed within."""
    quick = ("--journal", "wal", "--signal", "kill", "-q")
    code, out, err = bench.finish("crash", f"{HERE / 'dying.py'}:LosesNotes", *quick)
    assert code == 1
    assert "broken, declared sound" in out
    assert "smallest proof: acked_but_lost" in out
    assert err == ""
    code, out, _ = bench.finish("crash", f"{HERE / 'dying.py'}:Notebook", *quick)
    assert code == 3
    assert "unknown, because wal: no statement of a sqlite3 connection was seen" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["imediate"], "did you mean immediate?"),
        (["immediate", "--journal", "memory"], "--journal takes wal, delete, not 'memory'"),
        (["immediate", "--signal", "hup"], "--signal takes kill, term, not 'hup'"),
        (["immediate", "--deadline", "1s"], "--deadline 1s must be longer than --busy-timeout 5s"),
        (["immediate", "--seed", "-1"], "--seed takes 0 to 2**63-1, not -1"),
        (["immediate", "--successor", "later"], "there is no variant 'later'"),
        (["immediate", "--out", "/proc/nowhere"], "cannot write results to /proc/nowhere"),
    ],
)
def test_bad_input_is_one_sentence(bench: Bench, arguments: list[str], sentence: str) -> None:
    """Exit code 2, no traceback, nothing made."""
    code, out, err = bench.finish("crash", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("oncebench: ")
    assert len(err.splitlines()) == 1
    assert sentence in err
    assert not bench.out.exists()


def test_a_receiver_that_cannot_connect(bench: Bench) -> None:
    """Named with what it said."""
    (bench.folder / "mine.py").write_text(
        "class Mine:\n"
        "    def connect(self, path): raise OSError('no route to the store')\n"
        "    def receive(self, db, id, qty): return True\n"
    )
    code, _, err = bench.finish("crash", "mine.py:Mine", "--journal", "wal")
    assert code == 2
    assert "no route to the store" in err
    assert not bench.out.exists()
    bench.assert_clean()


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_campaign_saves_what_it_had(bench: Bench, number: signal.Signals) -> None:
    """Told, kept, exit code 128 + signal, nothing left."""
    process = bench.start("crash", "immediate", "--journal", "wal")
    bench.wait_for_case(14)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "interrupted" in out
    saved = bench.saved()
    assert saved["complete"] is False
    assert saved["variants"][0]["verdict"] == "unknown"
    assert saved["variants"][0]["points"]
    bench.assert_clean()


@needs_proc
@pytest.mark.parametrize("case", [0, 2, 9])
def test_killed_coordinator_takes_all_with_it(bench: Bench, case: int) -> None:
    """Kill -9 in the rehearsal, among the deaths, between two lots of them: somebody cleans up."""
    process = bench.start("crash", "immediate", "group", "--journal", "wal")
    bench.wait_for_case(case)
    process.kill()
    process.wait()
    bench.assert_clean()


@needs_proc
def test_killed_coordinator_takes_a_hanging_worker_with_it(bench: Bench) -> None:
    """The receiver does not come back, and nobody is left who waits for it."""
    process = bench.start("crash", NEVER_ANSWERS, "--journal", "wal")
    eventually(lambda: len(list(bench.temporary.glob("oncebench-*/case-*/*.calls"))) >= 2)
    process.kill()
    process.wait()
    bench.assert_clean()
