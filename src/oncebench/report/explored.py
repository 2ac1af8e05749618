"""An exploration on the terminal: what was covered, what is wrong, the smallest schedule of each kind."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from oncebench.report.texts import COLOURS, answer, as_declared, short
from oncebench.results.explored import ExplorePart, ExploreRun, ExploreVariant


def render(run: ExploreRun) -> Text:
    """All that `oncebench explore` and `show` print."""
    told = [told_in_full(variant) for variant in run.variants]
    return Text("\n").join([*told, Text(f"again: {run.command}", style="dim")])


def verdicts(run: ExploreRun) -> Text:
    """A line for each receiver, and why it is unknown."""
    return Text("\n").join([verdict(variant) for variant in run.variants])


def told_in_full(variant: ExploreVariant) -> Text:
    """One receiver: each part, each kind of violation, the verdict."""
    lines = [Text(line, style=style) for line, style in _lines(variant)]
    return Text("\n").join([*lines, verdict(variant)])


def verdict(variant: ExploreVariant) -> Text:
    """One line: who, one word, how much was covered; and why, if the word is unknown."""
    text = Text()
    text.append(f"{variant.name}: ", style="bold")
    text.append(variant.verdict, style=f"bold {COLOURS[variant.verdict]}")
    text.append(as_declared(variant.verdict, variant.expected_verdict))
    text.append(f" · {variant.covered}")
    for reason in variant.because:
        text.append(f"\n  unknown, because {reason}", style="yellow")
    for what in variant.unexplored:
        text.append(f"\n  not explored: {what}", style="yellow")
    return text


def _lines(variant: ExploreVariant) -> Iterator[tuple[str, str]]:
    for part in variant.parts:
        yield _summary(part), COLOURS[part.verdict] if part.kinds else ""
        for code, count in part.locked.items():
            yield f"    lock error {code}: {count:,}", "dim"
        for note in part.notes:
            yield f"    {note}", "dim"
        if part.deadlocks:
            yield f"    deadlock, until a busy timeout passes: in {part.deadlocks:,} schedules", "yellow"
    for violation in variant.violations:
        yield f"{violation.kind}: {violation.message}", "red"
        yield f"    smallest: {violation.schedule} ({violation.size})", ""
        for operation in violation.operations:
            who = chr(ord("A") + operation.worker)
            yield f"    {who}: {short(operation.id)}, {answer(operation)}", ""
        yield f"    {violation.replay}", "bold"


def _summary(part: ExplorePart) -> str:
    schedules = part.schedules
    if schedules.total is None:
        many = f"{schedules.run:,} schedules"
    else:
        many = f"{schedules.total:,} of {schedules.total:,} schedules"
        if part.bound is not None:
            many += f" with at most {part.bound} preemptions"
    broken = f", {schedules.broken:,} broken" if schedules.broken else ""
    what = part.scenario or part.deliveries
    on = f", on {part.on}" if part.on != "greenlets" else ""
    return f"{part.journal}, locks {part.locks}, {what}{on}: {part.verdict}, {many}{broken}"
