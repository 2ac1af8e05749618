"""A wire campaign on the terminal: requests, deliveries and effects apart, who died, what is not once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from oncebench.report.terminal import duration, smallest_proof
from oncebench.results.wired import Reckoning, Retention, WireRun, WireVariant

_COLOURS = {"sound": "green", "broken": "red", "unknown": "yellow"}
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

    def add(label: str, figure: Callable[[WireVariant], object]) -> None:
        table.add_row(label, *(str(figure(variant)) for variant in variants))

    add("requests sent", lambda v: v.requests)
    add("calls of the receiver", lambda v: v.tallies.deliveries)
    for name in ("applied", "duplicate", "conflict"):
        add(f"  completed: {name}", lambda v, n=name: getattr(v.tallies, n))  # type: ignore[misc]
    for code in sorted({code for v in variants for code in v.tallies.locked} or {""}):
        label = f"  lock error {code}" if code else "  lock errors"
        add(label, lambda v, c=code: v.tallies.locked.get(c, 0))  # type: ignore[misc]
    add("  errors", lambda v: v.tallies.error)
    add("  indeterminate", lambda v: v.tallies.indeterminate)
    add("effects on the total", lambda v: v.effects.observed)
    add("  expected by the inbox", lambda v: v.effects.expected)
    add("effects witnessed", lambda v: "-" if v.effects.witnessed is None else v.effects.witnessed)
    add("  ids that came in", lambda v: v.effects.ids)
    add("ids called more than once", lambda v: v.redelivered_ids)
    add("  two calls at once", lambda v: v.overlapped_ids)
    add("ids without exactly one effect", lambda v: len(v.not_once))
    for state in ("done", "conflict", "pending"):
        add(f"outbox {state}", lambda v, s=state: v.outbox.get(s, 0))  # type: ignore[misc]
    add("processes killed", lambda v: sum(bool(dead.point) for dead in v.deaths))
    add("  longest until the next proof", _longest)
    table.add_row(
        Text("verdict", style="bold"),
        *(Text(v.verdict, style=f"bold {_COLOURS[v.verdict]}") for v in variants),
    )
    return table


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
        yield Text(f"{name}: found {kind}: {count:,} {'id' if count == 1 else 'ids'}", style="red")
    for proof in variant.violations[:1]:
        yield from smallest_proof(proof)
        if any(op.worker == 0 for op in proof.operations):
            yield Text("  worker 0 is what the publisher believes of its outbox row", style="dim")
    for one in variant.not_once[:_MOST_LINES]:
        yield Text(f"{name}: {_reckoned(one)}")
    if len(variant.not_once) > _MOST_LINES:
        yield Text(f"{name}: and {len(variant.not_once) - _MOST_LINES} more")
    if not variant.not_once and variant.busiest:
        yield Text(f"{name}: {_reckoned(variant.busiest[0])}, the most of any", style="dim")


def _reckoned(one: Reckoning) -> str:
    def counted(count: int, word: str) -> str:
        return f"{count} {word}{'' if count == 1 else 's'}"

    return (
        f"{one.id} had {counted(one.requests, 'request')}, {counted(one.deliveries, 'call')}, "
        f"{counted(one.effects, 'effect')}"
    )


def _retention(name: str, found: Retention) -> Iterator[RenderableType]:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in (f"{name}: newer messages", "over HTTP", "effects", "in process", "effects"):
        table.add_column(heading, justify="right", no_wrap=True)
    by_lag: dict[int, dict[str, tuple[str, int]]] = {}
    for one in found.late:
        by_lag.setdefault(one.lag, {})[one.way] = (one.answer, one.effects)
    for lag, ways in by_lag.items():
        cells = [cell for way in ("http", "in process") for cell in _cells(ways.get(way))]
        table.add_row(str(lag), *cells)
    yield table
    if all(one.effects == 1 and one.answer in ("200", "False") for one in found.late):
        yield Text(f"{name}: forgot none of them")
        return
    verdict = "enough" if found.keep >= found.needed else "not enough"
    yield Text(
        f"{name}: a publisher that tries one message for up to {duration(found.longest_retry * 1e9)}, at "
        f"{found.rate:,.0f} messages/s, needs the last {found.needed:,}; {found.keep:,} are {verdict}"
    )


def _cells(found: tuple[str, int] | None) -> list[Text]:
    if found is None:
        return [Text("-"), Text("-")]
    answer, effects = found
    return [Text(answer), Text(str(effects), style="" if effects == 1 else "red")]


def _verdict(variant: WireVariant) -> Text:
    line = Text(f"{variant.name}: ")
    line.append(variant.verdict, style=f"bold {_COLOURS[variant.verdict]}")
    declared = variant.expected_verdict
    if variant.verdict == declared:
        line.append(" as declared")
    elif variant.must_show or variant.verdict == "unknown":
        line.append(f", declared {declared}")
    else:
        line.append(f" in this campaign, which need not show why it is declared {declared}")
    deaths = sum(bool(dead.point) for dead in variant.deaths)
    line.append(
        f" · tried: {variant.requests:,} requests, {sum(variant.faults.values()):,} faults, {deaths} kills, "
        f"{variant.overlapped_ids} ids with two calls at once"
    )
    return line
