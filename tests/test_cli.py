"""The command line: bad input gets one sentence and exit code 2, and touches nothing."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from oncebench.receivers.registry import VARIANTS

HERE = Path(__file__).parent


def oncebench(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "oncebench", *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def foreign(folder: Path) -> None:
    db = sqlite3.connect(folder / "foreign.db")
    db.execute("CREATE TABLE orders(id)")
    db.close()
    (folder / "note.txt").write_text("not a database, but long enough to be looked at as one. " * 20)
    (folder / "broken.py").write_text("import nothing_of_that_name\n")
    (folder / "mine.py").write_text("def two(db, id): ...\nvalue = 7\n")


BAD: list[tuple[list[str], str]] = [
    (["run", "imediate"], "did you mean immediate?"),
    (["run", "zzz"], "package.module:function"),
    (["run", "nowhere:receive"], "nowhere does not import"),
    (["run", "nowhere.py:receive"], "no file nowhere.py"),
    (["run", "broken.py:receive"], "nothing_of_that_name"),
    (["run", "mine.py:other"], "no 'other'"),
    (["run", "mine.py:two"], "receive(db, id, qty)"),
    (["run", "mine.py:value"], "a receiver is a function"),
    (["run", "--workers", "0"], "workers must be 1 to 256, not 0"),
    (["run", "--workers", "many"], "--workers"),
    (["run", "--max-qty", "1"], "max_qty must be 2 to 9223372036854775807, not 1"),
    (["run", "--max-qty", "9223372036854775807"], "the total could pass 2**63-1"),
    (["run", "--ids", "0"], "ids must be 1 to"),
    (["run", "--redeliveries", "-1"], "redeliveries must be"),
    (["run", "--conflicts", "1.5"], "conflicts is a share"),
    (["run", "--seed", "-3"], "seed must be"),
    (["run", "--journal", "memory"], "--journal takes wal, delete, not 'memory'"),
    (["run", "--synchronous", "extra"], "--synchronous takes"),
    (["run", "--workload", "storm"], "--workload takes"),
    (["run", "--busy-timeout", "soon"], "--busy-timeout takes a time such as 5s"),
    (["run", "--deadline", "1s"], "must be longer than the busy timeout"),
    (["run", "--deadline", "0"], "deadline must be more than 0"),
    (["run", "--time-limit", "0"], "time limit must be more than 0"),
    (["check", "imediate"], "did you mean immediate?"),
    (["check"], "Missing argument 'target'"),
    (["check", "immediate", "--seed", "-1"], "seed must be"),
    (["check", "immediate", "--time-limit", "never"], "--time-limit takes a time such as 5s"),
    (["run", "--kills", "-1"], "kills must be 0 to 100000"),
    (["run", "--max-tries", "0"], "max-tries must be 1 to 1000"),
    (["run", "--rate", "-1"], "rate must be 0 (closed loop) to 1,000,000"),
    (["run", "--repeat", "0"], "repeat must be 1 to 1000, not 0"),
    (["run", "--db", "foreign.db"], "did not make"),
    (["run", "--db", "note.txt"], "cannot be read as a database"),
    (["run", "--db", "missing/x.db"], "missing for the store: make it"),
    (["run", "--db", "/proc/x.db"], "cannot make a store at /proc/x.db"),
    (["run", "--out", "note.txt/results"], "cannot write results to note.txt/results"),
    (["run", "--out", "/proc/results"], "cannot write results to /proc/results"),
    (["run", "--colour"], "--colour"),
    (["sprint"], "sprint"),
    (["show", "nothing"], "cannot read nothing"),
    (["sweep", "imediate"], "did you mean immediate?"),
    (["sweep", "--workers", "1,two"], "--workers takes whole numbers such as 1,2,4, not 'two'"),
    (["sweep", "--workers", "0"], "workers must be 1 to 256, not 0"),
    (["sweep", "--journal", "wal,memory"], "--journal takes wal, delete"),
    (["sweep", "--busy-timeout", "0,soon"], "--busy-timeout takes a time such as 5s"),
    (["sweep", "--resume", "nothing"], "cannot read nothing"),
    (["sweep", "--resume", "note.txt"], "not a run that oncebench saved"),
    (["compare", "nothing", "note.txt"], "cannot read nothing"),
    (["compare", "note.txt", "mine.py"], "not a run that oncebench saved"),
    (["compare", "note.txt", "note.txt"], "note.txt is named twice"),
    (["compare", "note.txt", "--fail-if", "p98>1x"], "--fail-if takes 'verdict', or one of throughput"),
    (["show", "note.txt"], "not a run that oncebench saved"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    """One sentence on standard error that names what and where; nothing made, changed or removed."""
    foreign(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = oncebench(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith("oncebench: ")
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_receiver_that_cannot_connect_is_bad_input(tmp_path: Path) -> None:
    """A worker that cannot begin says why."""
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def connect(self, path): raise OSError('no route to the store')\n"
        "    def receive(self, db, id, qty): return True\n"
    )
    done = oncebench("run", "mine.py:Mine", "--journal", "wal", cwd=tmp_path)
    assert done.returncode == 2
    assert "no route to the store" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_exit_codes_say_whether_verdicts_are_the_declared_ones(tmp_path: Path) -> None:
    """0 for a broken variant that is declared so, 1 for somebody's own that is broken, 3 for unknown."""
    quick = ("--ids", "20", "--journal", "wal", "-q")
    assert oncebench("run", "naive", *quick, cwd=tmp_path).returncode == 0
    own = oncebench("run", f"{HERE / 'their_own.py'}:NaiveLedger", *quick, cwd=tmp_path)
    assert own.returncode == 1
    assert "broken, declared sound" in own.stdout
    assert "smallest proof" in own.stdout
    assert oncebench("run", "immediate", "--workers", "1", *quick, cwd=tmp_path).returncode == 3


def test_the_line_that_runs_it_again_does(tmp_path: Path) -> None:
    """Every option that matters is in it, and its deliveries are the same."""
    first = oncebench(
        "run", "deferred", "--ids", "7", "--workers", "3", "--journal", "delete", "--max-tries", "4",
        "--workload", "same,spread", "--busy-timeout", "250ms", "--no-witness", "--seed", "12",
        "--kills", "3", "--time-limit", "90", cwd=tmp_path,
    )  # fmt: skip
    [line] = [line for line in first.stdout.splitlines() if line.startswith("again: ")]
    words = line.removeprefix("again: oncebench ").split()
    second = oncebench(*words, "--json", cwd=tmp_path)
    again = json.loads(second.stdout)
    assert again["command"] == " ".join(["oncebench", *words])
    assert again["settings"] == {
        "workers": 3, "ids": 7, "redeliveries": 3, "conflicts": 0.1, "max_qty": 99,
        "workload": ["same", "spread"],
        "journal": ["delete"], "synchronous": "full", "busy_timeout": 0.25, "max_tries": 4, "deadline": 30.0,
        "witness": False,
        "kills": 3,
        "time_limit": 90.0,
        "threads": 1,
        "repeat": 1,
        "rate": 0.0,
    }  # fmt: skip


def test_kept_store_may_be_raced_again_and_read(tmp_path: Path) -> None:
    """--db keeps the last race's store; a second run makes it anew."""
    for _ in range(2):
        done = oncebench(
            "run", "immediate", "--db", "kept.db", "--ids", "20", "--journal", "wal", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    db = sqlite3.connect(tmp_path / "kept.db")
    assert (
        db.execute("SELECT total FROM stock").fetchone()
        == db.execute("SELECT sum(qty) FROM inbox").fetchone()
    )
    db.close()


def test_shown_again_as_it_was(tmp_path: Path) -> None:
    """`show` prints what `run` printed; the table has lock errors and completions on lines of their own."""
    ran = oncebench("run", "naive", "immediate", "--ids", "20", "--journal", "wal", cwd=tmp_path)
    [folder] = (tmp_path / "results").iterdir()
    shown = oncebench("show", str(folder), cwd=tmp_path)
    assert shown.returncode == 0
    assert ran.stdout.startswith(shown.stdout)
    for line in ("completed: applied", "lock error SQLITE_BUSY", "ids with two in flight", "longest wait"):
        assert shown.stdout.count(line) == 2
    assert "smallest proof: double_apply of " in shown.stdout
    assert oncebench("show", str(folder), "--json", cwd=tmp_path).stdout == (folder / "run.json").read_text()
    assert max(len(line) for line in shown.stdout.splitlines() if "again:" not in line) <= 80


def test_progress_goes_to_standard_error(tmp_path: Path) -> None:
    """Elsewhere than on a terminal a line a second; none with -q."""
    loud = oncebench("run", "naive", "--journal", "delete", "--json", cwd=tmp_path)
    assert "naive, delete:" in loud.stderr
    json.loads(loud.stdout)
    quiet = oncebench("run", "immediate", "--ids", "10", "-q", cwd=tmp_path)
    assert quiet.stderr == ""


def test_variants_lists_every_one_with_its_verdict(tmp_path: Path) -> None:
    """As a table and as JSON."""
    table = oncebench("variants", cwd=tmp_path).stdout
    listed = json.loads(oncebench("variants", "--json", cwd=tmp_path).stdout)
    assert [entry["name"] for entry in listed] == list(VARIANTS)
    for name, variant in VARIANTS.items():
        assert f"{name} " in table
        assert variant.lesson.startswith(("Right", "Wrong"))


def test_help_does_not_pay_for_what_it_does_not_use(tmp_path: Path) -> None:
    """No command's heavy imports happen before it runs; a receiver that imports Conflict pays for nothing."""
    script = (
        "import sys; sys.argv[1:] = ['--help']\n"
        "from oncebench.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "heavy = {'numpy', 'rich', 'msgspec', 'sqlite3', 'hypothesis', 'greenlet'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "run" in done.stdout
    worker = (
        "import sys, oncebench.race.worker; heavy = {'numpy', 'rich', 'typer', 'msgspec'} & set(sys.modules);"
        " assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", worker], check=True)


def test_path_that_looks_like_a_uri_is_a_path(tmp_path: Path) -> None:
    """SQLite would take file:foreign.db for foreign.db, which is somebody else's."""
    foreign(tmp_path)
    before = (tmp_path / "foreign.db").read_bytes()
    done = oncebench(
        "run", "immediate", "--ids", "4", "--journal", "wal", "--db", "file:foreign.db", cwd=tmp_path
    )
    assert done.returncode in (0, 3), done.stderr
    assert (tmp_path / "foreign.db").read_bytes() == before
    assert (tmp_path / "file:foreign.db").exists()
