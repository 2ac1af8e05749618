"""Sweeps: every cell once, kept as soon as it is done, gone on with where Ctrl-C came."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from figures import latencies, raced
from oncebench.cli import app
from oncebench.messages import BadInput, History, State
from oncebench.race import Policy, Race, coordinator
from oncebench.report import page
from oncebench.report.progress import time_left
from oncebench.results import save, summary
from oncebench.results.files import load_as
from oncebench.results.schema import SCHEMA, RaceResult
from oncebench.results.swept import Grid, Place, SweepRun, add, left, places, refuse_other
from oncebench.stores.sqlite import Settings
from oncebench.workload import Workload

GRID = Grid(["a", "b"], [1, 2], ["wal", "delete"], ["full"], [0.0, 5.0])
SWEEP = ["sweep", "immediate", "--workers", "1,2", "--journal", "wal", "--synchronous", "off"]


def sweep(grid: Grid = GRID) -> SweepRun:
    return SweepRun(
        schema=SCHEMA,
        kind="sweep",
        seed=7,
        command="oncebench sweep",
        created="2026-01-01T00:00:00+00:00",
        complete=False,
        grid=grid,
        ids=60,
        workload=["spread"],
        time_limit=20.0,
        environment={"sqlite": "3.40.1"},
        expected=dict.fromkeys(grid.receivers, "sound"),
    )


def figure(speed: float, verdict: str = "sound") -> RaceResult:
    return raced(np.full(100, int(4e9 / speed)), verdict=verdict)


def test_every_cell_comes_once_and_receivers_take_turns() -> None:
    """The product of the grid, less what is done."""
    run = sweep()
    found = list(places(GRID))
    assert len(found) == len(set(found)) == 16
    assert [place.receiver for place in found] == ["a", "b"] * 8
    add(run, found[3], figure(10))
    assert left(run) == [*found[:3], *found[4:]]
    for place in left(run):
        assert not run.complete
        add(run, place, figure(10))
    assert run.complete


def test_best_is_the_fastest_that_is_sound() -> None:
    """Whoever is broken or unknown may be as fast as it likes."""
    run = sweep(Grid(["a"], [1, 2], ["wal", "delete"], ["full"], [0.0, 5.0]))
    found = list(places(run.grid))
    verdicts = ["unknown"] * 4 + ["sound", "broken", "sound", "sound"]
    for place, speed, verdict in zip(found, (90, 90, 90, 90, 10, 80, 30, 20), verdicts, strict=True):
        add(run, place, figure(speed, verdict))
    [swept] = run.variants
    assert swept.best == found[6] == Place("a", 2, "delete", "full", 0.0)
    assert swept.verdict == "broken"


def test_cells_of_one_worker_do_not_make_a_receiver_unknown() -> None:
    """They race nothing by design; unless there are no others."""
    run = sweep(Grid(["a"], [1, 2], ["wal"], ["full"], [5.0]))
    alone, two = places(run.grid)
    add(run, alone, figure(10, "unknown"))
    assert (run.variants[0].verdict, run.variants[0].best) == ("unknown", None)
    add(run, two, figure(10))
    assert (run.variants[0].verdict, run.variants[0].best) == ("sound", two)


def test_another_grid_or_machine_is_refused() -> None:
    """In one sentence that names it; what is not given, or the same, is not."""
    run = sweep()
    refuse_other(run, "x", {"workers": [1, 2], "seed": None}, {"sqlite": "3.40.1"})
    with pytest.raises(BadInput, match="x is a sweep with workers 1,2, not 1,4"):
        refuse_other(run, "x", {"workers": [1, 4]}, {})
    with pytest.raises(BadInput, match="x is a sweep with time_limit 20, not 5"):
        refuse_other(run, "x", {"time_limit": 5.0}, {})
    with pytest.raises(BadInput, match="x was begun with another sqlite"):
        refuse_other(run, "x", {}, {"sqlite": "3.45.0"})


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"busy_timeout": [\n   0.0,', '"busy_timeout": [\n   1.0,', "its cells are not those of its grid"),
        ('"expected": {\n  "a"', '"expected": {\n  "c"', "its cells are not those of its grid"),
        ('"workers": [\n   1,', '"workers": [\n   ' + "1," * 3000, "cells, not 1 to 2,000"),
    ],
)
def test_file_whose_parts_do_not_fit_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    """Cells outside its grid, another receiver, a grid that nobody could race."""
    run = sweep()
    add(run, next(places(GRID)), figure(10))
    path = save(run, tmp_path)
    text = path.read_text()
    assert old in text
    assert load_as(path, SweepRun) == run
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadInput, match="not a run that oncebench saved.*" + sentence):
        load_as(path, SweepRun)


def test_time_left_is_told_from_the_cells_that_are_done() -> None:
    """Nothing before the first; minutes when there are some."""
    assert time_left([], 10, 1.0) == ""
    assert time_left([2.0, 4.0], 3, 1.0) == ", about 8 s left"
    assert time_left([60.0], 4, 0.0) == ", about 4 min left"
    assert time_left([1.0], 1, 9.0) == ", about 0 s left"


@pytest.fixture
def races(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[tuple[int, float]]]:
    """Races that take no time; the third one is interrupted once. Holds what was raced."""
    done: list[tuple[int, float]] = []

    def race(receiver: object, workload: Workload, settings: Settings, policy: Policy, *rest: object) -> Race:
        done.append((workload.workers, settings.busy_timeout))
        run = Race("immediate", workload, settings, policy, interrupted=len(done) == 3)
        run.history = run.drained = History.of([])
        run.before = run.between = run.after = State(0)
        return run

    monkeypatch.setattr(coordinator, "race", race)
    monkeypatch.setattr(summary, "of_race", lambda ended: figure(1000 * len(done)))
    monkeypatch.chdir(tmp_path)
    yield done


@pytest.fixture
def oncebench(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: CliRunner().invoke(app, words)


def test_interrupted_sweep_goes_on_where_it_was(
    races: list[tuple[int, float]], oncebench: Callable[..., Any], tmp_path: Path
) -> None:
    """130, then 0; what was done is neither raced again nor changed, and the interrupted cell is."""
    cut = oncebench(*SWEEP, "--busy-timeout", "0,5s", "--out", "here")
    assert cut.exit_code == 130
    assert "2 cells of 4 have been raced" in cut.stdout
    [folder] = (tmp_path / "here").iterdir()
    assert f"go on: oncebench sweep --resume here/{folder.name}" in cut.stdout
    before = json.loads((folder / "run.json").read_text())
    assert (before["complete"], len(before["cells"])) == (False, 2)

    for other in (["--workers", "1,4"], ["--seed", "8"], ["upsert"]):
        refused = oncebench("sweep", "--resume", str(folder), *other)
        assert isinstance(refused.exception, BadInput)
        assert "leave that out to go on with it" in str(refused.exception)
    assert json.loads((folder / "run.json").read_text()) == before

    whole = oncebench("sweep", "--resume", str(folder), "--busy-timeout", "0,5s")
    assert whole.exit_code == 0, whole.output
    assert races == [(1, 0.0), (1, 5.0), (2, 0.0), (2, 0.0), (2, 5.0)]
    after = json.loads((folder / "run.json").read_text())
    assert (after["complete"], len(after["cells"])) == (True, 4)
    assert after["cells"][:2] == before["cells"]
    assert "best that is sound: 2 workers, wal, synchronous off, busy timeout 5 s" in whole.stdout
    shown = oncebench("show", str(folder))
    assert whole.stdout.startswith(shown.stdout)
    lines = [line for line in shown.stdout.splitlines() if "closer:" not in line]
    assert max(map(len, lines)) <= 80
    assert oncebench("show", str(folder), "--json").stdout == (folder / "run.json").read_text()
    assert len(races) == 5


def test_interrupted_before_the_first_cell_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, oncebench: Callable[..., Any], tmp_path: Path
) -> None:
    """No folder, no advice to go on with it."""

    def interrupted(*rest: object) -> Race:
        raise KeyboardInterrupt

    monkeypatch.setattr(coordinator, "race", interrupted)
    monkeypatch.chdir(tmp_path)
    cut = oncebench(*SWEEP)
    assert cut.exit_code == 130
    assert "go on" not in cut.stdout
    assert list(tmp_path.iterdir()) == []


def test_real_cells_get_the_verdicts_they_deserve(
    oncebench: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A small grid of real races: naive is broken and has no best setting; JSON is what is saved."""
    monkeypatch.chdir(tmp_path)
    grid = ["--workers", "3", "--journal", "wal", "--synchronous", "off", "--busy-timeout", "5s"]
    done = oncebench(
        "sweep", "immediate", "naive", *grid, "--ids", "20", "--time-limit", "90s", "--json", "-q"
    )
    assert done.exit_code == 0, done.output
    run = msgspec.json.decode(done.stdout, type=SweepRun)
    assert {swept.name: swept.verdict for swept in run.variants} == {"immediate": "sound", "naive": "broken"}
    assert [swept.best and swept.best.workers for swept in run.variants] == [3, None]
    assert [len(cell.race.violations) for cell in run.cells] == [0, 1]
    [folder] = (tmp_path / "results").iterdir()
    assert (folder / "run.json").read_text() == done.stdout


def test_broken_has_no_figure_on_the_heat_map(oncebench: Callable[..., Any], tmp_path: Path) -> None:
    """Nor is it among the best; unknown has a question mark, and a cell that is not done a dash."""
    run = sweep(Grid(["a"], [1, 2, 3, 4], ["wal"], ["full"], [5.0]))
    for place, verdict in zip(places(run.grid), ("unknown", "sound", "broken"), strict=False):
        add(run, place, raced(latencies(np.random.default_rng(1)), verdict=verdict))
    save(run, tmp_path)
    lines = oncebench("show", str(tmp_path)).stdout.splitlines()
    end = next(n for n, line in enumerate(lines) if line.startswith("One worker races nothing")) - 1
    heat = [line.split() for line in lines[end - 4 : end]]
    [speed] = {row[1].rstrip("?") for row in heat if row[1][0].isdigit()}
    assert heat == [["1", f"{speed}?"], ["2", speed], ["3", "broken"], ["4", "-"]]
    assert "  broken in 1 of 3 cells: that others were not may be luck" in lines


def test_page_of_a_sweep_has_its_best_setting_and_every_cell() -> None:
    """A receiver's name reaches it escaped."""
    run = sweep(Grid(["<b>me"], [1, 2], ["wal"], ["full"], [0.0, 5.0]))
    for place, verdict in zip(places(run.grid), ("unknown", "unknown", "sound", "broken"), strict=True):
        add(run, place, figure(1234, verdict))
    text = page.html([run]).decode()
    assert "best that is sound: 2 workers, wal, synchronous full, busy timeout 0" in text
    assert "broken in 1 of 4 cells" in text
    assert text.count("1,234/s</bdi>") == 4
    assert "<b>me" not in text
