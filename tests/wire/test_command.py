"""`oncebench wire`: what it prints, saves and refuses; warehouse and publisher by hand."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from oncebench import cli
from oncebench.report.wired import render
from oncebench.results.files import load_as
from oncebench.results.wired import WireRun
from oncebench.wire import log

COMMAND = [sys.executable, "-m", "oncebench", "wire"]
QUICK = ("--messages", "4", "--faults", "6", "--kills", "2", "--servers", "1")


def wire(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


BAD = [
    (["imediate"], "did you mean immediate?"),
    (["--messages", "0"], "messages must be 1 to"),
    (["--faults", "-1"], "faults must be 0 to"),
    (["--kills", "1001"], "kills must be 0 to"),
    (["--servers", "0"], "servers must be 1 to 64"),
    (["--connections", "65"], "connections must be 1 to 64"),
    (["--seed", "-1"], "seed must be 0 to"),
    (["--journal", "memory"], "--journal takes wal, delete"),
    (["--timeout", "soon"], "--timeout takes a time"),
    (["--timeout", "0"], "timeout must be more than 0 s"),
    (["--give-up", "0"], "give_up must be more than 0 s"),
    (["--deadline", "0"], "deadline must be more than 0 s"),
    (["--port", "70000"], "a port is 0 to 65535"),
    (["--host", "0.0.0.0"], "0.0.0.0 is not loopback"),
    (["--serve", "--host", "10.0.0.1"], "10.0.0.1 is not loopback"),
    (["--serve", "naive", "immediate"], "--serve takes one receiver"),
    (["--serve", "group"], "a process of its own"),
    (["--serve", "--db", "note.txt"], "cannot be read as a database"),
    (["--serve", "--retain", "5"], "--serve and --retain: give one of them"),
    (["--retain", "0"], "retain must be 1 to"),
    (["--outbox", "box.db"], "--outbox and --put go with --publish-to"),
    (["--publish-to", "http://127.0.0.1:9/deliveries"], "name it with --outbox"),
    (["--publish-to", "http://example.org/", "--outbox", "box.db"], "example.org is not loopback"),
    (["--publish-to", "ftp://127.0.0.1/", "--outbox", "box.db"], "is not plain http"),
    (["--publish-to", "http://127.0.0.1:9/", "--outbox", "note.txt"], "is no outbox"),
    (["--publish-to", "http://127.0.0.1:9/", "--outbox", "box.db", "--put", "snack"], "--put takes ID:QTY"),
    (["--publish-to", "http://127.0.0.1:9/", "--outbox", "box.db", "--put", "a:0"], "qty must be 1 to"),
    (["--db", "note.txt"], "cannot be read as a database"),
    (["--log", "missing/log"], "cannot write the log"),
    (["--out", "note.txt/results"], "cannot write results"),
    (["group"], "oncebench run group"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One sentence on standard error, exit code 2, and nothing but perhaps an empty outbox is made."""
    (tmp_path / "note.txt").write_text("not a database, but long enough to be looked at as one. " * 20)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["oncebench", "wire", *arguments])
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        signal.signal(signal.SIGTERM, handler)
    out, err = capsys.readouterr()
    assert ended.value.code == 2, out + err
    assert sentence in err
    assert err.startswith("oncebench: ")
    assert err.count("\n") == 1
    assert out == ""
    assert {path.name for path in tmp_path.iterdir()} <= {"note.txt", "box.db"}


def test_port_that_is_taken(tmp_path: Path) -> None:
    """By whoever: named, exit code 2, for a campaign, a retention and a warehouse alike."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = str(door.getsockname()[1])
        for more in (["immediate"], ["--retain", "5"], ["--serve"]):
            done = wire(*more, "--port", port, cwd=tmp_path)
            assert (done.returncode, "Address already in use: choose another --port" in done.stderr) == (
                2,
                True,
            )
    assert list(tmp_path.iterdir()) == []


def test_campaigns_are_told_and_saved(tmp_path: Path) -> None:
    """A wrong and a right receiver: exit code 0, for both are as declared; the file is what --json prints."""
    done = wire("unique_only", "immediate", *QUICK, "--json", "--log", "log", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    printed: Any = json.loads(done.stdout)
    [file] = (tmp_path / "results").glob("*/run.json")
    assert json.loads(file.read_text()) == printed
    assert {"schema", "kind", "seed", "settings", "environment", "variants"} <= set(printed)
    assert printed["kind"] == "wire"
    wrong, right = printed["variants"]
    assert (wrong["verdict"], right["verdict"]) == ("broken", "sound")
    for variant in (wrong, right):
        assert {"name", "tallies", "effects", "overlapped_ids", "violations", "expected_verdict"} <= set(
            variant
        )
        assert variant["requests"] >= 4
        assert variant["outbox"].get("pending", 0) == 0
    assert right["not_once"] == []
    assert right["effects"]["witnessed"] == 4
    assert any(one["effects"] > 1 for one in wrong["not_once"])
    assert {line["event"] for line in log.read(tmp_path / "log")} >= {
        "sent",
        "received",
        "answered",
        "proved",
    }


def test_shown_again_as_it_was(tmp_path: Path) -> None:
    """`show` prints what `wire` printed, as text and as JSON; a damaged file is named."""
    ran = wire("immediate", *QUICK, cwd=tmp_path)
    [file] = (tmp_path / "results").glob("*/run.json")
    show = [*COMMAND[:-1], "show", str(file)]
    told = subprocess.run(show, capture_output=True, text=True, check=True).stdout
    assert ran.stdout.startswith(told)
    data = subprocess.run([*show, "--json"], capture_output=True, text=True, check=True).stdout
    assert data == file.read_text()
    file.write_text(data.replace('"requests"', '"wishes"', 1))
    done = subprocess.run(show, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not a run that oncebench saved" in done.stderr


def test_tables_and_the_line_that_runs_it_again(tmp_path: Path) -> None:
    """Requests, calls and effects on lines of their own; nothing on standard error with -q."""
    done = wire("immediate", *QUICK, "--seed", "3", "--timeout", "300ms", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for label in (
        "requests sent",
        "calls of the receiver",
        "effects witnessed",
        "processes killed",
        "outbox done",
    ):
        assert label in done.stdout
    again = [line for line in done.stdout.splitlines() if line.startswith("again: ")]
    options = "--seed 3 --messages 4 --faults 6 --kills 2 --servers 1 --timeout 0.3"
    assert again == [f"again: oncebench wire immediate {options}"]
    quiet = wire(*again[0].removeprefix("again: oncebench wire ").split(), "-q", cwd=tmp_path)
    assert quiet.stderr == ""
    assert quiet.stdout.splitlines()[0].startswith("immediate: sound as declared · tried: ")


def test_reference_campaign_is_as_declared_and_fits_a_terminal() -> None:
    """The committed one: every verdict is the declared one, and no figure is cut off."""
    run = load_as(Path(__file__).parents[2] / "results" / "reference-wire", WireRun)
    assert all(variant.verdict == variant.expected_verdict for variant in run.variants)
    assert {variant.verdict for variant in run.variants} == {"sound", "broken"}
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(render(run))
    assert "…" not in console.export_text()


def test_nothing_that_went_wrong_is_no_proof(tmp_path: Path) -> None:
    """Without faults, kills and redeliveries the verdict is unknown, exit code 3."""
    (tmp_path / "own.py").write_text("from oncebench.receivers.immediate import receive\n")
    quiet = ("--messages", "1", "--faults", "0", "--kills", "0", "--servers", "1", "--seed", "1")
    done = wire("own.py:receive", *quiet, "--timeout", "30s", cwd=tmp_path)
    assert done.returncode == 3, done.stdout
    assert "no message was delivered more than once" in done.stdout


def test_own_receiver_that_is_broken(tmp_path: Path) -> None:
    """Expected to be sound, and it is not: exit code 1."""
    (tmp_path / "own.py").write_text("from oncebench.receivers.unique_only import receive\n")
    done = wire("own.py:receive", *QUICK, "-q", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "broken, declared sound" in done.stdout


def test_receiver_that_never_succeeds(tmp_path: Path) -> None:
    """The publisher's last words are in it, and each id with its requests and no effect."""
    (tmp_path / "own.py").write_text("def receive(db, id, qty): raise ValueError(id)\n")
    done = wire("own.py:receive", *QUICK, "--give-up", "500ms", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "gave up after 0.5 s" in done.stdout
    assert "found stuck" in done.stdout
    assert ", 0 effects" in done.stdout


def test_store_that_another_program_locks(tmp_path: Path) -> None:
    """For longer than the publisher's patience: unknown, said why, exit code 3, nothing left running."""
    store = tmp_path / "kept.db"
    process = subprocess.Popen(
        [*COMMAND, "immediate", "--messages", "200", "--pause", "20ms", "--kills", "0", "--give-up", "1s",
         "--db", "kept.db", "-q"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    rows = 0
    while rows < 3:
        assert process.poll() is None
        with contextlib.suppress(sqlite3.OperationalError):
            reader = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
            with contextlib.closing(reader) as db:
                (rows,) = db.execute("SELECT count(*) FROM inbox").fetchone()
    with contextlib.closing(sqlite3.connect(store, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 3, out + err
    assert "kept.db is locked by another program: no verdict can rest on this" in out
    assert "gave up after 1 s" in out


def test_retention(tmp_path: Path) -> None:
    """At the edge of the window `pruned` works again and `low_water` refuses, over the wire and without."""
    done = wire("pruned", "low_water", "immediate", "--retain", "6", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for variant in json.loads(done.stdout)["variants"]:
        late = variant["retention"]["late"]
        found[variant["name"]] = [(one["lag"], one["answer"], one["effects"]) for one in late]
        assert variant["retention"]["needed"] > variant["retention"]["rate"] * 15
    inside = [(0, "200", 1), (3, "200", 1), (5, "200", 1)]
    told = [(0, "False", 1), (3, "False", 1), (5, "False", 1)]
    beyond = (6, 7, 12)
    assert found["immediate"] == [
        *inside, *((n, "200", 1) for n in beyond), *told, *((n, "False", 1) for n in beyond)
    ]  # fmt: skip
    assert found["pruned"] == [
        *inside, *((n, "200", 2) for n in beyond), *told, *((n, "True", 2) for n in beyond)
    ]  # fmt: skip
    assert found["low_water"] == [
        *inside, *((n, "500", 1) for n in beyond), *told, *((n, "TooOld", 1) for n in beyond)
    ]  # fmt: skip
    assert "needs the last" in wire("pruned", "--retain", "6", cwd=tmp_path).stdout


class Served:
    """`oncebench wire --serve` in the background."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "--serve", *arguments],
            cwd=cwd,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()
        self.url = self.said.split(" ")[0]

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=20)
        return self.process.returncode


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_warehouse_by_hand(tmp_path: Path, number: int, code: int) -> None:
    """It says what it is, answers, and ends with the signal's code and its port free."""
    shop = Served("immediate", "--log", "log", cwd=tmp_path)
    assert "for teaching: no accounts, no encryption, this machine only" in shop.said
    answer = httpx.post(shop.url, json={"id": "snack-7", "qty": 7}, trust_env=False)
    assert (answer.status_code, answer.json()) == (200, {"id": "snack-7", "accepted": True})
    assert shop.end(number) == code
    port = httpx.URL(shop.url).port
    assert port is not None
    socket.create_server(("127.0.0.1", port)).close()
    assert {path.name for path in tmp_path.iterdir()} == {"log", "warehouse.db"}
    assert [line["event"] for line in log.read(tmp_path / "log")] == ["received", "answered"]


def test_publisher_by_hand_against_a_warehouse_that_is_killed(tmp_path: Path) -> None:
    """Send, `kill -9` the warehouse, send in vain, start it again, send: one effect each."""
    shop = Served("immediate", cwd=tmp_path)
    box = ("--outbox", "box.db", "--timeout", "2s")
    done = wire("--publish-to", shop.url, *box, "--put", "snack-7:7", "--put", "snack-7:8", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1 done, 1 conflict, 0 pending\n"), done.stderr
    assert shop.end(signal.SIGKILL) == -signal.SIGKILL
    vain = wire("--publish-to", shop.url, *box, "--put", "snack-8:7", "--give-up", "100ms", cwd=tmp_path)
    assert vain.returncode == 3
    assert vain.stdout == "1 done, 1 conflict, 1 pending\n"
    assert "gave up after 0.1 s" in vain.stderr
    shop = Served("immediate", "--port", str(httpx.URL(shop.url).port), cwd=tmp_path)
    done = wire("--publish-to", shop.url, *box, "--json", cwd=tmp_path)
    assert [row["state"] for row in json.loads(done.stdout)] == ["done", "conflict", "done"]
    shop.end(signal.SIGINT)
    db = sqlite3.connect(tmp_path / "warehouse.db")
    assert db.execute("SELECT total FROM stock").fetchone() == (14,)
    db.close()


def test_help_does_not_pay_for_the_server() -> None:
    """Asking how it works imports nothing that only working needs."""
    script = (
        "import sys; sys.argv[1:] = ['wire', '--help']\n"
        "from oncebench.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "heavy = {'starlette', 'uvicorn', 'httpx', 'numpy', 'rfc8785', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--publish-to" in done.stdout
