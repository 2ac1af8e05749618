"""A wire campaign on the terminal: requests, deliveries and effects apart, who died, what is not once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from oncebench.report.terminal import smallest_proof
from oncebench.report.texts import COLOURS, as_declared, counted, duration
from oncebench.results.wired import Reckoning, Retention, WireRun, WireVariant

_MOST_LINES = 5
_MOST_COLUMNS = 3  # that go beside their labels in 80 columns


def render(run: WireRun) -> RenderableType:
    """Everything that `oncebench wire` prints."""
    parts: list[RenderableType] = [_heading(run)]
    for first in range(0, len(run.variants), _MOST_COLUMNS):
        parts += [Text(), _table(run.variants[first : first + _MOST_COLUMNS])]
    parts.append(Text())
    for variant in run.variants:
        parts += list(_evidence(variant))
        if variant.retention is not None:
            parts += [Text(), *_retention(variant.name, variant.retention)]
    return Group(*parts, Text(), verdicts(run))


def verdicts(run: WireRun) -> RenderableType:
    """A line for each variant, and the command that runs it again."""
    lines = [_verdict(variant) for variant in run.variants]
    return Group(*lines, Text(f"again: {run.command}", style="dim"))


def surprises(run: WireRun) -> RenderableType:
    """The evidence for each verdict that is not the declared one."""
    return Group(*(line for v in run.variants if v.verdict != v.expected_verdict for line in _evidence(v)))


def _heading(run: WireRun) -> Text:
    s, e = run.settings, run.environment
    what = (
        f"{s.messages} ids · {s.faults} faults · {s.kills} kills · {s.servers} servers of {s.connections} "
        "connections"
        if s.retain is None
        else f"a store that remembers {s.retain}, {2 * s.retain + 1} messages, then late redeliveries"
    )
    return Text(
        f"seed {run.seed} · {what} · 127.0.0.1 only\n"
        f"{s.journal} · synchronous {s.synchronous} · busy timeout {duration(s.busy_timeout * 1e9)} · "
        f"publisher waits {duration(s.timeout * 1e9)} for an answer\n"
        f"SQLite {e.get('sqlite')} on {e.get('file_system')} · Python {e.get('python')} · "
        f"{e.get('cores')} cores",
        style="dim",
    )


def _table(variants: list[WireVariant]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for variant in variants:
        table.add_column(Text(variant.name, style="bold"), justify="right", no_wrap=True)
    for label, cells in rows(variants):
        table.add_row(label, *cells)
    table.add_row(
        Text("verdict", style="bold"),
        *(Text(v.verdict, style=f"bold {COLOURS[v.verdict]}") for v in variants),
    )
    return table


def rows(variants: Sequence[WireVariant]) -> Iterator[tuple[str, list[str]]]:
    """What was counted: a label, indented if it is part of the line above, and a cell for each variant."""

    def line(label: str, figure: Callable[[WireVariant], object]) -> tuple[str, list[str]]:
        return label, [str(figure(variant)) for variant in variants]

    yield line("requests sent", lambda v: v.requests)
    yield line("calls of the receiver", lambda v: v.tallies.deliveries)
    for name in ("applied", "duplicate", "conflict"):
        yield line(f"  completed: {name}", lambda v, n=name: getattr(v.tallies, n))  # type: ignore[misc]
    for code in sorted({code for v in variants for code in v.tallies.locked} or {""}):
        label = f"  lock error {code}" if code else "  lock errors"
        yield line(label, lambda v, c=code: v.tallies.locked.get(c, 0))  # type: ignore[misc]
    yield line("  errors", lambda v: v.tallies.error)
    yield line("  indeterminate", lambda v: v.tallies.indeterminate)
    yield line("effects on the total", lambda v: v.effects.observed)
    yield line("  expected by the inbox", lambda v: v.effects.expected)
    yield line("effects witnessed", lambda v: "-" if v.effects.witnessed is None else v.effects.witnessed)
    yield line("  ids that came in", lambda v: v.effects.ids)
    yield line("ids called more than once", lambda v: v.redelivered_ids)
    yield line("  two calls at once", lambda v: v.overlapped_ids)
    yield line("ids without exactly one effect", lambda v: len(v.not_once))
    for state in ("done", "conflict", "pending"):
        yield line(f"outbox {state}", lambda v, s=state: v.outbox.get(s, 0))  # type: ignore[misc]
    yield line("processes killed", lambda v: sum(bool(dead.point) for dead in v.deaths))
    yield line("  longest until the next proof", _longest)


def _longest(variant: WireVariant) -> str:
    times = [dead.recovery for dead in variant.deaths if dead.recovery is not None]
    return duration(max(times)) if times else "-"


def _evidence(variant: WireVariant) -> Iterator[RenderableType]:
    name = variant.name
    for reason in variant.because:
        yield Text(f"{name}: unknown, because {reason}", style="yellow")
    for note in variant.notes:
        if note not in variant.because:
            yield Text(f"{name}: {note}", style="yellow")
    for kind, failure in variant.tallies.errors.items():
        yield Text(f"{name}: {failure.count:,} x {kind}", style="dim")
    for kind, count in variant.violation_counts.items():
        yield Text(f"{name}: found {kind}: {counted(count, 'id')}", style="red")
    for proof in variant.violations[:1]:
        yield from smallest_proof(proof)
        if any(op.worker == 0 for op in proof.operations):
            yield Text("  worker 0 is what the publisher believes of its outbox row", style="dim")
    for one in variant.not_once[:_MOST_LINES]:
        yield Text(f"{name}: {reckoned(one)}")
    if len(variant.not_once) > _MOST_LINES:
        yield Text(f"{name}: and {len(variant.not_once) - _MOST_LINES} more")
    if not variant.not_once and variant.busiest:
        yield Text(f"{name}: {reckoned(variant.busiest[0])}, the most of any", style="dim")


def reckoned(one: Reckoning) -> str:
    """What was asked for one id, what reached the receiver, what was done."""
    return (
        f"{one.id} had {counted(one.requests, 'request')}, {counted(one.deliveries, 'call')}, "
        f"{counted(one.effects, 'effect')}"
    )


def _retention(name: str, found: Retention) -> Iterator[RenderableType]:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in (f"{name}: newer messages", *LATE[1:]):
        table.add_column(heading, justify="right", no_wrap=True)
    for lag, *cells in late(found):
        late_effects = (
            Text(cell, style="red" if n % 2 and cell not in "1-" else "") for n, cell in enumerate(cells)
        )
        table.add_row(lag, *late_effects)
    yield table
    yield Text(f"{name}: {remembered(found)}")


LATE = ("newer messages", "over HTTP", "effects", "in process", "effects")
"""Headings of what `late` gives."""


def late(found: Retention) -> Iterator[list[str]]:
    """Late redeliveries: after how many newer messages, then answer and effects in each way."""
    by_lag: dict[int, dict[str, tuple[str, int]]] = {}
    for one in found.late:
        by_lag.setdefault(one.lag, {})[one.way] = (one.answer, one.effects)
    for lag, ways in by_lag.items():
        yield [str(lag), *(str(cell) for way in ("http", "in process") for cell in ways.get(way, ("-", "-")))]


def remembered(found: Retention) -> str:
    """Whether the store remembers for long enough."""
    if all(one.effects == 1 and one.answer in ("200", "False") for one in found.late):
        return "forgot none of them"
    verdict = "enough" if found.keep >= found.needed else "not enough"
    return (
        f"a publisher that tries one message for up to {duration(found.longest_retry * 1e9)}, at "
        f"{found.rate:,.0f} messages/s, needs the last {found.needed:,}; {found.keep:,} are {verdict}"
    )


def _verdict(variant: WireVariant) -> Text:
    line = Text(f"{variant.name}: ")
    line.append(variant.verdict, style=f"bold {COLOURS[variant.verdict]}")
    line.append(against_declared(variant))
    return line.append(f" · tried: {tried(variant)}")


def against_declared(variant: WireVariant) -> str:
    """Whether the verdict is the declared one, and whether it must be."""
    verdict, declared = variant.verdict, variant.expected_verdict
    if verdict == declared or variant.must_show or verdict == "unknown":
        return as_declared(verdict, declared)
    return f" in this campaign, which need not show why it is declared {variant.expected_verdict}"


def tried(variant: WireVariant) -> str:
    """What the verdict rests on, in figures."""
    deaths = sum(bool(dead.point) for dead in variant.deaths)
    return (
        f"{variant.requests:,} requests, {sum(variant.faults.values()):,} faults, {deaths} kills, "
        f"{variant.overlapped_ids} ids with two calls at once"
    )
