"""Plots by matplotlib, Markdown and CSV: the same figures as the saved run's, and text that stays text."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from oncebench.cli.plot import KINDS, plot
from oncebench.messages import BadInput
from oncebench.report import page, tables
from oncebench.results.files import load, save
from oncebench.results.forms import load_any


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "throughput"])
def test_each_kind_of_plot_is_a_picture(kind: str, saved: dict[str, Path], tmp_path: Path) -> None:
    """PNG and SVG; names that look like formulas or markup are text in it."""
    run = load(saved["race"])
    run.variants = run.variants[:1]
    run.variants[0].name = "$\\frac{<b>&\x1b"
    save(run, tmp_path)
    plot([tmp_path], kind, tmp_path / "plot.png")
    plot([tmp_path], kind, tmp_path / "plot.svg")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert ET.fromstring((tmp_path / "plot.svg").read_bytes()).tag.endswith("svg")


def test_throughput_against_workers_and_steps_of_a_schedule(saved: dict[str, Path], tmp_path: Path) -> None:
    """From several runs, from a sweep, from an exploration; one race alone has no such plot."""
    run = load(saved["race"])
    run.settings.workers = 8
    save(run, tmp_path)
    plot([saved["race"], tmp_path], "throughput", tmp_path / "runs.svg")
    plot([saved["sweep"]], "throughput", tmp_path / "sweep.svg")
    plot([saved["explore"], saved["check"]], "timeline", tmp_path / "timeline.svg")
    for name in ("runs", "sweep", "timeline"):
        assert (tmp_path / f"{name}.svg").stat().st_size > 5000
    with pytest.raises(BadInput, match="can be plotted as throughput"):
        plot([saved["race"]], "throughput", tmp_path / "none.png")
    with pytest.raises(BadInput, match="takes a file that ends in"):
        plot([saved["race"]], "latency", tmp_path / "plot.pdf")
    assert not (tmp_path / "none.png").exists()
    assert "Throughput against workers" in page.html([load_any(saved["race"]), load_any(tmp_path)]).decode()


def test_csv_has_the_figures_of_the_saved_run(saved: dict[str, Path]) -> None:
    """A line for each race, lock errors apart; every kind of run has lines."""
    run = load(saved["race"])
    lines = list(csv.DictReader(io.StringIO(tables.comma_separated([run]))))
    races = [(variant, race) for variant in run.variants for race in variant.races]
    assert len(lines) == len(races) == 4
    for line, (variant, race) in zip(lines, races, strict=True):
        assert (line["receiver"], line["journal"], line["verdict"]) == (
            variant.name,
            race.journal,
            race.verdict,
        )
        assert int(line["applied"]) == race.tallies.applied
        assert int(line["locked"]) == sum(race.tallies.locked.values())
        assert int(line["completion_p99_ns"]) == race.latency.p99
    for kind, place in saved.items():
        assert len(tables.comma_separated([load_any(place)]).splitlines()) > 1, kind
    run.variants[0].name = '=HYPERLINK("http://127.0.0.1:9")'
    assert next(csv.DictReader(io.StringIO(tables.comma_separated([run]))))["receiver"].startswith("'=")


def test_markdown_says_the_verdicts_first_and_escapes(saved: dict[str, Path]) -> None:
    """Every kind of run; a table's bars, markup and mentions in a name stay text."""
    for place in saved.values():
        run = load_any(place)
        text = tables.markdown([page.of_run(run)])
        assert text.splitlines()[2].startswith("| receiver | verdict")
        assert "| **broken** |" in text
        assert run.command in text
    race = load(saved["race"])
    race.variants[0].name = "a|b<img src=x>@all`\n# big"
    text = tables.markdown([page.of_run(race)])
    assert "a\\|b&lt;img src=x&gt;\\@all\\`\\\\n\\# big" in text
    assert "<img" not in text


def test_the_commands_and_what_they_import(saved: dict[str, Path], tmp_path: Path) -> None:
    """Printed or written; matplotlib is loaded by plotting alone."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=100)

    race = str(saved["race"])
    done = run("-m", "oncebench", "report", race, "--csv", "--out", str(tmp_path / "figures.csv"))
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "figures.csv").read_text() == tables.comma_separated([load(saved["race"])])
    done = run("-m", "oncebench", "report", race, "--csv", "--markdown")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    modules = "oncebench.report.page, oncebench.report.tables, oncebench.cli.plot"
    code = f"import sys, {modules}; print('matplotlib' in sys.modules)"
    assert run("-c", code).stdout == "False\n"
