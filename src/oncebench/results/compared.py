"""Runs of the same workload side by side: ratios, how sure they are, and what a CI job fails on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct, field

from oncebench.audit import Verdict
from oncebench.messages import BadInput
from oncebench.results import bootstrap
from oncebench.results.bootstrap import Ratio
from oncebench.results.forms import AnyRun
from oncebench.results.repeated import ENOUGH
from oncebench.results.schema import SCHEMA, RaceResult, Repeat, RunResult, VariantResult
from oncebench.results.summary import refused

FIGURES = ("throughput", "p50", "p90", "p99", "max")
"""What is compared; more is better for the first, less for the others."""
_WORKLOAD = ("workers", "ids", "redeliveries", "conflicts", "max_qty", "workload", "kills", "rate")
"""Settings that change what is delivered: runs that differ in one of them are not compared."""
_NAMED = ("synchronous", "busy_timeout", "max_tries", "deadline", "witness", "threads", "time_limit")
"""Settings that may be what is compared: a difference is named."""
_NO_MAXIMUM = "one race has one maximum"
_NO_THROUGHPUT = "the rate was given, and nothing was repeated"
_TOO_FEW = f"fewer than {ENOUGH} repeats"


class Side(Struct):
    """One of two that are compared: a receiver in a run.

    Attributes:
        verdict: Over all journal modes.
        refused: Share of its calls in this mode that ended in a lock error, which no latency has in it: who
            refuses instead of waiting looks fast.
    """

    run: str
    variant: str
    verdict: str
    refused: float


class Figure(Struct):
    """One figure of both, in completions a second or nanoseconds.

    Attributes:
        name: One of `FIGURES`.
        ratio: Candidate over baseline; None if one of them has no such figure.
        low: Lower bound of its 95 % interval; None if there is none.
        high: The upper bound.
        finding: "faster" or "slower" where the interval does not hold 1, "not significant" where it does,
            "unknown" where there is none. Whoever is broken is said to be so beside it.
        because: Why it is unknown; empty if it is not.
    """

    name: str
    baseline: float
    candidate: float
    ratio: float | None
    low: float | None
    high: float | None
    finding: str
    because: str = ""


class Pair(Struct):
    """A candidate against its baseline in one journal mode.

    Attributes:
        journal: The mode.
        resampled: What the intervals rest on: "pairs of repeats", "repeats" or "histograms".
        samples: How many of them the smaller side has.
    """

    journal: str
    baseline: Side
    candidate: Side
    resampled: str
    samples: int
    figures: list[Figure]


class Comparison(Struct):
    """What was compared with what, and what came of it.

    Attributes:
        schema: `oncebench.results.schema.SCHEMA`.
        kind: "compare".
        runs: The baseline's run first.
        differences: What else differs between them.
        failed: Conditions that hold, so that a CI job is to fail.
        untold: Conditions that cannot be told from so few figures.
    """

    schema: int
    kind: str
    runs: list[str]
    differences: list[str]
    pairs: list[Pair]
    failed: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a CI job fails on: a figure's ratio beyond a bound, or a worse verdict."""

    text: str
    figure: str
    above: bool
    bound: float

    @classmethod
    def of(cls, text: str) -> Condition:
        """Read `p99>1.2x`, `throughput<0.9x` or `verdict`.

        Raises:
            BadInput: It is none of these.
        """
        if text.strip() == "verdict":
            return cls("verdict", "verdict", True, 0)
        match = re.fullmatch(rf"\s*({'|'.join(FIGURES)})\s*([<>])\s*(\d{{1,9}}(?:\.\d{{1,9}})?)x?\s*", text)
        if match is None:
            raise BadInput(
                f"--fail-if takes 'verdict', or one of {', '.join(FIGURES)} with a bound, as 'p99>1.2x' or "
                f"'throughput<0.9x', not {text!r}"
            )
        return cls(text.strip(), match[1], match[2] == ">", float(match[3]))

    def holds_at(self, ratio: float) -> bool:
        """Whether a ratio is beyond the bound."""
        return ratio > self.bound if self.above else ratio < self.bound


def compare(runs: Sequence[tuple[str, AnyRun]], conditions: Sequence[Condition] = ()) -> Comparison:
    """The other runs against the first, each receiver with itself; of a single run all against the first.

    Args:
        runs: Each with its name.
        conditions: What a CI job is to fail on.

    Raises:
        BadInput: They are not of the same workload, or have nothing in common.
    """
    races = [(name, _race(name, run)) for name, run in runs]
    for other in races:
        _refuse_others(races[0], other)
    rng = np.random.default_rng(races[0][1].seed)
    pairs = [_pair(*two, rng, len(races) == 1) for two in _pairs(races)]
    comparison = Comparison(
        schema=SCHEMA,
        kind="compare",
        runs=[name for name, _ in races],
        differences=[text for other in races[1:] for text in _differences(races[0], other)],
        pairs=pairs,
    )
    for condition in conditions:
        for pair in pairs:
            _judge(condition, pair, comparison)
    return comparison


def _race(name: str, run: AnyRun) -> RunResult:
    if not isinstance(run, RunResult) or run.kind != "race":
        raise BadInput(f"{name} was made by oncebench {run.kind}: compare takes what oncebench run has saved")
    return run


def _refuse_others(first: tuple[str, RunResult], other: tuple[str, RunResult]) -> None:
    name, run = other
    if not run.variants:
        raise BadInput(f"{name} was cut short before anything was measured: nothing to compare")
    for what, mine, theirs in (
        ("seed", first[1].seed, run.seed),
        *((key, getattr(first[1].settings, key), getattr(run.settings, key)) for key in _WORKLOAD),
    ):
        if mine != theirs:
            raise BadInput(
                f"{first[0]} and {name} are not of the same workload: {what} is {_text(mine)} in the one and "
                f"{_text(theirs)} in the other"
            )


def _differences(first: tuple[str, RunResult], other: tuple[str, RunResult]) -> Iterator[str]:
    (_, mine), (name, theirs) = first, other
    for what, one, two in (
        *((key, getattr(mine.settings, key), getattr(theirs.settings, key)) for key in _NAMED),
        *(
            (key, mine.environment.get(key), theirs.environment.get(key))
            for key in {**mine.environment, **theirs.environment}
        ),
    ):
        if isinstance(one, list) and isinstance(two, list) and set(one) != set(two):
            only = [sorted({*map(str, a)} - {*map(str, b)}) for a, b in ((one, two), (two, one))]
            yield f"{name}: {what}: without {_text(only[0])}, with {_text(only[1])}"
        elif one != two and not isinstance(one, list):
            yield f"{name}: {what} is {_text(two)}, not {_text(one)}"
    for each, run in (first, other):
        if not run.complete:
            yield f"{each}: it was cut short"


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


_Two = tuple[Side, RaceResult]


def _pairs(runs: Sequence[tuple[str, RunResult]]) -> Iterator[tuple[_Two, _Two]]:
    """Baseline and candidate of each pair."""
    name, run = runs[0]
    if len(runs) == 1:
        if len(run.variants) == 1:
            raise BadInput(f"{name} has one receiver only: name a second run to compare it with")
        for variant in run.variants[1:]:
            yield from _by_journal(name, run.variants[0], name, variant)
        return
    for other_name, other in runs[1:]:
        theirs = {variant.name: variant for variant in other.variants}
        both = [(variant, theirs[variant.name]) for variant in run.variants if variant.name in theirs]
        if not both and len(run.variants) == len(other.variants) == 1:
            both = [(run.variants[0], other.variants[0])]
        if not both:
            raise BadInput(
                f"{name} and {other_name} have no receiver in common: race the same, or one in each"
            )
        for mine, candidate in both:
            yield from _by_journal(name, mine, other_name, candidate)


def _by_journal(
    name: str, baseline: VariantResult, other: str, candidate: VariantResult
) -> Iterator[tuple[_Two, _Two]]:
    races = {race.journal: race for race in candidate.races}
    both = [(race, races[race.journal]) for race in baseline.races if race.journal in races]
    if not both:
        raise BadInput(f"{name} and {other} have no journal mode in common for {candidate.name}")
    for mine, theirs in both:
        yield (
            (Side(name, baseline.name, baseline.verdict, refused(mine.tallies)), mine),
            (Side(other, candidate.name, candidate.verdict, refused(theirs.tallies)), theirs),
        )


def _pair(baseline: _Two, candidate: _Two, rng: np.random.Generator, in_turns: bool) -> Pair:
    (mine, a), (theirs, b) = baseline, candidate
    count = min(len(a.repeats), len(b.repeats))
    repeated = count > 1
    samples = count if repeated else min(a.latency.count, b.latency.count)
    pair = Pair(a.journal, mine, theirs, "histograms", samples, [])
    if repeated:
        pair.resampled = "pairs of repeats" if in_turns else "repeats"
    ratios = {}
    if not repeated and bootstrap.has_calls(a.latency) and bootstrap.has_calls(b.latency):
        ratios = bootstrap.of_histograms(a.latency, b.latency, rng)
    for name in FIGURES:
        figure = _of_repeats(name, a, b, in_turns, rng) if repeated else _of_calls(name, a, b, ratios)
        if figure.low is not None and figure.high is not None and figure.finding != "unknown":
            figure.finding = _finding(name, figure.low, figure.high, mine.verdict, theirs.verdict)
        pair.figures.append(figure)
    return pair


def _finding(name: str, low: float, high: float, baseline: str, candidate: str) -> str:
    if low <= 1 <= high:
        return "not significant"
    if (low > 1) == (name == "throughput"):
        return "faster, but broken" if candidate == Verdict.BROKEN else "faster"
    return "slower than a broken one" if baseline == Verdict.BROKEN != candidate else "slower"


def _figure_of(race: RaceResult | Repeat, name: str) -> float:
    return race.throughput if name == "throughput" else float(getattr(race.latency, name))


def _of_repeats(name: str, a: RaceResult, b: RaceResult, in_turns: bool, rng: np.random.Generator) -> Figure:
    mine, theirs = (np.array([_figure_of(one, name) for one in race.repeats]) for race in (a, b))
    if in_turns:  # one may have been cut short
        mine, theirs = mine[: len(theirs)], theirs[: len(mine)]
    if not ((mine > 0).all() and (theirs > 0).all()):
        return _nothing(name, _figure_of(a, name), _figure_of(b, name), "a repeat completed nothing")
    ratio = bootstrap.of_repeats(mine, theirs, in_turns, rng)
    means = [float(np.exp(np.log(values).mean())) for values in (mine, theirs)]
    figure = _with(name, means[0], means[1], ratio)
    if min(len(mine), len(theirs)) < ENOUGH:
        figure.finding, figure.because = "unknown", _TOO_FEW
    return figure


def _of_calls(name: str, a: RaceResult, b: RaceResult, ratios: Mapping[str, Ratio]) -> Figure:
    mine, theirs = _figure_of(a, name), _figure_of(b, name)
    if not (ratios and mine > 0 < theirs):
        return _nothing(name, mine, theirs, "one of them completed nothing")
    if name == "max":
        return _nothing(name, mine, theirs, _NO_MAXIMUM, theirs / mine)
    if name == "throughput":
        if a.load.rate:
            return _nothing(name, mine, theirs, _NO_THROUGHPUT, theirs / mine)
        # Workers of a closed loop spend their time in these calls: twice the time is half the throughput.
        value, time = theirs / mine, ratios["time"]
        return _with(name, mine, theirs, Ratio(value, value / time.high, value / time.low))
    return _with(name, mine, theirs, ratios[name])


def _nothing(name: str, mine: float, theirs: float, because: str, ratio: float | None = None) -> Figure:
    return Figure(name, mine, theirs, ratio, None, None, "unknown", because)


def _with(name: str, mine: float, theirs: float, ratio: Ratio) -> Figure:
    return Figure(name, mine, theirs, ratio.value, ratio.low, ratio.high, "")


def _judge(condition: Condition, pair: Pair, comparison: Comparison) -> None:
    """Add what a condition comes to; one that 1 does not meet holds only if the ratio is significant."""
    who = f"{pair.candidate.variant}, {pair.journal}"
    if len(comparison.runs) > 1:
        who = f"{pair.candidate.run}: {who}"
    if condition.figure == "verdict":
        mine, theirs = pair.baseline.verdict, pair.candidate.verdict
        if Verdict.worst([Verdict(mine), Verdict(theirs)]) != mine:
            comparison.failed.append(f"{who}: {theirs}, and the baseline is {mine}")
        return
    figure = next(figure for figure in pair.figures if figure.name == condition.figure)
    if figure.ratio is None:
        comparison.untold.append(f"{condition.text}: {who}: {figure.because}")
    elif condition.holds_at(figure.ratio):
        if condition.holds_at(1) or figure.finding not in ("unknown", "not significant"):
            comparison.failed.append(f"{condition.text}: {who}: {figure.ratio:.2f}x")
        elif figure.finding == "unknown":
            comparison.untold.append(f"{condition.text}: {who}: {figure.ratio:.2f}x, but {figure.because}")
