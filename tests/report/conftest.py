"""Saved runs of every kind, from which the tests of pages, plots and files are made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oncebench.results.checked import CheckRun, Mode, conclude
from oncebench.results.explored import ExploreRun
from oncebench.results.files import load, load_as, save
from oncebench.results.schema import SCHEMA, RunResult, Series
from oncebench.results.swept import Grid, SweepRun, add, places

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of a run for each kind; race, crash and wire are from those that the repository keeps."""
    folder = tmp_path_factory.mktemp("runs")
    words = ["explore", "naive", "--scenario", "same", "--journal", "wal", "--locks", "error", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "oncebench", *words, "--out", str(folder / "explored")],
        timeout=100,
        check=False,
    )
    assert done.returncode == 0
    [explored] = (folder / "explored").iterdir()
    runs = {
        "race": folder / "raced",
        "crash": RESULTS / "reference-crash",
        "wire": RESULTS / "reference-wire",
        "explore": explored,
        "check": folder / "checked",
        "sweep": folder / "swept",
    }
    runs["race"].mkdir()
    race = load(RESULTS / "reference-main-job")
    for one in (one for variant in race.variants for one in variant.races):
        one.series = Series(10_000_000, [3, 0, 200, 70], [0, 5, 0, 1], [("same", 0), ("spread", 25_000_000)])
    save(race, runs["race"])
    runs["check"].mkdir()
    save(_check(runs), runs["check"])
    runs["sweep"].mkdir()
    save(_sweep(race), runs["sweep"])
    return runs


def _check(runs: dict[str, Path]) -> CheckRun:
    """What a check of naive would hold that found this."""
    race, crash, explore = load(runs["race"]), load(runs["crash"]), load_as(runs["explore"], ExploreRun)
    race.variants = [variant for variant in race.variants if variant.name == "naive"]
    crash.variants = [variant for variant in crash.variants if variant.name == "naive"]
    run = CheckRun(
        schema=SCHEMA,
        kind="check",
        seed=7,
        command="oncebench check naive --seed 7",
        created=race.created,
        complete=True,
        target="naive",
        verdict="unknown",
        expected_verdict="broken",
        because=[],
        untried=[],
        modes=[
            Mode(name, "broken", "some", 1.0)
            for name in ("sequential", "extremes", "race", "explore", "crash")
        ],
        found=[],
        environment=race.environment,
        race=race,
        explore=explore.variants[0],
        crash=crash,
    )
    conclude(run)
    return run


def _sweep(race: RunResult) -> SweepRun:
    """What a sweep of naive would hold over two numbers of workers."""
    run = SweepRun(
        schema=SCHEMA,
        kind="sweep",
        seed=7,
        command="oncebench sweep naive",
        created=race.created,
        complete=False,
        grid=Grid(["naive"], [1, 4], ["wal"], ["full"], [5.0]),
        ids=120,
        workload=["same", "spread"],
        time_limit=10.0,
        environment=race.environment,
        expected={"naive": "broken"},
    )
    for place, raced in zip(places(run.grid), race.variants[0].races, strict=True):
        add(run, place, raced)
    return run
