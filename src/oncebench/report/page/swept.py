"""A sweep on the page: the best setting that is sound, throughput against workers, every cell."""

from __future__ import annotations

from oncebench.report import charts
from oncebench.report.page.blocks import Block, Line, Page, Row, Section, Table, Verdict, drawn, of_run
from oncebench.report.page.raced import smallest_first
from oncebench.report.swept import best
from oncebench.report.texts import duration
from oncebench.results.swept import Cell, Place, SweepRun, Swept


def page(run: SweepRun) -> Page:
    """All of it."""
    grid = run.grid
    return of_run(
        run,
        f"Sweep of {len(run.cells):,} cells",
        [_verdict(run, swept) for swept in run.variants],
        [_section(run, swept) for swept in run.variants],
        [
            ("seed", str(run.seed)),
            ("workers", ", ".join(map(str, grid.workers))),
            ("journal modes", ", ".join(grid.journal)),
            ("synchronous", ", ".join(grid.synchronous)),
            ("busy timeout", ", ".join(duration(timeout * 1e9) for timeout in grid.busy_timeout)),
            ("workload", ", ".join(run.workload)),
            ("ids in each part", f"{run.ids:,}"),
        ],
    )


def _verdict(run: SweepRun, swept: Swept) -> Verdict:
    mine = _cells(run, swept)
    words = [cell.race.verdict for cell in mine]
    counts = ", ".join(
        f"{words.count(word)} {word}" for word in ("broken", "unknown", "sound") if word in words
    )
    says = [*best(run, swept), f"cells: {counts}"]
    return Verdict(swept.name, swept.verdict, swept.expected_verdict, says)


def _section(run: SweepRun, swept: Swept) -> Section:
    mine = _cells(run, swept)
    blocks: list[Block] = []
    one = SweepRun(**{**{name: getattr(run, name) for name in run.__struct_fields__}, "cells": mine})
    data = list(charts.throughput([one]))
    if data:
        blocks.append(drawn("Throughput against workers", data))
    lines = [
        Row(
            [
                _named(cell.place),
                f"{cell.race.throughput:,.0f}/s",
                duration(cell.race.latency.p50),
                duration(cell.race.latency.p99),
                f"{sum(cell.race.tallies.locked.values()):,} of {cell.race.tallies.deliveries:,}",
                cell.race.verdict,
            ],
            role="verdict",
        )
        for cell in mine
    ]
    head = ["setting", "completions", "p50", "p99", "lock errors, of deliveries", "verdict"]
    blocks.append(Table(f"{swept.name}: every cell", head, lines))
    blocks += smallest_first([proof for cell in mine for proof in cell.race.violations], {})
    if not mine:
        blocks.append(Line("no cell has been raced yet", "reason"))
    return Section(swept.name, blocks, verdict=swept.verdict)


def _cells(run: SweepRun, swept: Swept) -> list[Cell]:
    return [cell for cell in run.cells if cell.place.receiver == swept.name]


def _named(place: Place) -> str:
    waits = duration(place.busy_timeout * 1e9)
    return f"{place.workers} workers, {place.journal}, {place.synchronous}, busy timeout {waits}"
