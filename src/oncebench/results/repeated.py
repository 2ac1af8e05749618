"""Several races that were the same as one result, and whether their figures can be relied on."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from oncebench.audit import Verdict
from oncebench.results.schema import Drain, Fairness, Latency, Proof, RaceResult, Repeat
from oncebench.results.summary import total_effects, total_tallies

ENOUGH = 5
"""Repeats from which an interval says something; with fewer, chance alone often sets all of one side."""
SPREAD = 0.1
"""Standard deviation over mean, from which repeats are too far apart (pyperf's bound)."""
FAR = 0.5
"""Share of the mean by which one repeat may differ from it (pyperf's bound)."""
_TAIL = 10  # completions that should be slower than p99


def together(races: Sequence[RaceResult]) -> RaceResult:
    """One result of races that were the same: sums of counts, medians of figures of speed.

    A race that was interrupted counts, but its figures of speed do not if another one has some.
    """
    first = races[0]
    if len(races) == 1:
        return first
    whole = [race for race in races if not race.interrupted] or races
    verdict = Verdict.worst(Verdict(race.verdict) for race in races)
    return msgspec.structs.replace(
        first,
        verdict=verdict,
        because=_each([race.because for race in races]) if verdict is Verdict.UNKNOWN else [],
        seconds=sum(race.seconds for race in races),
        tallies=total_tallies(race.tallies for race in races),
        effects=total_effects(race.effects for race in races),
        ids=sum(race.ids for race in races),
        overlapped_ids=sum(race.overlapped_ids for race in races),
        violations=list(_proofs(races)),
        violation_counts=dict(sum((Counter(race.violation_counts) for race in races), Counter())),
        remarks=[remark for race in races for remark in race.remarks][: len(first.remarks) or 1],
        throughput=statistics.median(race.throughput for race in whole),
        latency=_latency([race.latency for race in whole]),
        lock_latency=_latency([race.lock_latency for race in whole]),
        fairness=Fairness(
            [sum(of) for of in zip(*(race.fairness.completions for race in whole), strict=True)],
            [max(of) for of in zip(*(race.fairness.longest_wait for race in whole), strict=True)],
        ),
        drain=Drain(*(sum(getattr(race.drain, name) for race in races) for name in Drain.__struct_fields__)),
        notes=_each([race.notes for race in races]),
        interrupted=any(race.interrupted for race in races),
        kills=sum(race.kills for race in races),
        threaded=any(race.threaded for race in races),
        repeats=[
            Repeat(
                verdict=race.verdict,
                seconds=race.seconds,
                deliveries=race.tallies.deliveries,
                throughput=race.throughput,
                latency=race.latency,
                lock_latency=race.lock_latency,
                load=race.load,
            )
            for race in whole
        ],
    )


def spread(values: Sequence[float]) -> float:
    """Their standard deviation over their mean; 0 for one value, or for zeros."""
    mean = statistics.fmean(values)
    return statistics.stdev(values) / mean if len(values) > 1 and mean else 0.0


def instability(race: RaceResult) -> Iterator[tuple[str, str]]:
    """Why figures of repeated races cannot be relied on, each with what to change; nothing for one race."""
    if not race.repeats:
        return
    count = len(race.repeats)
    if count < ENOUGH:
        yield f"{count} repeats are too few to tell chance from change", f"--repeat {ENOUGH} or more"
    measures: tuple[tuple[str, Callable[[Repeat], float]], ...] = (
        ("throughput", lambda one: one.throughput),
        ("p50", lambda one: one.latency.p50),
        ("p99", lambda one: one.latency.p99),
    )
    for name, figure in measures:
        values = [figure(one) for one in race.repeats]
        mean, apart = statistics.fmean(values), spread(values)
        far = max(values, key=lambda value: abs(value - mean))
        if apart >= SPREAD:
            yield f"{name} ±{apart:.0%} between repeats", "longer races (--ids), a quieter machine"
        if abs(far - mean) >= FAR * mean > 0:
            yield f"{name} of one repeat {far / mean:.1f} times the mean", "run it again"
    fewest = min(one.latency.count for one in race.repeats)
    if fewest < 100 * _TAIL:
        yield (
            f"p99 of {fewest:,} completions a repeat",
            f"--ids for {100 * _TAIL:,} completions in {race.measured}",
        )


def _latency(parts: Sequence[Latency]) -> Latency:
    found = [part for part in parts if part.count]
    if not found:
        return Latency()
    buckets: Counter[int] = Counter()
    for part in found:
        buckets.update(dict(part.histogram))
    return Latency(
        count=sum(part.count for part in found),
        p50=round(statistics.median(part.p50 for part in found)),
        p90=round(statistics.median(part.p90 for part in found)),
        p99=round(statistics.median(part.p99 for part in found)),
        max=max(part.max for part in found),
        histogram=sorted(buckets.items()),
    )


def _proofs(races: Sequence[RaceResult]) -> Iterator[Proof]:
    """Those of each kind from the first race that has some: more of them would prove no more."""
    seen: set[str] = set()
    for race in races:
        yield from (proof for proof in race.violations if proof.kind not in seen)
        seen.update(proof.kind for proof in race.violations)


def _each(texts: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(text for some in texts for text in some))
