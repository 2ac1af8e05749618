"""A check on the terminal: the verdict, a line for each mode, each kind of violation with its replay."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from oncebench.report.terminal import smallest_proof
from oncebench.report.texts import COLOURS, MEANS, answer, as_declared, duration, short
from oncebench.results.checked import CheckRun, Found

_MOST_REASONS = 4
NEVER_TRIED = "power loss, network file systems, more than two workers statement by statement"


def render(run: CheckRun) -> RenderableType:
    """The page that `oncebench check` prints."""
    e = run.environment
    more = len(run.because) - _MOST_REASONS
    parts: list[RenderableType] = [
        verdict(run),
        Text(f"{MEANS[run.verdict]}", style="dim"),
        *(Text(f"unknown, because {reason}", style="yellow") for reason in run.because[:_MOST_REASONS]),
        *([Text(f"and {more} more reasons", style="yellow")] if more > 0 else []),
        Text(),
        _modes(run),
        *(Text(note, style="yellow") for note in _notes(run)),
    ]
    for n, found in enumerate(run.found):
        parts += [Text(), *_found(found, whole=n == 0)]
    parts += [Text(), *(Text(f"not tried: {what}", style="yellow") for what in run.untried)]
    parts.append(Text(f"never tried: {NEVER_TRIED}", style="dim"))
    where = f"SQLite {e.get('sqlite')} on {e.get('file_system')} · Python {e.get('python')}"
    parts += [Text(f"{where} · {e.get('cores')} cores", style="dim")]
    parts.append(Text(f"again: {run.command}", style="dim"))
    return Group(*parts)


def verdict(run: CheckRun) -> Text:
    """One line: who, and one word."""
    line = Text(f"{run.target}: ", style="bold")
    line.append(run.verdict, style=f"bold {COLOURS[run.verdict]}")
    return line.append(as_declared(run.verdict, run.expected_verdict), style="not bold")


def _modes(run: CheckRun) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("mode", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("tried")
    for mode in run.modes:
        verdict = Text(mode.verdict, style=COLOURS[mode.verdict])
        table.add_row(mode.name, verdict, duration(mode.seconds * 1e9), mode.tried)
    return table


def _notes(run: CheckRun) -> Iterator[str]:
    """What else the races say of the receiver; that extremes leave no room is as planned."""
    places: dict[str, list[str]] = {}
    for mode, result in run.results():
        for race in (race for variant in result.variants for race in variant.races if mode != "extremes"):
            for note in race.notes:
                if note not in race.because:
                    places.setdefault(note, []).append(f"{mode} in {race.journal} mode")
    return (f"{', '.join(where)}: {note}" for note, where in places.items())


def _found(found: Found, whole: bool) -> Iterator[RenderableType]:
    """What is wrong, who found it, and the one command that shows it; the first with its operations."""
    yield Text.assemble((found.kind, "bold red"), (f"  found by {', '.join(found.modes)}", "dim"))
    proof = found.proof
    if whole and not proof.schedule:
        yield Padding(Group(*smallest_proof(proof)), (0, 0, 0, 2))
    else:
        yield Text(f"  {short(proof.id)}: {proof.message}" if proof.id else f"  {proof.message}")
    if whole and proof.schedule:  # its times are steps, and the replay draws them
        yield from (Text(f"  {'ABCDEFGH'[op.worker]}  {answer(op)}") for op in proof.operations)
    yield Text(f"  {found.replay}", style="bold")
