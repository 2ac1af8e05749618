"""What exploring costs: schedules a second, against the same statements without any scheduling.

    python bench/exploring.py [--seconds 2]

Everything is measured in this one run, in turns, so that a busy machine slows all alike. The floor is the
same deliveries by the same receivers over plain connections, with the same making new and reading of the
store: what is left is the price of scheduling. `frontrun` is measured if it is installed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oncebench.explore.plan import Plan
from oncebench.explore.play import Play
from oncebench.explore.search import Search
from oncebench.explore.site import Site
from oncebench.explore.strategies import PCT, Random, Sample, play_chosen
from oncebench.explore.views import Views
from oncebench.receivers import loader
from oncebench.stores.sqlite import Journal, Settings
from oncebench.testing.exploration import Crewed, Setting
from oncebench.testing.exploring import explore, judge, stage

TURNS = 5
DISK = Path(tempfile.gettempdir())


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure")
    parser.add_argument("--peer", action="store_true", help="only frontrun, in whose environment this runs")
    options = parser.parse_args()
    if options.peer:
        _peer(options.seconds)
        return
    seconds = options.seconds / TURNS
    print("schedules a second, 2 workers, a message each (x: the floor's time for each schedule's)")
    for name in ("naive", "immediate"):
        for journal in ("wal", "delete"):
            for folder in (None, DISK):
                _table(name, journal, folder, seconds)
    _frontrun(seconds * TURNS)
    print("\nschedules until the bug of naive is found")
    for label, played in _until_found().items():
        print(f"  {label:<34}{played:>8}")
    print("\ntime to cover all schedules, with the verdict")
    for name in ("immediate", "naive"):
        for workers in (2, 3):
            for locks in ("error", "wait"):
                start = time.perf_counter()
                found = explore(name, workers=workers, plans=["same"], journals=["wal"], locks=[locks])
                took = time.perf_counter() - start
                print(
                    f"  {name}, {workers} workers, {locks:<6}{took:>8.3f} s  {found.verdict}, "
                    f"{found.total:,} schedules ({found.run:,} played)"
                )


def _table(name: str, journal: Journal, folder: Path | None, seconds: float) -> None:
    rates: dict[str, list[float]] = {}
    for _ in range(TURNS):
        ways: dict[str, Callable[[], float]] = {
            "floor: no scheduling": lambda: _floor(name, journal, folder, seconds),
            "greenlets": lambda: _scheduled(name, journal, folder, "greenlets", seconds),
            "greenlets, searching": lambda: _searching(name, journal, folder, seconds),
            "threads": lambda: _scheduled(name, journal, folder, "threads", seconds),
            "processes": lambda: _scheduled(name, journal, folder, "processes", seconds),
        }
        for label, measured in ways.items():
            rates.setdefault(label, []).append(measured())
    place = "memory" if folder is None else str(folder)
    print(f"\n{name}, journal {journal}, in {place}")
    floor = statistics.median(rates["floor: no scheduling"])
    for label, found in rates.items():
        rate = statistics.median(found)
        print(f"  {label:<24}{rate:>10,.0f}/s{floor / rate:>8.2f} x")


def _per_second(once: Callable[[], object], seconds: float) -> float:
    once()
    count, start = 0, time.perf_counter()
    while (took := time.perf_counter() - start) < seconds:
        once()
        count += 1
    return count / took


def _floor(name: str, journal: Journal, folder: Path | None, seconds: float) -> float:
    """The deliveries of a schedule one after another, over plain connections."""
    receiver = loader.load(name)
    site = Site(receiver, Settings(journal, "off", 5.0), folder)
    connections = [receiver.connect(site.path, site.settings) for _ in range(2)]
    for db in connections:
        db.attribute_changes()

    def once() -> None:
        site.renew(lambda: None)
        for call, db in enumerate(connections):
            db.call = call
            receiver.receive(db, f"m{call + 1}{site.token}", 3)
        site.read()

    try:
        return _per_second(once, seconds)
    finally:
        for db in connections:
            db.close()
        site.close()


def _scheduled(name: str, journal: Journal, folder: Path | None, on: Crewed, seconds: float) -> float:
    """Random schedules, as a sample plays them."""
    plan = Plan.of("distinct", 2)
    setting = Setting(journal, "error", on)
    with stage(loader.load(name), plan, setting, folder) as (site, crew):
        views = Views()
        numbers = iter(range(10**9))

        def once() -> None:
            choose = Random().chooser(next(numbers), plan, 7, 1)
            play_chosen(Play(crew, site, plan, views), choose)

        return _per_second(once, seconds)


def _searching(name: str, journal: Journal, folder: Path | None, seconds: float) -> float:
    """Every schedule in full, the judge's verdict on each new outcome included."""
    plan = Plan.of("distinct", 2)
    with stage(loader.load(name), plan, Setting(journal), folder) as (site, crew):
        played, start = 0, time.perf_counter()
        known: dict[Any, Any] = {}
        while (took := time.perf_counter() - start) < seconds:
            search = Search(crew, site, plan, Views(), reduce=False)
            for run in search.runs():
                if run.outcome not in known:
                    known[run.outcome] = judge(run)
            played += search.played
        return played / took


def _until_found() -> dict[str, float]:
    plan = Plan.of("same", 2)
    found: dict[str, float] = {}
    with stage(loader.load("naive"), plan, Setting()) as (site, crew):
        ways: dict[str, list[Any]] = {
            "fewest preemptions first": [Search(crew, site, plan, Views())],
            "random, median of 25 seeds": [
                Sample(crew, site, plan, Views(), Random(), seed) for seed in range(25)
            ],
            "pct of depth 3, median of 25 seeds": [
                Sample(crew, site, plan, Views(), PCT(), seed) for seed in range(25)
            ],
        }
        for label, works in ways.items():
            counts = [
                next(count for count, run in enumerate(work.runs(), 1) if judge(run).violations)
                for work in works
            ]
            found[label] = statistics.median(counts)
    return found


def _frontrun(seconds: float) -> None:
    """The closest peer on the same receiver and schema: naive, two deliveries of one message, threads.

    It needs an environment of its own, so it runs in another process.
    """
    program = Path(sys.executable).with_name("frontrun")
    if not program.exists():
        print("\nfrontrun is not installed here (pip install frontrun): not compared")
        return
    command = [str(program), sys.executable, __file__, "--peer", "--seconds", str(max(seconds, 5.0))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"\nfrontrun, threads, naive: {(ran.stdout.splitlines() or ['did not run'])[-1]}")


def _peer(seconds: float) -> None:
    import frontrun  # type: ignore[import-not-found, unused-ignore]

    receiver = loader.load("naive")
    site = Site(receiver, Settings("wal", "off", 5.0))
    runs = 0

    def renew() -> None:
        nonlocal runs
        runs += 1
        site.renew(lambda: None)

    def work(_: object) -> None:
        db = receiver.connect(site.path, site.settings)
        try:
            receiver.receive(db, "m1", 3)
        finally:
            db.close()

    start = time.perf_counter()
    frontrun.explore(
        renew,
        [work, work],
        lambda _: site.read().total == 3,
        stop_on_first=False,
        reproduce_on_failure=0,
        total_timeout=seconds,
    )
    took = time.perf_counter() - start
    site.close()
    print(f"{runs} schedules in {took:.1f} s, {runs / took:,.1f}/s")


if __name__ == "__main__":
    main()
