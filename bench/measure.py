"""Repeats that take turns, and how their ratios are printed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence


def in_turn(repeats: int, *measures: Callable[[], float]) -> list[list[float]]:
    """Figures of each measure: one round that is thrown away, then `repeats` rounds of A B C ..."""
    for measure in measures:
        measure()
    rounds = [[measure() for measure in measures] for _ in range(repeats)]
    return [list(column) for column in zip(*rounds, strict=True)]


def spread(figures: Sequence[float], digits: int = 3) -> str:
    """Median, and least to most."""
    low, middle, high = min(figures), statistics.median(figures), max(figures)
    return f"{middle:,.{digits}f}  [{low:,.{digits}f} to {high:,.{digits}f}]"


def ratios(figures: Sequence[float], baseline: Sequence[float]) -> list[float]:
    """Round by round."""
    return [figure / base for figure, base in zip(figures, baseline, strict=True)]
