"""A comparison on the terminal: a table for each pair, and what its intervals rest on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from oncebench.report.texts import COLOURS, duration, short
from oncebench.results.compared import Comparison, Figure, Pair, Side
from oncebench.results.repeated import ENOUGH

_RESTS_ON = {
    "pairs of repeats": "{} pairs of repeats that took turns",
    "repeats": "{} repeats of each, resampled apart",
    "histograms": f"the {{}} calls of one race; how races differ would take --repeat {ENOUGH}",
}


def render(comparison: Comparison) -> RenderableType:
    """What was compared, a table for each pair, and what a CI job fails on."""
    return Group(*_parts(comparison), *conclusions(comparison))


def conclusions(comparison: Comparison) -> list[RenderableType]:
    """The conditions that hold, or cannot be told."""
    return [
        *(Text(f"fails: {text}", style="red") for text in comparison.failed),
        *(Text(f"cannot be told: {text}", style="yellow") for text in comparison.untold),
    ]


def _parts(comparison: Comparison) -> Iterator[RenderableType]:
    letters = {run: chr(ord("A") + n % 26) for n, run in enumerate(comparison.runs)}
    for run, letter in letters.items():
        yield Text(f"{letter}  {run}", style="dim")
    for difference in comparison.differences:
        yield Text(f"differs: {difference}", style="yellow")
    for pair in comparison.pairs:
        apart = letters if len(comparison.runs) > 1 else {}
        yield Text()
        yield Text(
            f"{short(pair.candidate.variant)} against {short(pair.baseline.variant)}, ", "bold"
        ).append(f"{pair.journal}{_which(pair, apart)}")
        yield _table(pair, apart)
        for because in dict.fromkeys(figure.because for figure in pair.figures if figure.because):
            names = ", ".join(figure.name for figure in pair.figures if figure.because == because)
            yield Text(f"unknown: {names}: {because}", "yellow")
        yield Text(f"95 % intervals from {_RESTS_ON[pair.resampled].format(f'{pair.samples:,}')}", "dim")
    if comparison.failed or comparison.untold:
        yield Text()


def _which(pair: Pair, letters: dict[str, str]) -> str:
    return f": {letters[pair.candidate.run]} against {letters[pair.baseline.run]}" if letters else ""


def _table(pair: Pair, letters: dict[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for side in (pair.baseline, pair.candidate):
        table.add_column(_head(side, letters), justify="right", no_wrap=True, max_width=14)
    for name in ("ratio", "interval"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    verdicts = [Text(side.verdict, COLOURS[side.verdict]) for side in (pair.baseline, pair.candidate)]
    table.add_row("verdict", *verdicts)
    table.add_row("refused", *(f"{side.refused:.0%}" for side in (pair.baseline, pair.candidate)))
    for figure in pair.figures:
        table.add_row(
            figure.name,
            _value(figure, figure.baseline),
            _value(figure, figure.candidate),
            "-" if figure.ratio is None else f"{figure.ratio:.2f}x",
            "-" if figure.low is None else f"{figure.low:.2f} to {figure.high:.2f}",
            _finding(figure),
        )
    return table


def _head(side: Side, letters: dict[str, str]) -> str:
    return letters[side.run] if letters else side.variant.rpartition(":")[2]


def _value(figure: Figure, value: float) -> str:
    return f"{value:,.0f}/s" if figure.name == "throughput" else duration(value)


def _finding(figure: Figure) -> Text:
    style = {"faster": "green", "not significant": "dim", "unknown": "yellow"}.get(figure.finding, "red")
    return Text(figure.finding, style)
