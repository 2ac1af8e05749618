"""How sure a ratio is: 95 % intervals by resampling what was measured.

From repeats if there are some: logarithms are resampled, in pairs where the repeats took turns, so that what
slowed both down at a time cancels. Five repeats are few, and a plain bootstrap of few is too narrow; its
quantiles are widened as Hesterberg proposes ("What teachers should know about the bootstrap", 2015, section
5.3). Without repeats the calls in a race's histogram are resampled; how races differ is not in that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from oncebench.results.schema import Latency

    Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 2000
_BUCKETS = 8  # of a histogram, for each doubling
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True)
class Ratio:
    """Candidate over baseline, and between what bounds it is."""

    value: float
    low: float
    high: float


def of_repeats(baseline: Floats, candidate: Floats, paired: bool, rng: np.random.Generator) -> Ratio:
    """The ratio of their geometric means.

    Args:
        baseline: A positive figure for each repeat, at least two.
        candidate: The same.
        paired: Whether the nth of one was measured next to the nth of the other; they are then as many.
        rng: Draws the resamples.
    """
    a, b = np.log(baseline), np.log(candidate)
    if paired:
        a, b = np.zeros(1), b - a
        fewest = len(b)
    else:
        fewest = min(len(a), len(b))
    means = _resampled(b, rng) - _resampled(a, rng)
    tail = NormalDist().cdf(-math.sqrt(fewest / (fewest - 1)) * _student(fewest - 1))
    low, high = np.quantile(means, [tail, 1 - tail])
    return Ratio(*(math.exp(x) for x in (b.mean() - a.mean(), low, high)))


def has_calls(latency: Latency) -> bool:
    """Whether there is a histogram to draw from."""
    counts = [count for _, count in latency.histogram]
    return 0 < sum(counts) == latency.count < 2**53 and min(counts) > 0


def of_histograms(baseline: Latency, candidate: Latency, rng: np.random.Generator) -> dict[str, Ratio]:
    """The ratios of "p50", "p90" and "p99", and under "time" that of all the time that was spent on a call.

    The percentiles themselves are exact; between the bounds of a bucket calls are taken to be spread evenly.
    """
    doublings: dict[str, list[Floats]] = {}
    for latency in (baseline, candidate):
        lower, counts = np.array(latency.histogram, dtype=np.float64).T
        lower = np.maximum(lower, 1)
        drawn = rng.multinomial(latency.count, counts / counts.sum(), size=RESAMPLES)
        doublings.setdefault("time", []).append(np.log2(drawn @ lower / (counts @ lower)))
        for percent in (50, 90, 99):
            own = _percentile(lower, counts[None, :], percent)
            doublings.setdefault(f"p{percent}", []).append(np.log2(_percentile(lower, drawn, percent) / own))
    tail = (1 - CONFIDENCE) / 2
    ratios = {}
    for name, (mine, theirs) in doublings.items():
        low, high = np.exp2(np.quantile(theirs - mine, [tail, 1 - tail])).tolist()
        value = 1.0 if name == "time" else getattr(candidate, name) / max(1, getattr(baseline, name))
        ratios[name] = Ratio(value, value * low, value * high)
    return ratios


def _resampled(values: Floats, rng: np.random.Generator) -> Floats:
    drawn: Floats = values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
    return drawn


def _percentile(lower: Floats, counts: npt.NDArray[np.float64 | np.int64], percent: int) -> Floats:
    """For each row of counts the percentile, in nanoseconds."""
    upto = counts.cumsum(axis=1)
    wanted = upto[:, -1:] * (percent / 100)
    bucket = (upto < wanted).sum(axis=1)
    rows = np.arange(len(counts))
    inside = counts[rows, bucket]
    share = (wanted[:, 0] - (upto[rows, bucket] - inside)) / inside
    nanoseconds: Floats = lower[bucket] * np.exp2(share / _BUCKETS)
    return nanoseconds


def _student(freedom: int) -> float:
    """Student's t at the upper bound of the interval, by its expansion in 1/freedom (Abramowitz, 26.7.5)."""
    z = _Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum((term / freedom**power for power, term in enumerate(terms, 1)), start=0.0)
