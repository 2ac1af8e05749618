"""Kills on the page: the lesson's points for all receivers, then every point of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from oncebench.report import points
from oncebench.report.page.blocks import Block, Line, Page, Row, Section, Table, Verdict, of_run
from oncebench.report.page.raced import proofs, settings
from oncebench.report.terminal import tried
from oncebench.report.texts import counted
from oncebench.results.crashed import label_of
from oncebench.results.schema import Point, RunResult, VariantResult


def page(run: RunResult) -> Page:
    """All of it."""
    sections = [section(variant) for variant in run.variants]
    return of_run(
        run,
        f"Kills of {counted(len(run.variants), 'receiver')}",
        [verdict(variant) for variant in run.variants],
        [*sections, Section("The lesson's points", [_named(run)])],
        settings(run.seed, run.settings)[7:11],
    )


def verdict(variant: VariantResult) -> Verdict:
    """Word, and in a sentence what it rests on."""
    found = [f"{kind}: after {counted(count, 'kill')}" for kind, count in _counts(variant).items()]
    return Verdict(
        variant.name, variant.verdict, variant.expected_verdict, [*found, f"tried {tried(variant)}"]
    )


def section(variant: VariantResult, title: str = "") -> Section:
    """All points of one receiver, and the proofs."""
    reasons = dict.fromkeys([*variant.because, *variant.notes])
    for point in variant.points:
        reasons.update(dict.fromkeys(f"{label_of(point)}: {why}" for why in point.because))
    blocks: list[Block] = [*(Line(reason, "reason") for reason in reasons), _all(variant), *proofs(variant)]
    return Section(title or variant.name, blocks, verdict=variant.verdict)


def _counts(variant: VariantResult) -> Counter[str]:
    return Counter(kind for point in variant.points for kind in point.violations)


def _all(variant: VariantResult) -> Table:
    lines = []
    for alike, only in points.grouped(variant):
        first = alike[0]
        names = "".join(f", {name}" for name in first.names)
        said = f"; it had answered {points.told(first.answered)}" if first.answered else ""
        cells = [
            f"{label_of(first)}{names}{f' ({only})' if only else ''}{said}",
            _figures(first.rows, first.total),
            points.told(first.redelivered),
            points.told(first.conflicting),
            _figures(first.rows_at_end, first.total_at_end),
            first.verdict,
        ]
        lines.append(Row(cells, role="verdict"))
    head = ["killed", "rows, total", "then 7/7", "then 7/8", "rows, total at the end", "verdict"]
    return Table(f"{variant.name}: killed at each point, then redelivered", head, lines)


def _named(run: RunResult) -> Table:
    head = ["receiver", *(heading.replace("\n", " ") for heading in points.NAMED.values())]
    return Table(points.KEY.replace("\n", " "), head, list(_lines(run)), numbers=False)


def _lines(run: RunResult) -> Iterator[Row]:
    for variant in run.variants:
        for journal in run.settings.journal:
            cells = [_cell(points.find(variant, journal, name)) for name in points.NAMED]
            yield Row([f"{variant.name}, {journal}", *cells])


def _cell(point: Point | None) -> str:
    if point is None:
        return "-"
    told, end = (
        points.told(point.redelivered),
        points.figures(point.rows_at_end, point.total_at_end).split()[1],
    )
    return f"{_figures(point.rows, point.total)}; {told}; {end}: {point.verdict}"


def _figures(rows: int | None, total: int | None) -> str:
    return points.figures(rows, total).replace(" ", ", ")
