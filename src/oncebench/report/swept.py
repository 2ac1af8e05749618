"""A sweep on the terminal: a table and heat maps for each receiver, and its best setting that is sound."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from oncebench.report.texts import COLOURS, as_declared, duration, short
from oncebench.results.summary import refused
from oncebench.results.swept import Cell, Place, SweepRun, Swept, left

_COLD, _HOT = (24, 44, 82), (250, 204, 80)
"""Of the heat map, as red, green and blue."""
_STYLES = {"no": "yellow", "broken": "red"}


def render(run: SweepRun) -> RenderableType:
    """Everything that `oncebench sweep` and `show` print."""
    return Group(*_parts(run), conclusions(run))


def conclusions(run: SweepRun) -> RenderableType:
    """For each receiver its verdict, its best setting that is sound, and how to look closer at that."""
    parts: list[RenderableType] = []
    for swept in run.variants:
        line = Text(f"{short(swept.name)}: ").append(swept.verdict, f"bold {COLOURS[swept.verdict]}")
        line.append(as_declared(swept.verdict, swept.expected_verdict))
        parts += [
            line,
            *(Text(f"  {text}", _STYLES.get(text.split()[0], "green")) for text in best(run, swept)),
        ]
        if swept.best is not None:
            parts.append(Text(f"    closer: {_closer(swept.best)}", "dim"))
    return Group(*parts)


def best(run: SweepRun, swept: Swept) -> list[str]:
    """Where the receiver was broken, and its best setting that is sound, in words."""
    mine = [cell.race.verdict for cell in run.cells if cell.place.receiver == swept.name]
    if swept.best is None:
        return [f"no setting was sound among {len(mine)}"]
    broken = mine.count("broken")
    luck = [f"broken in {broken} of {len(mine)} cells: that others were not may be luck"] if broken else []
    race = next(cell.race for cell in run.cells if cell.place == swept.best)
    return [
        *luck,
        f"best that is sound: {_setting(swept.best)}",
        f"  {race.throughput:,.0f}/s, p99 {duration(race.latency.p99)}, {refused(race.tallies):.0%} refused",
    ]


def _setting(place: Place) -> str:
    """A cell in words, without the receiver."""
    timeout = duration(place.busy_timeout * 1e9)
    return (
        f"{place.workers} workers, {place.journal}, synchronous {place.synchronous}, busy timeout {timeout}"
    )


def _closer(place: Place) -> str:
    """The command that races a cell at length."""
    words = ["oncebench", "run", place.receiver, "--workers", str(place.workers), "--journal", place.journal]
    words += ["--synchronous", place.synchronous, "--busy-timeout", f"{place.busy_timeout:g}"]
    return shlex.join([*words, "--repeat", "5"])


_CELL = ("workers", "journal", "sync", "timeout", "verdict", "throughput", "p50", "p99", "refused")


def _cells(run: SweepRun, name: str) -> Iterator[list[str]]:
    """A receiver's cells, each as the line of a table."""
    for cell in run.cells:
        place, race = cell.place, cell.race
        if place.receiver == name:
            yield [
                str(place.workers),
                place.journal,
                place.synchronous,
                duration(place.busy_timeout * 1e9),
                race.verdict,
                f"{race.throughput:,.0f}/s",
                duration(race.latency.p50),
                duration(race.latency.p99),
                f"{refused(race.tallies):.0%}",
            ]


def _across(run: SweepRun) -> list[tuple[str, float]]:
    """The columns of a heat map: synchronous, and busy timeout in seconds."""
    return [(sync, timeout) for sync in run.grid.synchronous for timeout in run.grid.busy_timeout]


def _heat(run: SweepRun, name: str, journal: str) -> Iterator[tuple[int, list[Cell | None]]]:
    """The lines of a heat map: a number of workers, and a cell for each column; None if it was not raced."""
    known = {cell.place: cell for cell in run.cells}
    for workers in run.grid.workers:
        yield workers, [known.get(Place(name, workers, journal, *column)) for column in _across(run)]


def _told(cell: Cell | None) -> str:
    """Its completions a second; who is broken has no figure, whoever is unknown a question mark."""
    if cell is None:
        return "-"
    if cell.race.verdict == "broken":
        return "broken"
    return f"{cell.race.throughput:,.0f}{'?' if cell.race.verdict == 'unknown' else ''}"


def _parts(run: SweepRun) -> Iterator[RenderableType]:
    e = run.environment
    yield Text(
        f"seed {run.seed} · {' '.join(run.workload)} · {run.ids} ids each · one short race a cell\n"
        f"SQLite {e.get('sqlite')} on {e.get('file_system')} · Python {e.get('python')} · "
        f"{e.get('cores')} cores",
        "dim",
    )
    if missing := len(left(run)):
        yield Text(f"{len(run.cells)} cells of {len(run.cells) + missing} have been raced", "yellow")
    top = max((cell.race.throughput for cell in run.cells), default=0.0)
    for name in run.grid.receivers:
        if not any(cell.place.receiver == name for cell in run.cells):
            continue
        yield Text()
        yield Text(short(name), "bold")
        yield _table(run, name)
        for journal in run.grid.journal:
            yield Text()
            yield Text(f"completions a second, {journal}: workers down, synchronous and busy timeout across")
            yield _map(run, name, journal, top)
    if 1 in run.grid.workers:
        yield Text("\nOne worker races nothing, so its cells are unknown (?).", "dim")
    yield Text()


def _table(run: SweepRun, name: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for head in _CELL:
        left_side = head in ("journal", "sync", "verdict")
        table.add_column(head, justify="left" if left_side else "right", no_wrap=True)
    for line in _cells(run, name):
        table.add_row(*(Text(text, COLOURS.get(text, "")) for text in line))
    return table


def _map(run: SweepRun, name: str, journal: str, top: float) -> Table:
    table = Table(box=None, pad_edge=False, padding=0)
    table.add_column("", justify="right", no_wrap=True)
    for synchronous, timeout in _across(run):
        head = f"{synchronous}\n{duration(timeout * 1e9)}"
        table.add_column(head, justify="right", no_wrap=True, min_width=10)
    for workers, found in _heat(run, name, journal):
        table.add_row(str(workers), *(_hot(cell, top) for cell in found))
    return table


def _hot(cell: Cell | None, top: float) -> Text:
    """A figure on its colour."""
    text = _told(cell)
    if cell is None or cell.race.verdict == "broken":
        return Text(f"{text} ", "dim" if cell is None else f"bold {COLOURS['broken']}")
    share = math.sqrt(cell.race.throughput / top) if top > 0 else 0.0
    red, green, blue = (round(cold + (hot - cold) * share) for cold, hot in zip(_COLD, _HOT, strict=True))
    style = Style(color="black" if share > 0.42 else "bright_white", bgcolor=f"rgb({red},{green},{blue})")
    return Text(f"{text if text.endswith('?') else text + ' ':>10}", style)
