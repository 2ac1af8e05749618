"""A result on the terminal: a table per variant, the smallest proof, and what was tried."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from oncebench.report import points
from oncebench.report.rows import rows
from oncebench.report.texts import COLOURS, answer, as_declared, counted, duration, printable, short
from oncebench.results.repeated import instability
from oncebench.results.schema import Op, Proof, RunResult, VariantResult

_LANE = 34  # characters for the time axis of a proof
_MOST_FAILURES = 5  # kinds of failure that are shown


def render(result: RunResult) -> RenderableType:
    """Everything that `oncebench run`, `crash` and `show` print."""
    parts: list[RenderableType] = [_heading(result)]
    if result.kind == "crash":
        return Group(*parts, points.tables(result), Text(), verdicts(result))
    for variant in result.variants:
        parts += [Text(), Text(variant.name, style="bold"), _table(variant), *_evidence(variant)]
    return Group(*parts, Text(), verdicts(result))


def verdicts(result: RunResult) -> RenderableType:
    """A line for each variant, and the command that runs all of it again."""
    return Group(*_closing(result))


def surprises(result: RunResult) -> RenderableType:
    """The evidence for each verdict that is not the declared one."""
    return Group(*(part for v in result.variants if v.verdict != v.expected_verdict for part in _evidence(v)))


def _heading(result: RunResult) -> Text:
    s, e = result.settings, result.environment
    tries = "1 try" if s.max_tries == 1 else f"{s.max_tries} tries"
    what: tuple[str, ...] = (
        f"seed {result.seed} · {s.workers} workers · {' '.join(s.workload)}",
        f"{s.ids} ids each · {s.redeliveries} redeliveries · {s.conflicts:.0%} conflicting · "
        + (f"open load at {s.rate:,.10g}/s" if s.rate else "closed loop"),
    )
    if s.rate:
        what = (*what, "latency in spread is from the moment at which a delivery was due")
    if result.kind == "crash":
        what = (
            "snack-7 with quantity 7 is delivered, killed, redelivered by a new process until",
            "answered, and comes once more with quantity 8",
        )
    if s.repeat > 1:
        what = (
            *what,
            f"{s.repeat} repeats in turns: counts are sums, speeds medians ± standard deviation",
        )
    lines = (
        *what,
        f"synchronous {s.synchronous} · busy timeout {duration(s.busy_timeout * 1e9)} · {tries} · "
        f"witness {'on' if s.witness else 'off'}",
        f"SQLite {e.get('sqlite')} on {e.get('file_system')} · Python {e.get('python')} · "
        f"{e.get('cores')} cores",
    )
    return Text("\n".join(lines), style="dim")


def _table(variant: VariantResult) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    races = variant.races
    for race in races:
        table.add_column(race.journal, justify="right", no_wrap=True)
    together = len(races) > 1
    if together:
        table.add_column("together", justify="right", no_wrap=True)

    for row in rows(variant):
        table.add_row(row.label, *row.cells, *([row.together] if together else []))
    verdicts = [Text(race.verdict, style=COLOURS[race.verdict]) for race in races]
    whole_verdict = Text(variant.verdict, style=f"bold {COLOURS[variant.verdict]}")
    table.add_row(Text("verdict", style="bold"), *verdicts, *([whole_verdict] if together else []))
    return table


def _evidence(variant: VariantResult) -> Iterator[RenderableType]:
    races = variant.races
    for reason in variant.because:
        yield Text(f"unknown, because {reason}", style="yellow")
    for race in races:
        for reason in race.because:
            yield Text(f"{race.journal}: unknown, because {reason}", style="yellow")
        for note in race.notes:
            if note not in race.because:
                yield Text(f"{race.journal}: {note}", style="yellow")
        if unstable := list(instability(race)):
            reasons, changes = ("; ".join(dict.fromkeys(texts)) for texts in zip(*unstable, strict=True))
            yield Text(f"{race.journal}: unstable: {reasons}", style="yellow")
            yield Text(f"  what helps: {changes}", style="yellow")
    failures = {**variant.tallies.errors, **variant.tallies.indeterminates}
    frequent = sorted(failures.items(), key=lambda item: -item[1].count)
    if len(frequent) > _MOST_FAILURES:
        yield Text(f"{len(frequent):,} kinds of failure, the most frequent:", style="dim")
    for kind, failure in frequent[:_MOST_FAILURES]:
        example = f": {printable(failure.example)}" if failure.example else ""
        yield Text(f"{failure.count:,} x {printable(kind)}{example}", style="dim")
    counts: dict[str, int] = {}
    for race in races:
        for name, count in race.violation_counts.items():
            counts[name] = counts.get(name, 0) + count
    for name, count in counts.items():
        yield Text(f"found {name}: {counted(count, 'id')}", style="red")
    for proof in variant.violations[:1]:
        yield from smallest_proof(proof)
    for remark in [remark for race in races for remark in race.remarks][:1]:
        yield Text(f"remark: a call of {short(remark.id)} {remark.message}; its redelivery is told so")


def smallest_proof(proof: Proof) -> Iterator[RenderableType]:
    """One violation: what happened, and the operations that show it against a time axis."""
    where = f"of {short(proof.id)} " if proof.id else ""
    died = f", {proof.point}" if proof.point else ""
    yield Text(f"smallest proof: {proof.kind} {where}in {proof.journal} mode{died}")
    yield Text(f"  {proof.message}")
    ends = [op.completed if op.completed is not None else op.invoked for op in proof.operations]
    scale = max([1, *ends])
    for op in proof.operations:
        yield Text.from_markup(f"  {_lane(op, scale)}  {escape(answer(op))}")
    if proof.operations:
        yield Text(f"  0{duration(scale):>{_LANE + 9}}", style="dim")


def _lane(op: Op, scale: int) -> str:
    start = round(op.invoked / scale * (_LANE - 1))
    end = _LANE - 1 if op.completed is None else round(op.completed / scale * (_LANE - 1))
    inside = max(0, end - start - 1)
    bar = "├" + "─" * inside + ("┄" if op.completed is None else "┤")
    return f"worker {op.worker:<3}{' ' * start}{bar:<{_LANE + 1 - start}}"


def _closing(result: RunResult) -> Iterator[Text]:
    for variant in result.variants:
        line = Text(f"{variant.name}: ")
        line.append(variant.verdict, style=f"bold {COLOURS[variant.verdict]}")
        line.append(as_declared(variant.verdict, variant.expected_verdict))
        yield line
        yield Text(f"  tried {tried(variant)}", style="dim")
    yield Text(f"again: {result.command}", style="dim")


def tried(variant: VariantResult) -> str:
    """What a reader of the verdict must know was tried, in figures."""
    races = variant.races
    if not races:
        reached = sum(point.reached for point in variant.points)
        return f"{reached:,} kills, one process at a time; nothing raced"
    deliveries = sum(race.tallies.deliveries for race in races)
    ids, raced = sum(race.ids for race in races), sum(race.overlapped_ids for race in races)
    kills = sum(race.kills for race in races)
    died = f"{kills:,} workers killed" if kills else "no crash"
    return f"{deliveries:,} deliveries; {raced:,} of {ids:,} ids raced; {died}; no chosen schedule"
