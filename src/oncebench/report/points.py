"""Kills on the terminal: the lesson's points for all receivers, then every point of each."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from oncebench.report.texts import COLOURS
from oncebench.results.crashed import label_of
from oncebench.results.schema import Point, RunResult, VariantResult

_SAYS = {"applied": "True", "duplicate": "False", "conflict": "Conflict"}
KEY = "Rows and total after the kill; what 7/7 was told then (True, False, Conflict);\nthe total at the end."
NAMED = {
    "after inbox insert": "after inbox\ninsert",
    "after total update": "after total\nupdate",
    "before commit": "before\ncommit",
    "after commit before ACK": "after commit\nbefore ACK",
    "after the ACK": "after\nthe ACK",
}


def tables(result: RunResult) -> RenderableType:
    """One table of the points that have names, a line each receiver; then one for each, with all points."""
    parts: list[RenderableType] = [Text(), _named(result), Text(KEY, style="dim")]
    for variant in result.variants:
        parts += [Text(), Text(variant.name, style="bold"), _all(variant)]
        parts += _found(variant)
    return Group(*parts)


def _named(result: RunResult) -> Table:
    """After SIGKILL: inbox rows and total, what the redelivery was told, the total at the end."""
    table = _table("killed")
    for heading in NAMED.values():
        table.add_column(heading, no_wrap=True)
    for variant in result.variants:
        lines = {
            journal: [_cell(find(variant, journal, name)) for name in NAMED]
            for journal in result.settings.journal
        }
        if len({tuple(line) for line in lines.values()}) == 1:
            lines = {"": next(iter(lines.values()))}
        for journal, line in lines.items():
            table.add_row(
                f"{variant.name} {journal}".rstrip(), *(Text(text, style=colour) for text, colour in line)
            )
    return table


def find(variant: VariantResult, journal: str, name: str) -> Point | None:
    """The kill that the lesson calls so, by SIGKILL and of a first delivery."""
    for point in variant.points:
        first = point.journal == journal and point.delivery == "first" and point.signal == "SIGKILL"
        if first and (name in point.names or name == label_of(point)):
            return point
    return None


def _cell(point: Point | None) -> tuple[str, str]:
    if point is None:
        return "-", "dim"
    answer = told(point.redelivered)
    letter = answer[0] if answer in _SAYS.values() else answer
    end = _number(point.total_at_end)
    return f"{figures(point.rows, point.total)} {letter} {end}", COLOURS[point.verdict]


def _all(variant: VariantResult) -> Table:
    """Each point a line; where all signals and journal modes say the same, they are not named."""
    table = _table("killed")
    for heading in ("rows\ntotal", "then\n7/7", "then\n7/8", "rows\ntotal"):
        table.add_column(heading, no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for points, only in grouped(variant):
        first = points[0]
        label = Text(label_of(first) + (f" ({only})" if only else ""))
        for name in first.names:
            label.append(f"\n  {name}", style="dim")
        if first.answered:
            label.append(f"\n  it had answered {told(first.answered)}", style="dim")
        table.add_row(
            label,
            figures(first.rows, first.total),
            told(first.redelivered),
            told(first.conflicting),
            figures(first.rows_at_end, first.total_at_end),
            Text(first.verdict, style=COLOURS[first.verdict]),
        )
    return table


def _found(variant: VariantResult) -> Iterator[Text]:
    """What was wrong after how many kills, and what a reader must know."""
    counts: dict[str, int] = {}
    reasons = dict.fromkeys([*variant.because, *variant.notes])
    for point in variant.points:
        for kind in point.violations:
            counts[kind] = counts.get(kind, 0) + 1
        reasons.update(dict.fromkeys(f"{label_of(point)}: {why}" for why in point.because))
    for kind, count in counts.items():
        yield Text(f"found {kind}: after {count} of {len(variant.points)} kills", style="red")
    for reason in reasons:
        yield Text(reason, style="yellow")


def grouped(variant: VariantResult) -> Iterator[tuple[list[Point], str]]:
    """Points of one place that say the same, and in which cases, if others of that place say otherwise."""
    places: dict[tuple[object, ...], list[Point]] = {}
    for point in variant.points:
        place = (point.delivery, point.process, point.place, point.number, point.statement)
        places.setdefault(place, []).append(point)
    for points in places.values():
        groups: dict[str, list[Point]] = {}
        for point in points:
            groups.setdefault(repr(_outcome(point)), []).append(point)
        for group in groups.values():
            cases = dict.fromkeys(f"{each.signal} {each.journal}" for each in group)
            yield group, ", ".join(cases) if len(groups) > 1 else ""


def _outcome(point: Point) -> tuple[object, ...]:
    return (
        point.names, point.answered, point.rows, point.total, point.redelivered, point.conflicting,
        point.rows_at_end, point.total_at_end, point.verdict, point.because, point.violations,
    )  # fmt: skip


def _table(title: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(title, no_wrap=True)
    return table


def figures(rows: int | None, total: int | None) -> str:
    """Inbox rows and total, as far as they could be read."""
    return f"{_number(rows)} {_number(total)}"


def _number(figure: int | None) -> str:
    return "?" if figure is None else str(figure)


def told(outcome: str) -> str:
    """An answer in the words of the contract."""
    return _SAYS.get(outcome, outcome or "nothing")
