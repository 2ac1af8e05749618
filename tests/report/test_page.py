"""The page without a browser: what it says, that it needs nothing else, that nothing reaches it unescaped."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from oncebench.report import page
from oncebench.results.files import load
from oncebench.results.forms import load_any
from oncebench.results.schema import Op, Proof

KINDS = ("race", "crash", "wire", "explore", "check", "sweep")
EVIL = "<script>alert(1)</script>\"'&\u202e\u200f\x1b[31m\x00😀" + "x" * 10_000


class _Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def told(*paths: Path) -> str:
    return page.html([load_any(path) for path in paths]).decode()


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_begins_with_the_verdict_and_needs_nothing_else(kind: str, saved: dict[str, Path]) -> None:
    """Every kind of run: one file below 1 MB, no script, nothing loaded, links only into itself."""
    text = told(saved[kind])
    assert len(text.encode()) < 1_000_000
    tags = _Tags(text).found
    names = {tag for tag, _ in tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    ids = {attributes["id"] for _, attributes in tags if "id" in attributes}
    for _, attributes in tags:
        assert not attributes.keys() & {"src", "style", "srcdoc", "action"}
        assert not [name for name in attributes if name.startswith("on")]
        if "href" in attributes:
            target = attributes["href"] or ""
            assert target.startswith("#")
            assert target[1:] in ids
    body = html.unescape(re.sub(r"<[^>]+>", " ", text[text.index("<body") :]))
    run = load_any(saved[kind])
    assert run.command in body
    assert body.index("broken") < 300
    assert str(run.environment["sqlite"]) in body


def test_lock_errors_are_told_apart_from_completions(saved: dict[str, Path]) -> None:
    """By heading, row and chart."""
    text = told(saved["race"])
    assert (
        text.index("Deliveries and completions")
        < text.index("Not completed")
        < text.index("lock error SQLITE_BUSY")
    )
    assert "Latency of completions" in text
    assert "Latency of lock errors" in text


def test_the_smallest_schedule_comes_with_its_steps_and_its_replay(saved: dict[str, Path]) -> None:
    """In an exploration and in a check."""
    for kind in ("explore", "check"):
        text = told(saved[kind])
        assert "oncebench replay naive AABBBA" in text
        assert "UPDATE stock SET total = total + ? (3,)" in text


def test_several_runs_are_one_page(saved: dict[str, Path]) -> None:
    """Each with its own links."""
    text = told(saved["race"], saved["wire"])
    assert 'href="#run-2-1"' in text
    ids = [attributes["id"] for _, attributes in _Tags(text).found if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_nothing_of_a_result_reaches_the_page_unescaped(saved: dict[str, Path]) -> None:
    """Ids, messages, names and details that are markup, turn the direction, or are very long."""
    run = load(saved["race"])
    run.command = run.created = EVIL
    run.environment = {EVIL: EVIL, "sqlite": [EVIL]}
    for variant in run.variants:
        variant.name = variant.expected_verdict = EVIL
        variant.violations = [Proof(EVIL, EVIL, EVIL, [Op(0, EVIL, 1, 0, 5, EVIL, EVIL)], EVIL, EVIL, EVIL)]
        variant.notes = variant.because = [EVIL]
        for race in variant.races:
            race.journal = race.measured = EVIL
            race.violation_counts = {EVIL: 3}
            race.series.phases = [(EVIL, 3)]
            race.tallies.locked = {EVIL: 1}
    text = page.html([run]).decode()
    assert "<script" not in text
    assert not {"\u202e", "\u200f", "\x1b", "\x00"} & set(text)
    assert {"script", "img"} & {tag for tag, _ in _Tags(text).found} == set()
    assert "\\u202e" in text
    assert "😀" in text


def test_the_command_writes_beside_the_run_and_says_where(saved: dict[str, Path], tmp_path: Path) -> None:
    """Or to --out; what cannot be written is one sentence."""
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "run.json").write_bytes((saved["race"] / "run.json").read_bytes())

    def report(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "oncebench", "report", *words], capture_output=True, text=True, timeout=100
        )

    done = report(str(copy / "run.json"))
    assert (done.returncode, done.stdout) == (0, f"{copy / 'report.html'}\n")
    assert sorted(path.name for path in copy.iterdir()) == ["report.html", "run.json"]
    done = report(str(copy), "--out", str(tmp_path / "gone" / "page.html"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot write" in done.stderr
    assert done.stderr.count("\n") == 1
