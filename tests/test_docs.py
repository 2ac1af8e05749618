"""Every command in the documentation works, and the reference is what the code says.

A page is gone through from top to bottom in a folder of its own. A block of Python that begins with
`# name.py` becomes that file; every command in a block of `sh`, after `$ ` in a block of `text`, or after
`run:` in a block of `yaml` is run. A comment before the block says what is special about it:

    <!-- exit 1 -->          the exit code, if it is not 0
    <!-- same output -->     what follows the command is what it prints; a line `...` stands for any lines
    <!-- in the background --> it runs until the page ends
    <!-- run by PATH -->     that file of the project runs it
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/how-to/*.md")])
BLOCK = re.compile(r"(?:<!-- ([^\n]*) -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Command:
    """One line to run."""

    line: str
    special: list[str]
    shown: list[str]

    @property
    def code(self) -> int:
        return next((int(word.split()[1]) for word in self.special if word.startswith("exit")), 0)

    @property
    def run_by(self) -> str:
        return next((word.removeprefix("run by ") for word in self.special if word.startswith("run by")), "")


def steps(page: str) -> Iterator[tuple[str, str] | Command]:
    """Files to write, and commands to run, in order."""
    for special, language, text in BLOCK.findall(page):
        marks = [mark.strip() for mark in special.split(",") if mark]
        if language == "python" and (name := re.match(r"# (\w+\.py)\n", text)):
            yield name[1], text
        elif language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                if line.strip() and not line.startswith("#"):
                    yield Command(line, marks, [])
        elif language == "text":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, *shown = part.strip().splitlines()
                yield Command(line, marks, shown)
        elif language == "yaml":
            for line in re.findall(r"run: (.+)", text):
                yield Command(line, marks, [])


def in_order(shown: list[str], printed: list[str]) -> str:
    """The first line that is shown and was not printed where it should be; empty if there is none."""
    rest = [line.rstrip() for line in printed]
    skips = False
    for line in (line.rstrip() for line in shown):
        if line == "...":
            skips = True
            continue
        if skips:
            rest = rest[rest.index(line) :] if line in rest else []
        if not rest or rest.pop(0) != line:
            return line or "an empty line"
        skips = False
    return "" if skips or not any(rest) else f"nothing, but there was {rest[0]!r}"


@pytest.mark.timeout(600)  # a page may have a dozen commands, each of which races processes
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_of_a_page(path: Path, tmp_path: Path) -> None:
    """They end as the page says."""
    place = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    page = path.read_text(encoding="utf-8").replace("8080", port)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    background = []
    try:
        for step in steps(page):
            if not isinstance(step, Command):
                (tmp_path / step[0]).write_text(step[1], encoding="utf-8")
                shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
                continue
            line = step.line.replace(".venv/bin/", "")
            if step.run_by:
                assert (ROOT / step.run_by).is_file(), step
            elif "in the background" in step.special:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", f"exec {line}"], cwd=tmp_path, env=place, stderr=subprocess.PIPE
                )
                background.append(process)
                assert process.stderr is not None
                assert process.stderr.readline(), line
            else:
                done = subprocess.run(
                    ["/bin/sh", "-c", line],
                    cwd=tmp_path,
                    env=place,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                told = f"{line}\n{done.stdout}{done.stderr}"
                assert done.returncode == step.code, told
                if "same output" in step.special:
                    assert not in_order(step.shown, done.stdout.splitlines()), told
    finally:
        for process in background:
            process.kill()
            process.wait()
            if process.stderr is not None:
                process.stderr.close()


def test_a_page_that_shows_something_else_is_noticed() -> None:
    """Lines must come as they are printed; `...` alone skips."""
    printed = ["a", "b", "c", "d"]
    assert in_order(["a", "...", "d"], printed) == ""
    assert in_order(["...", "c", "d"], printed) == ""
    assert in_order(["a", "b", "..."], printed) == ""
    assert in_order(["a", "c", "d"], printed) == "c"
    assert in_order(["a", "...", "e"], printed) == "e"
    assert in_order(["a", "b"], printed) != ""


def test_reference_is_what_the_code_says() -> None:
    """Otherwise run `python docs/generate.py`."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs/generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_lead_somewhere() -> None:
    """Every relative link of every page."""
    for path in [*PAGES, *ROOT.glob("docs/reference/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), f"{path.name}: {link}"
