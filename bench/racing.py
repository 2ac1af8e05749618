"""The race against a raw loop: one worker, then many, the built-in busy handler and `group`, the witness."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from measure import in_turn, ratios, spread
from oncebench.race import Policy, race
from oncebench.receivers.loader import load
from oncebench.results import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores import sqlite
from oncebench.workload import Workload


def raw(messages: int, settings: sqlite.Settings) -> float:
    """Transactions a second of a bare loop over one connection."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        sqlite.setup(path, settings, watched=False)
        db = sqlite.connect(path, settings)
        ids = [f"message-{n}" for n in range(messages)]
        start = time.perf_counter()
        for id in ids:
            db.execute("BEGIN IMMEDIATE")
            db.execute("SELECT qty FROM inbox WHERE id = ?", (id,)).fetchone()
            db.execute("INSERT INTO inbox VALUES (?, ?)", (id, 7))
            db.execute("UPDATE stock SET total = total + ?", (7,))
            db.execute("COMMIT")
        rate = messages / (time.perf_counter() - start)
        db.close()
        return rate


def raced(
    name: str, workers: int, messages: int, settings: sqlite.Settings, watched: bool = False
) -> RaceResult:
    """New messages only, free running."""
    work = Workload(
        workers=workers, ids=max(1, messages // 4), redeliveries=0, conflicts=0, phases=("spread",)
    )
    return of_race(race(load(name), work, settings, Policy(watched=watched, deadline=600)))


def main() -> None:
    """Print a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=8000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--workers", default="2,4,8,16")
    chosen = parser.parse_args()
    repeats = chosen.repeats
    for journal, messages in (("wal", chosen.messages), ("delete", chosen.messages // 4)):
        settings = sqlite.Settings(journal=journal, busy_timeout=300)  # type: ignore[arg-type]
        base, one, watched = in_turn(
            repeats,
            lambda m=messages, s=settings: raw(m, s),  # type: ignore[misc]
            lambda m=messages, s=settings: raced("immediate", 1, m, s).throughput,  # type: ignore[misc]
            lambda m=messages, s=settings: raced("immediate", 1, m, s, True).throughput,  # type: ignore[misc]
        )
        print(f"{journal}: raw loop {spread(base, 0)} transactions/s")
        print(f"{journal}: immediate, 1 worker / raw loop            {spread(ratios(one, base))}")
        print(f"{journal}: the same with the witness / without       {spread(ratios(watched, one))}")
        for workers in map(int, chosen.workers.split(",")):
            for name in ("immediate", "group"):
                kept: list[RaceResult] = []

                def many(
                    w: int = workers,
                    n: str = name,
                    m: int = messages,
                    s: sqlite.Settings = settings,
                    k: list[RaceResult] = kept,
                ) -> float:
                    k.append(raced(n, w, m, s))
                    return k[-1].throughput

                base, rate = in_turn(repeats, lambda m=messages, s=settings: raw(m, s), many)  # type: ignore[misc]
                waits = [max(result.fairness.longest_wait) / 1e6 for result in kept]
                few = min(min(result.fairness.completions) for result in kept)
                most = max(max(result.fairness.completions) for result in kept)
                fair = f"longest wait {max(waits):,.0f} ms, {few:,} to {most:,} receives a worker"
                print(f"{journal}: {name:9} {workers:2} workers / raw {spread(ratios(rate, base))}  {fair}")


if __name__ == "__main__":
    main()
