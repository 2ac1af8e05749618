"""What exploring costs: schedules a second, against the same statements without any scheduling.

    python bench/exploring.py [--seconds 2]

Takes about 80 times `--seconds`, and a minute or two. Figures are of CPU time: a busy machine does not
spoil them, but where the work is another process's: for `processes` and `frontrun` the clock on the wall
counts, on both sides. All is measured in turns, and each ratio is of one turn: its median, and its least to
most. The floor is the same deliveries by the same receivers over plain connections, with the same making
new and reading of the store: what is left is the price of scheduling. Workers wait for locks, so that the
same statements run as on the floor. `frontrun` is measured if it is installed.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import in_turn, ratios, spread
from oncebench.explore.crew import Crew
from oncebench.explore.plan import Plan
from oncebench.explore.play import Play
from oncebench.explore.search import Search
from oncebench.explore.site import Site
from oncebench.explore.strategies import PCT, Random, Sample, play_chosen
from oncebench.explore.views import Views
from oncebench.receivers import loader, naive
from oncebench.stores.sqlite import Journal, Settings
from oncebench.testing.exploration import Crewed, Locks, Setting
from oncebench.testing.exploring import explore, judge
from oncebench.testing.stage import stage

TURNS = 5
DISK = Path(tempfile.gettempdir())
Now = Callable[[], float]


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure")
    parser.add_argument("--peer", metavar="ON", help="only frontrun, on threads or processes: its rate")
    options = parser.parse_args()
    if options.peer:
        print(_peer(options.peer, options.seconds))
        return
    seconds = options.seconds / TURNS
    print("schedules a second, 2 workers, a message each (x: the price of a schedule, in floors)")
    for name in ("naive", "immediate"):
        for journal in ("wal", "delete"):
            for folder in (None, DISK):
                _table(name, journal, folder, seconds)
    _frontrun(max(options.seconds, 1.0))
    print("\nschedules until the bug of naive is found")
    for label, played in _until_found().items():
        print(f"  {label:<34}{played:>8}")
    print("\nCPU time to cover all schedules, with the verdict")
    for name in ("immediate", "naive"):
        for workers in (2, 3):
            for locks in ("error", "wait"):
                _cover(name, workers, locks)


def _cover(name: str, workers: int, locks: Locks) -> None:
    times = []
    for _ in range(3 if workers == 2 else 1):
        start = time.process_time()
        found = explore(name, workers=workers, plans=["same"], journals=["wal"], locks=[locks])
        times.append(time.process_time() - start)
    print(
        f"  {name}, {workers} workers, {locks:<6}{statistics.median(times):>8.3f} s  {found.verdict}, "
        f"{found.total:,} schedules ({found.run:,} played)"
    )


def _table(name: str, journal: Journal, folder: Path | None, seconds: float) -> None:
    cpu, wall = time.process_time, time.perf_counter
    ways: dict[str, Callable[[], float]] = {
        "floor": lambda: _floor(name, journal, folder, seconds, cpu),
        "greenlets": lambda: _scheduled(name, journal, folder, "greenlets", seconds, cpu),
        "greenlets, searching": lambda: _searching(name, journal, folder, seconds, cpu),
        "threads": lambda: _scheduled(name, journal, folder, "threads", seconds, cpu),
        "floor, on the wall": lambda: _floor(name, journal, folder, seconds, wall),
        "processes, on the wall": lambda: _scheduled(name, journal, folder, "processes", seconds, wall),
    }
    rates = dict(zip(ways, in_turn(TURNS, *ways.values()), strict=True))
    place = "memory" if folder is None else str(folder)
    print(f"\n{name}, journal {journal}, in {place}")
    for label, found in rates.items():
        floor = rates["floor, on the wall" if "wall" in label else "floor"]
        price = "" if label.startswith("floor") else f"   {spread(ratios(floor, found), 2)} x"
        print(f"  {label:<24}{statistics.median(found):>10,.0f}/s{price}")


def _per_second(once: Callable[[], object], seconds: float, now: Now) -> float:
    once()
    count, start = 0, now()
    while (took := now() - start) < seconds:
        once()
        count += 1
    return count / took


def _floor(name: str, journal: Journal, folder: Path | None, seconds: float, now: Now) -> float:
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
        return _per_second(once, seconds, now)
    finally:
        for db in connections:
            db.close()
        site.close()


def _scheduled(
    name: str, journal: Journal, folder: Path | None, on: Crewed, seconds: float, now: Now
) -> float:
    """Random schedules, as a sample plays them."""
    plan = Plan.of("distinct", 2)
    setting = Setting(journal, "wait", on)
    with stage(loader.load(name), plan, setting, folder) as (site, crew):
        views = Views()
        numbers = iter(range(10**9))

        def once() -> None:
            choose = Random().chooser(next(numbers), plan, 7, 1)
            play_chosen(Play(crew, site, plan, views), choose)

        return _per_second(once, seconds, now)


def _searching(name: str, journal: Journal, folder: Path | None, seconds: float, now: Now) -> float:
    """Every schedule in full, the judge's verdict on each new outcome included."""
    plan = Plan.of("distinct", 2)
    with stage(loader.load(name), plan, Setting(journal, "wait"), folder) as (site, crew):
        return _searched(crew, site, plan, seconds, now)


def _searched(crew: Crew, site: Site, plan: Plan, seconds: float, now: Now) -> float:
    played, start = 0, now()
    while True:
        search, judged = Search(crew, site, plan, Views(), reduce=False), 0
        for run in search.runs():
            if len(search.found) > judged:
                judged += 1
                judge(run)
            played += 1
            if (took := now() - start) >= seconds:
                crew.settle()
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
    """The closest peer on the same receiver and schema: naive, two deliveries of one message.

    It needs an environment of its own, so it runs in another process. Its threads are what it uses if nothing
    else is said; its processes are asked to outlive schedules, as ours do.
    """
    program = Path(sys.executable).with_name("frontrun")
    if not program.exists():
        print("\nfrontrun is not installed here (pip install 'frontrun[process]'): not compared")
        return

    def theirs(on: str) -> float:
        command = [str(program), sys.executable, __file__, "--peer", on, "--seconds", str(seconds)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(f"frontrun did not run: {ran.stderr[-500:]}")
        return float(ran.stdout.splitlines()[-1])

    plan = Plan.of("same", 2)
    print("\nschedules a second on the wall, naive, verdicts included, and frontrun's")
    pairs: list[tuple[Crewed, str]] = [(on, "threads") for on in ("greenlets", "threads", "processes")]

    def ours(on: Crewed) -> float:
        with stage(loader.load("naive"), plan, Setting(on=on)) as (site, crew):
            _searched(crew, site, plan, 0.0, time.perf_counter)
            return _searched(crew, site, plan, seconds / TURNS, time.perf_counter)

    for on, its in [*pairs, ("processes", "processes")]:
        rates = in_turn(TURNS, functools.partial(ours, on), functools.partial(theirs, its))
        print(f"  {on:<10}{spread(rates[0], 0)}/s   its {its:<10}{spread(rates[1], 1)}/s   ", end="")
        print(f"{spread(ratios(*rates), 1)} times")


def _peer(on: str, seconds: float) -> float:
    """The schedules a second that frontrun plays; on processes it may be through before the time is over."""
    import frontrun  # type: ignore[import-not-found, import-untyped, unused-ignore]

    receiver = loader.load("naive")
    site = Site(receiver, Settings("wal", "off", 5.0))
    path, settings, connect = site.path, site.settings, receiver.connect  # a process is sent no more
    runs = 0

    def renew() -> None:
        nonlocal runs
        runs += 1
        site.renew(lambda: None)

    def work(_: object) -> None:
        db = connect(path, settings)
        try:
            naive.receive(db, "m1", 3)
        finally:
            db.close()

    how: dict[str, Any] = {"reproduce_on_failure": 0}
    if on == "processes":
        how = {"execution": "process", "reuse_workers": True}
    start = time.perf_counter()
    frontrun.explore(
        renew,
        [work, work],
        lambda _: site.read().total == 3,
        stop_on_first=False,
        total_timeout=seconds,
        **how,
    )
    took = time.perf_counter() - start
    site.close()
    return runs / took


if __name__ == "__main__":
    main()
