"""Results with figures that a test chooses, in the place of measured ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from oncebench.results.repeated import together
from oncebench.results.schema import (
    SCHEMA,
    Drain,
    Effects,
    Fairness,
    Latency,
    RaceResult,
    RunResult,
    Settings,
    Tallies,
)
from oncebench.results.summary import latency_of, of_variant


def raced(nanoseconds: npt.NDArray[np.int64], journal: str = "wal", verdict: str = "sound") -> RaceResult:
    """One race of four workers that did nothing but these calls."""
    return RaceResult(
        journal=journal,
        verdict=verdict,
        because=["it raced nothing"] if verdict == "unknown" else [],
        seconds=1.0,
        tallies=Tallies(deliveries=len(nanoseconds), applied=len(nanoseconds)),
        effects=Effects(),
        ids=10,
        overlapped_ids=5,
        violations=[],
        violation_counts={"double_apply": 1} if verdict == "broken" else {},
        remarks=[],
        measured="spread",
        throughput=4e9 / float(nanoseconds.mean()) if len(nanoseconds) else 0.0,
        latency=latency_of(nanoseconds),
        lock_latency=Latency(),
        fairness=Fairness([1, 2], [10, 20]),
        drain=Drain(redelivered=1),
        effective=[("wal", "full", 5.0)],
    )


def latencies(rng: np.random.Generator, count: int = 2000, scale: float = 1.0) -> npt.NDArray[np.int64]:
    """Nanoseconds around 20 µs times the scale, with a tail."""
    return (rng.lognormal(np.log(20_000 * scale), 0.8, count)).astype(np.int64) + 1


def run_of(variants: Mapping[str, Sequence[RaceResult]], **changes: object) -> RunResult:
    """A run of these variants; the races of one journal mode are its repeats, in order."""
    results = []
    for name, races in variants.items():
        journals = dict.fromkeys(race.journal for race in races)
        parts = [together([race for race in races if race.journal == journal]) for journal in journals]
        results.append(of_variant(name, "sound", parts))
    settings = Settings(4, 10, 3, 0.1, 99, ["same", "spread"], ["wal"], "full", 5.0, 1, 30.0, True)
    run = RunResult(
        schema=SCHEMA,
        kind="race",
        seed=7,
        command="oncebench run",
        created="2026-01-01T00:00:00+00:00",
        complete=True,
        settings=settings,
        environment={"sqlite": "3.40.1", "cores": 2},
        variants=results,
    )
    for name, value in changes.items():
        setattr(run.settings if hasattr(run.settings, name) else run, name, value)
    return run
