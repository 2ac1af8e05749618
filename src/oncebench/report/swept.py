"""A sweep on the terminal: a table and heat maps for each receiver, and its best setting that is sound."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from oncebench.report.terminal import COLOURS
from oncebench.report.texts import duration, short
from oncebench.results.schema import Tallies
from oncebench.results.swept import Cell, Place, SweepRun, Swept, left

_COLD, _HOT = (24, 44, 82), (250, 204, 80)
"""Of the heat map, as red, green and blue."""


def render(run: SweepRun) -> RenderableType:
    """Everything that `oncebench sweep` and `show` print."""
    return Group(*_parts(run), conclusions(run))


def conclusions(run: SweepRun) -> RenderableType:
    """For each receiver its verdict, its best setting that is sound, and how to look closer at that."""
    parts: list[RenderableType] = []
    for swept in run.variants:
        line = Text(f"{short(swept.name)}: ").append(swept.verdict, f"bold {COLOURS[swept.verdict]}")
        declared = swept.expected_verdict
        line.append(" as declared" if swept.verdict == declared else f", declared {declared}")
        parts += [line, *_best(run, swept)]
    return Group(*parts)


def _best(run: SweepRun, swept: Swept) -> Iterator[Text]:
    mine = [cell.race.verdict for cell in run.cells if cell.place.receiver == swept.name]
    if swept.best is None:
        yield Text(f"  no setting was sound among {len(mine)}", "yellow")
        return
    if broken := mine.count("broken"):
        yield Text(f"  broken in {broken} of {len(mine)} cells: that others were not may be luck", "red")
    race = next(cell.race for cell in run.cells if cell.place == swept.best)
    place = swept.best
    yield Text(
        f"  best that is sound: {place.workers} workers, {_setting(place)}\n"
        f"    {race.throughput:,.0f}/s, p99 {duration(race.latency.p99)}, {_refused(race.tallies)} refused",
        "green",
    )
    words = ["oncebench", "run", place.receiver, "--workers", str(place.workers), "--journal", place.journal]
    words += ["--synchronous", place.synchronous, "--busy-timeout", f"{place.busy_timeout:g}"]
    yield Text(f"    closer: {shlex.join([*words, '--repeat', '5'])}", "dim")


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
        cells = [cell for cell in run.cells if cell.place.receiver == name]
        if not cells:
            continue
        yield Text()
        yield Text(short(name), "bold")
        yield _table(cells)
        for journal in run.grid.journal:
            here = {cell.place: cell for cell in cells if cell.place.journal == journal}
            if here:
                yield Text()
                yield Text(
                    f"completions a second, {journal}: workers down, synchronous and busy timeout across"
                )
                yield _map(run, name, journal, here, top)
    if 1 in run.grid.workers:
        yield Text("\nOne worker races nothing, so its cells are unknown (?).", "dim")
    yield Text()


def _table(cells: list[Cell]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("workers", "journal", "sync", "timeout", "verdict", "throughput", "p50", "p99", "refused"):
        left_side = head in ("journal", "sync", "verdict")
        table.add_column(head, justify="left" if left_side else "right", no_wrap=True)
    for cell in cells:
        place, race = cell.place, cell.race
        table.add_row(
            str(place.workers),
            place.journal,
            place.synchronous,
            duration(place.busy_timeout * 1e9),
            Text(race.verdict, COLOURS[race.verdict]),
            f"{race.throughput:,.0f}/s",
            duration(race.latency.p50),
            duration(race.latency.p99),
            _refused(race.tallies),
        )
    return table


def _map(run: SweepRun, name: str, journal: str, cells: dict[Place, Cell], top: float) -> Table:
    grid = run.grid
    across = [(synchronous, timeout) for synchronous in grid.synchronous for timeout in grid.busy_timeout]
    table = Table(box=None, pad_edge=False, padding=0)
    table.add_column("", justify="right", no_wrap=True)
    for synchronous, timeout in across:
        table.add_column(
            f"{synchronous}\n{duration(timeout * 1e9)}", justify="right", no_wrap=True, min_width=10
        )
    for workers in grid.workers:
        found = [cells.get(Place(name, workers, journal, *setting)) for setting in across]
        table.add_row(str(workers), *(_heat(cell, top) for cell in found))
    return table


def _heat(cell: Cell | None, top: float) -> Text:
    """A figure on its colour; who is broken has no figure, whoever is unknown a question mark."""
    if cell is None:
        return Text("- ", "dim")
    if cell.race.verdict == "broken":
        return Text("broken ", f"bold {COLOURS['broken']}")
    share = math.sqrt(cell.race.throughput / top) if top > 0 else 0.0
    red, green, blue = (round(cold + (hot - cold) * share) for cold, hot in zip(_COLD, _HOT, strict=True))
    style = Style(color="black" if share > 0.5 else "white", bgcolor=f"rgb({red},{green},{blue})")
    mark = "?" if cell.race.verdict == "unknown" else " "
    return Text(f"{cell.race.throughput:9,.0f}{mark}", style)


def _refused(tallies: Tallies) -> str:
    calls = tallies.deliveries + tallies.retries
    return f"{sum(tallies.locked.values()) / calls:.0%}" if calls else "-"


def _setting(place: Place) -> str:
    return (
        f"{place.journal}, synchronous {place.synchronous}, busy timeout {duration(place.busy_timeout * 1e9)}"
    )
