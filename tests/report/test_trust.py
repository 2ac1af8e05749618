"""Result files that nobody should trust: damaged, hostile, huge; and the JSON Schema of honest ones."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from figures import latencies, raced, run_of
from oncebench.messages import BadInput
from oncebench.report import page
from oncebench.report.console import Console
from oncebench.report.printed import render
from oncebench.results.files import MOST_BYTES, load
from oncebench.results.forms import FORMS, AnyRun, json_schema, load_any
from oncebench.results.schema import encode

SCHEMA = Path(__file__).parents[2] / "docs" / "run.schema.json"
HOSTILE: list[Any] = [
    None, True, -1, 0, 2**63 - 1, 2**63, 10**40, -(10**40), 1e308, -0.5, "", "\x1b[2J\u202e<b>&\x00",
    "x" * 5000, "unknown", [], {}, [[]], ["\x1b[31m"], {"\x1b]0;owned\x07": 1}, {"<script>": {"count": 1}},
]  # fmt: skip


def trimmed(kind: str, saved: dict[str, Path]) -> dict[str, Any]:
    """A saved run of which as much is left as a test of all its parts needs."""
    run: dict[str, Any] = json.loads((saved[kind] / "run.json").read_bytes())
    for part in [run, run.get("race") or {}, run.get("crash") or {}]:
        if "variants" not in part:
            continue
        kept = [one for one in part["variants"] if one["name"] in ("naive", "unique_only")][:1]
        part["variants"] = kept
        for variant in kept:
            for name, most in (("violations", 2), ("points", 6)):
                if name in variant:
                    variant[name] = variant[name][:most]
    return run


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield (*path, key)
        yield from places(child, (*path, key))


def show(run: AnyRun) -> str:
    """As the terminal has it."""
    console = Console()
    with console.capture() as captured:
        console.print(render(run))
    return captured.get()


@pytest.mark.parametrize("kind", sorted(FORMS))
def test_a_file_with_anything_in_it_is_shown_or_refused(
    kind: str, saved: dict[str, Path], tmp_path: Path
) -> None:
    """Any one value replaced by any other: a sentence, or a page and a terminal without commands."""
    rng = random.Random(f"trust {kind}")
    whole = trimmed(kind, saved)
    ways = list(places(whole))
    shown = refused = 0
    for _ in range(50):
        run = json.loads(json.dumps(whole))
        *way, last = rng.choice(ways)
        target = run
        for key in way:
            target = target[key]
        alike = [value for value in HOSTILE if type(value) is type(target[last])]
        target[last] = rng.choice(alike if alike and rng.random() < 0.8 else HOSTILE)
        (tmp_path / "run.json").write_text(json.dumps(run))
        try:
            loaded = load_any(tmp_path)
            text = page.html([loaded]).decode() + show(loaded)
        except BadInput as error:
            refused += 1
            assert "\n" not in str(error)
            continue
        shown += 1
        assert not {"\x1b", "\u202e", "\x00", "\x07"} & set(text)
        assert "<script" not in text[: text.rindex("</html>")]
    assert shown > 5
    assert refused > 5


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"schema": 1, "kind": "race", "variants": ' + b"[" * 200_000, "not a run that oncebench saved"),
        (b'{"schema": 1, "kind": "race", "seed": NaN}', "not a run that oncebench saved"),
        (b'{"schema": 1, "kind": "race", "seed": 1' + b"0" * 5000 + b"}", "not a run that oncebench saved"),
        (b'{"schema": 1, "kind": "fake"}', "kind 'fake'; this oncebench knows race"),
        (b'{"schema": 1, "kind": "wire", "seed": 1}', "not a run that oncebench saved"),
        (b'{"schema": 9, "kind": "race"}', "schema version 9"),
        (b"", "not a run that oncebench saved"),
    ],
)
def test_a_damaged_or_newer_file_is_one_sentence(content: bytes, sentence: str, tmp_path: Path) -> None:
    """Deep, not a number, too large a number, of an unknown kind or version, cut."""
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(BadInput, match=sentence):
        load_any(tmp_path)


def test_what_is_no_file_is_one_sentence(tmp_path: Path) -> None:
    """A directory, a loop of links, a pipe that never ends, a file that would fill the memory."""
    (tmp_path / "folder" / "run.json").mkdir(parents=True)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as large:
        large.truncate(1_000_000_000)  # sparse
    sentences = {
        "folder": "Is a directory",
        "loop": "symbolic link",
        "pipe": "no regular file",
        "large": f"1,000,000,000 bytes; oncebench reads runs of {MOST_BYTES:,} at most",
        "gone": "No such file",
    }
    for name, sentence in sentences.items():
        with pytest.raises(BadInput, match=sentence):
            load_any(tmp_path / name)


def test_commands_refuse_with_2_and_print_no_command_of_the_terminal(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    """In the process that a person starts: the file's name, and what is in it."""
    run = load(saved["race"])
    run.command = "\x1b]0;owned\x07"
    for variant in run.variants:
        variant.name += "\x1b[31m"
        for proof in variant.violations:
            proof.message += "\x1b[2J"
    (tmp_path / "run.json").write_bytes(encode(run))
    bad = tmp_path / "bad\x1b[31m.json"
    bad.write_bytes(b"{")
    for command, place, code in (("show", tmp_path, 0), ("show", bad, 2), ("report", bad, 2)):
        done = subprocess.run(
            [sys.executable, "-m", "oncebench", command, str(place)],
            capture_output=True,
            text=True,
            timeout=100,
            env={**os.environ, "FORCE_COLOR": "", "TERM": "dumb"},
        )
        assert done.returncode == code
        assert not {"\x1b", "\x07"} & set(done.stdout + done.stderr)
        assert code == 0 or (done.stdout, done.stderr.count("\n")) == ("", 1)


def test_the_published_schema_is_current() -> None:
    """Renewed by `.venv/bin/python -m oncebench.results.forms > docs/run.schema.json`."""
    current = json.loads(SCHEMA.read_bytes()) == json_schema()
    assert current, "renew it: .venv/bin/python -m oncebench.results.forms > docs/run.schema.json"


def test_what_is_saved_validates_and_what_is_damaged_does_not(saved: dict[str, Path]) -> None:
    """Every kind against the published schema; loading and the schema refuse the same."""
    check = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_bytes()))
    made = run_of({"mine": [raced(latencies(np.random.default_rng(1)))]})
    runs = {kind: json.loads((place / "run.json").read_bytes()) for kind, place in saved.items()}
    runs["made"] = json.loads(encode(made))
    for kind, run in runs.items():
        assert (kind, [error.message for error in check.iter_errors(run)][:1]) == (kind, [])
    for path, value in (
        (("kind",), "fake"), (("schema",), 2), (("variants", 0, "verdict"), "fine"), (("seed",), "7"),
        (("variants", 0, "tallies", "applied"), -1), (("settings",), None),
    ):  # fmt: skip
        run = json.loads(json.dumps(runs["race"]))
        target = run
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value
        assert not check.is_valid(run), path
