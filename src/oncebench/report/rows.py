"""The table of a race: what was counted and measured, a column for each journal mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oncebench.report.texts import duration
from oncebench.results.repeated import spread
from oncebench.results.schema import Latency, RaceResult, VariantResult
from oncebench.results.summary import total_effects, total_tallies

_FIGURES = ("p50", "p90", "p99", "max")


@dataclass(frozen=True, slots=True)
class Row:
    """One line.

    Attributes:
        part: The heading it belongs under.
        label: What it counts; indented if it is part of the line above.
        cells: One for each race.
        together: One for all of them; empty where a sum means nothing.
    """

    part: str
    label: str
    cells: list[str]
    together: str = ""


def rows(variant: VariantResult) -> Iterator[Row]:
    """All lines of one variant's races, lock errors apart from completions."""
    races = variant.races
    tallies = [race.tallies for race in races]
    effects = [race.effects for race in races]
    every, all_effects = total_tallies(tallies), total_effects(effects)

    def sums(part: str, label: str, name: str, parts: Sequence[object], whole: object) -> Row:
        return Row(part, label, [f"{getattr(one, name):,}" for one in parts], f"{getattr(whole, name):,}")

    part = "Deliveries and completions"
    yield sums(part, "deliveries", "deliveries", tallies, every)
    for name in ("applied", "duplicate", "conflict"):
        yield sums(part, f"  completed: {name}", name, tallies, every)
    part = "Not completed"
    for code in sorted(every.locked):
        cells = [f"{tally.locked.get(code, 0):,}" for tally in tallies]
        yield Row(part, f"lock error {code}", cells, f"{every.locked[code]:,}")
    if not every.locked:
        yield Row(part, "lock errors", ["0"] * len(races), "0")
    yield sums(part, "errors", "error", tallies, every)
    yield sums(part, "indeterminate", "indeterminate", tallies, every)
    yield sums(part, "retried deliveries", "retried", tallies, every)
    yield sums(part, "retries", "retries", tallies, every)
    yield sums(part, "unanswered, then drained", "unanswered", tallies, every)
    part = "Effects"
    yield sums(part, "effects on the total", "observed", effects, all_effects)
    yield sums(part, "  expected by the inbox", "expected", effects, all_effects)
    if all_effects.witnessed is not None:
        yield sums(part, "effects witnessed", "witnessed", effects, all_effects)
    yield sums(part, "  ids that came in", "ids", effects, all_effects)
    yield sums(part, "ids with two in flight", "overlapped_ids", races, variant)
    part = "Speed"
    yield Row(part, f"throughput ({races[0].measured})", [_throughput(race) for race in races])
    for figure in _FIGURES:
        yield Row(part, f"  completion {figure}", [_figure(race.latency, figure) for race in races])
    for figure in _FIGURES:
        yield Row(part, f"  lock error {figure}", [_figure(race.lock_latency, figure) for race in races])
    yield Row(part, "fewest to most a worker", [_span(race.fairness.completions) for race in races])
    waits = [max(race.fairness.longest_wait, default=0) for race in races]
    yield Row(part, "longest wait of a worker", [duration(wait) for wait in waits])


def _throughput(race: RaceResult) -> str:
    apart = f" ±{spread([one.throughput for one in race.repeats]):.0%}" if race.repeats else ""
    return f"{race.throughput:,.0f}/s{apart}"


def _figure(latency: Latency, name: str) -> str:
    return duration(getattr(latency, name)) if latency.count else "-"


def _span(counts: list[int]) -> str:
    return f"{min(counts):,} to {max(counts):,}" if counts else "-"
