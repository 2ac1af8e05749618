"""What is plotted, as data: the page draws it as SVG, `oncebench plot` by matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from oncebench.report.texts import answer, counted, duration, short
from oncebench.results.schema import Latency, Proof, RaceResult, RunResult
from oncebench.results.swept import SweepRun

Role = Literal["completion", "lock", "mark"]
Kind = Literal["time", "latency", "throughput", "fairness", "timeline"]
MOST_LANES = 40
"""Operations, or bars, that one chart shows; a result file of anybody's making may have any number."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a chart, or one set of bars.

    Attributes:
        name: What it shows.
        role: By which it gets its colour and its stroke.
        points: `(x, y)`, x ascending; of a step curve each y holds until the next x.
    """

    name: str
    role: Role
    points: list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart.

    Attributes:
        title: What it shows.
        says: The same in words, for those who cannot see it.
        x_label: What x is; in `unit`.
        unit: "ns", or "" for a plain number.
        log_x: Whether x is on a logarithmic scale.
        shape: How curves are drawn.
        marks: `(x, label)` of upright lines.
    """

    kind: Kind
    title: str
    says: str
    x_label: str
    y_label: str
    curves: list[Curve]
    unit: str = "ns"
    log_x: bool = False
    shape: Literal["steps", "line", "bars"] = "steps"
    marks: list[tuple[float, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Bar:
    """One operation of a timeline: from, to (None for never), the row of its lane, and what it was."""

    start: float
    end: float | None
    row: int
    outcome: str
    label: str
    says: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The operations that prove a violation, a lane for each worker.

    Attributes:
        lanes: `(worker, bars)`.
        length: Where the axis ends.
        unit: "ns", or "" for steps of a schedule.
    """

    title: str
    lanes: list[tuple[str, list[Bar]]]
    length: float
    unit: str


def of_race(race: RaceResult) -> Iterator[Chart]:
    """All charts of one race; none for what it has no figures of."""
    yield from time(race)
    yield from latency("completions", "completion", race.latency, race.measured)
    yield from latency("lock errors", "lock", race.lock_latency, "all parts")
    yield from fairness(race)


def time(race: RaceResult) -> Iterator[Chart]:
    """Completions and lock errors over time."""
    series = race.series
    if not series.bin or not series.completions:
        return
    seconds = series.bin / 1e9

    def rates(counts: list[int]) -> list[tuple[float, float]]:
        return [(float(at * series.bin), count / seconds) for at, count in enumerate([*counts, 0])]

    curves = [
        Curve("completions", "completion", rates(series.completions)),
        Curve("lock errors", "lock", rates(series.locks)),
    ]
    says = (
        f"{counted(sum(series.completions), 'completion')} and {counted(sum(series.locks), 'lock error')} in "
        f"{duration(series.bin * len(series.completions))}; most in one of {len(series.completions)} bins: "
        f"{max(series.completions) / seconds:,.0f} and {max(series.locks, default=0) / seconds:,.0f} a second"
    )
    marks = [(float(at), phase) for phase, at in series.phases[:MOST_LANES]]
    yield Chart("time", "Over time", says, "time since the first call", "calls a second", curves, marks=marks)


def latency(what: str, role: Role, figures: Latency, part: str) -> Iterator[Chart]:
    """How long calls took, on a logarithmic scale."""
    if not figures.histogram:
        return
    points: list[tuple[float, float]] = []
    for lower, count in sorted(dict(figures.histogram).items()):
        low = float(max(lower, 1))
        if points and low < points[-1][0] * 1.02:
            points.pop()  # begins where the last bucket ended
        points += [(low, float(count)), (low * 2 ** (1 / 8), 0.0)]
    marks = [(float(max(getattr(figures, name), 1)), name) for name in ("p50", "p90", "p99", "max")]
    said = ", ".join(f"{name} {duration(at)}" for at, name in marks)
    says = f"{counted(figures.count, what.removesuffix('s'))} ({part}): {said}"
    yield Chart(
        "latency", f"Latency of {what}", says, "time from call to return, log scale", "calls",
        [Curve(what, role, points)], log_x=True, marks=marks,
    )  # fmt: skip


def fairness(race: RaceResult) -> Iterator[Chart]:
    """Completions of each worker when the first had come to the end of its deliveries."""
    completions = race.fairness.completions[:MOST_LANES]
    if not completions:
        return
    waits = [*race.fairness.longest_wait, *[0] * len(completions)]
    each = ", ".join(
        f"worker {worker} {count:,} (waited {duration(wait)} at the longest)"
        for worker, (count, wait) in enumerate(zip(completions, waits, strict=False))
    )
    yield Chart(
        "fairness", "Fairness: when the first was done", f"completions when the first was done: {each}",
        "worker", "completions", [Curve("completions", "completion", _numbered(completions))],
        unit="", shape="bars",
    )  # fmt: skip


def throughput(runs: Sequence[object]) -> Iterator[Chart]:
    """Throughput against workers, where races differ in their number: of several runs, or of a sweep."""
    found: dict[str, dict[int, float]] = {}
    for run in runs:
        for name, workers, race in _raced(run):
            found.setdefault(name, {})[workers] = race.throughput
    for name, by_workers in list(found.items())[:MOST_LANES]:
        if len(by_workers) < 2:
            continue
        points = sorted(by_workers.items())
        says = ", ".join(f"{counted(workers, 'worker')}: {rate:,.0f}/s" for workers, rate in points)
        yield Chart(
            "throughput", name, says, "workers", "completions a second",
            [Curve("completions", "completion", [(float(x), y) for x, y in points])],
            unit="", shape="line",
        )  # fmt: skip


def _raced(run: object) -> Iterator[tuple[str, int, RaceResult]]:
    """Each race with all that it has in common with others but the workers, and their number."""
    if isinstance(run, RunResult):
        for variant in run.variants:
            for race in variant.races:
                yield f"{variant.name}, {race.journal}", run.settings.workers, race
    elif isinstance(run, SweepRun):
        for cell in run.cells:
            place = cell.place
            waits = duration(place.busy_timeout * 1e9)
            name = f"{place.receiver}, {place.journal}, {place.synchronous}, busy timeout {waits}"
            yield name, place.workers, cell.race


def timeline(proof: Proof) -> Timeline:
    """A proof's operations, those that overlap in one lane in rows below each other."""
    shown = proof.operations[:MOST_LANES]
    ends = [op.completed if op.completed is not None else op.invoked for op in shown]
    length = float(max([1, *ends]))
    lanes: dict[int, list[Bar]] = {}
    for op in sorted(shown, key=lambda op: op.invoked):
        bars = lanes.setdefault(op.worker, [])
        taken = {bar.row for bar in bars if bar.end is None or bar.end > op.invoked}
        row = next(n for n in range(len(taken) + 1) if n not in taken)
        took = "never came back" if op.completed is None else f"to {moment(op.completed, proof)}"
        says = f"{short(op.id)}: {answer(op)}, from {moment(op.invoked, proof)} {took}"
        end = None if op.completed is None else float(op.completed)
        bars.append(Bar(float(op.invoked), end, row, op.outcome, answer(op), says))
    return Timeline(
        f"{proof.kind} of {short(proof.id)}" if proof.id else proof.kind,
        [(lane(worker, proof), bars) for worker, bars in sorted(lanes.items())],
        length,
        "" if proof.schedule else "ns",
    )


def lane(worker: int, proof: Proof) -> str:
    """A worker's name: a letter where a schedule names it."""
    return f"worker {chr(ord('A') + worker) if proof.schedule and worker < 26 else worker}"


def moment(at: float, proof: Proof) -> str:
    """A time of a proof's operation, which is a step where there is a schedule."""
    return f"step {at:,.0f}" if proof.schedule else duration(at)


def ticks(low: float, high: float, log: bool) -> list[float]:
    """A few round values from `low` to `high`."""
    if log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        step = max(1, (last - first) // 6)
        return [10.0**power for power in range(first, last + 1, step) if low <= 10.0**power <= high]
    span = high - low
    rough = span / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step_ = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [low + n * step_ for n in range(int(span / step_ + 1e-9) + 1)]


def _numbered(counts: Sequence[int]) -> list[tuple[float, float]]:
    return [(float(worker), float(count)) for worker, count in enumerate(counts)]
