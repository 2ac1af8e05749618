"""Runs as a Markdown table for a pull request, and as CSV with plain figures."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence

from oncebench.report.page.blocks import Page, Table
from oncebench.report.texts import printable
from oncebench.results.checked import CheckRun
from oncebench.results.explored import ExploreRun
from oncebench.results.forms import AnyRun
from oncebench.results.schema import Effects, RaceResult, Tallies
from oncebench.results.swept import SweepRun
from oncebench.results.wired import WireRun

_TALLIES = ("deliveries", "applied", "duplicate", "conflict")
_FAILED = ("error", "indeterminate", "retried", "retries", "unanswered")
_FIGURES = ("p50", "p90", "p99", "max")
COLUMNS = (
    "kind", "mode", "receiver", "workers", "journal", "synchronous", "busy_timeout", "verdict", "declared",
    *_TALLIES, "locked", *_FAILED, "effects_expected", "effects_observed", "overlapped_ids", "throughput",
    *(f"completion_{figure}_ns" for figure in _FIGURES), *(f"lock_{figure}_ns" for figure in _FIGURES),
)  # fmt: skip
"""Of the CSV; a figure that a kind of run does not have is empty."""

_Line = dict[str, object]


def markdown(pages: Sequence[Page]) -> str:
    """Verdicts, and the tables that come first for each receiver."""
    lines: list[str] = []
    for page in pages:
        lines += [f"**{_cell(page.heading)}**", ""]
        lines += ["| receiver | verdict | declared | |", "| --- | --- | --- | --- |"]
        for verdict in page.verdicts:
            says = _cell("; ".join(verdict.says))
            lines.append(
                f"| {_cell(verdict.name)} | **{_cell(verdict.word)}** | {_cell(verdict.declared)} | {says} |"
            )
        for section in page.sections:
            table = next((block for block in section.blocks if isinstance(block, Table)), None)
            if table is not None:
                lines += ["", *_table(table)]
        lines += ["", f"Again: `{printable(page.command).replace('`', '')}`", ""]
    return "\n".join(lines)


def _table(table: Table) -> Iterator[str]:
    yield f"<details><summary>{_cell(table.caption)}</summary>"
    yield ""
    yield f"| {' | '.join(map(_cell, table.head))} |"
    yield f"| --- {'| ---: ' if table.numbers else '| --- '}".replace("  ", " ") + (
        ("| ---: " if table.numbers else "| --- ") * (len(table.head) - 2) + "|"
    )
    for row in table.rows:
        cells = [_cell(cell) for cell in row.cells]
        if row.role == "part":
            cells = [f"**{cells[0]}**", *[""] * (len(table.head) - 1)]
        yield f"| {'&emsp;' if row.indented else ''}{' | '.join(cells)} |"
    yield ""
    yield "</details>"


def _cell(text: str) -> str:
    """Text that Markdown takes as it is."""
    return (
        re.sub(r"([\\`*_{}\[\]<>#|@~&])", r"\\\1", printable(text))
        .replace("\\<", "&lt;")
        .replace("\\>", "&gt;")
    )


def comma_separated(runs: Sequence[AnyRun]) -> str:
    """A line for each race, campaign, exploration or cell; durations in nanoseconds, lock errors summed."""
    written = io.StringIO()
    writer = csv.DictWriter(written, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for run in runs:
        for line in _lines(run):
            writer.writerow({key: _safe(value) for key, value in line.items()})
    return written.getvalue()


def _safe(value: object) -> object:
    """A text that a spreadsheet would take for a formula is marked as text."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _lines(run: AnyRun, mode: str = "") -> Iterator[_Line]:
    known: _Line = {"kind": run.kind, "mode": mode}
    match run:
        case CheckRun():
            for name, result in run.results():
                yield from ({**line, "kind": "check"} for line in _lines(result, name))
        case SweepRun():
            for cell in run.cells:
                place = cell.place
                setting: _Line = {
                    "receiver": place.receiver,
                    "declared": run.expected.get(place.receiver, ""),
                }
                for name in ("workers", "synchronous", "busy_timeout"):
                    setting[name] = getattr(place, name)
                yield {**known, **setting, **_race(cell.race)}
        case ExploreRun() | WireRun():
            for variant in run.variants:
                whole = _counted(variant.tallies, variant.effects, variant.overlapped_ids)
                yield {**known, **_named(variant.name, variant.verdict, variant.expected_verdict), **whole}
        case _:
            for one in run.variants:
                named = _named(one.name, one.verdict, one.expected_verdict)
                for name in ("workers", "synchronous", "busy_timeout"):
                    named[name] = getattr(run.settings, name)
                for race in one.races:
                    yield {**known, **named, **_race(race)}
                if not one.races:
                    yield {**known, **named, **_counted(one.tallies, one.effects, one.overlapped_ids)}


def _named(name: str, verdict: str, declared: str) -> _Line:
    return {"receiver": name, "verdict": verdict, "declared": declared}


def _race(race: RaceResult) -> _Line:
    line = _counted(race.tallies, race.effects, race.overlapped_ids)
    line |= {"journal": race.journal, "verdict": race.verdict, "throughput": round(race.throughput, 1)}
    for word, latency in (("completion", race.latency), ("lock", race.lock_latency)):
        if latency.count:
            line |= {f"{word}_{figure}_ns": getattr(latency, figure) for figure in _FIGURES}
    return line


def _counted(tallies: Tallies, effects: Effects, overlapped: int) -> _Line:
    line: _Line = {name: getattr(tallies, name) for name in (*_TALLIES, *_FAILED)}
    line["locked"] = sum(tallies.locked.values())
    line["effects_expected"], line["effects_observed"] = effects.expected, effects.observed
    line["overlapped_ids"] = overlapped
    return line
