"""A result on the terminal: a table per variant, the smallest proof, and what was tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from oncebench.report import points
from oncebench.results.repeated import instability, spread
from oncebench.results.schema import Latency, Op, Proof, RaceResult, RunResult, VariantResult
from oncebench.results.summary import total_effects, total_tallies

_LANE = 34  # characters for the time axis of a proof
_MOST_FAILURES = 5  # kinds of failure that are shown
_COLOURS = {"sound": "green", "broken": "red", "unknown": "yellow"}


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

    for label, cells, whole in _rows(variant):
        table.add_row(label, *cells, *([whole] if together else []))
    verdicts = [Text(race.verdict, style=_COLOURS[race.verdict]) for race in races]
    whole_verdict = Text(variant.verdict, style=f"bold {_COLOURS[variant.verdict]}")
    table.add_row(Text("verdict", style="bold"), *verdicts, *([whole_verdict] if together else []))
    return table


def _rows(variant: VariantResult) -> Iterator[tuple[str, list[str], str]]:
    """Label, a cell for each race, and one for all together (empty where a sum means nothing)."""
    races = variant.races
    tallies = [race.tallies for race in races]
    effects = [race.effects for race in races]
    every, all_effects = total_tallies(tallies), total_effects(effects)

    def sums(label: str, name: str, parts: Sequence[object], whole: object) -> tuple[str, list[str], str]:
        return label, [f"{getattr(part, name):,}" for part in parts], f"{getattr(whole, name):,}"

    yield sums("deliveries", "deliveries", tallies, every)
    for name in ("applied", "duplicate", "conflict"):
        yield sums(f"  completed: {name}", name, tallies, every)
    for code in sorted(every.locked):
        cells = [f"{tally.locked.get(code, 0):,}" for tally in tallies]
        yield f"lock error {code}", cells, f"{every.locked[code]:,}"
    if not every.locked:
        yield "lock errors", ["0"] * len(races), "0"
    yield sums("errors", "error", tallies, every)
    yield sums("indeterminate", "indeterminate", tallies, every)
    yield sums("retried deliveries", "retried", tallies, every)
    yield sums("retries", "retries", tallies, every)
    yield sums("unanswered, then drained", "unanswered", tallies, every)
    yield sums("effects on the total", "observed", effects, all_effects)
    yield sums("  expected by the inbox", "expected", effects, all_effects)
    if all_effects.witnessed is not None:
        yield sums("effects witnessed", "witnessed", effects, all_effects)
    yield sums("  ids that came in", "ids", effects, all_effects)
    yield sums("ids with two in flight", "overlapped_ids", races, variant)
    yield f"throughput ({races[0].measured})", [_throughput(race) for race in races], ""
    for figure in ("p50", "p90", "p99", "max"):
        yield f"  completion {figure}", [_figure(race.latency, figure) for race in races], ""
    for figure in ("p50", "p90", "p99", "max"):
        yield f"  lock error {figure}", [_figure(race.lock_latency, figure) for race in races], ""
    yield "fewest to most a worker", [_span(race.fairness.completions) for race in races], ""
    waits = [max(race.fairness.longest_wait, default=0) for race in races]
    yield "longest wait of a worker", [duration(wait) for wait in waits], ""


def _throughput(race: RaceResult) -> str:
    apart = f" ±{spread([one.throughput for one in race.repeats]):.0%}" if race.repeats else ""
    return f"{race.throughput:,.0f}/s{apart}"


def _figure(latency: Latency, name: str) -> str:
    return duration(getattr(latency, name)) if latency.count else "-"


def _span(counts: list[int]) -> str:
    return f"{min(counts):,} to {max(counts):,}" if counts else "-"


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
        example = f": {_printable(failure.example)}" if failure.example else ""
        yield Text(f"{failure.count:,} x {_printable(kind)}{example}", style="dim")
    counts: dict[str, int] = {}
    for race in races:
        for name, count in race.violation_counts.items():
            counts[name] = counts.get(name, 0) + count
    for name, count in counts.items():
        yield Text(f"found {name}: {count:,} {'id' if count == 1 else 'ids'}", style="red")
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


def _printable(text: str) -> str:
    """Without signs that move a terminal's cursor or change its colours."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def short(id: str) -> str:
    """As a person can read it: signs and spaces that hide are shown, the middle of a long one is left out."""
    text = id if id.isprintable() and id == id.strip() else repr(id)
    return text if len(text) <= 40 else f"{text[:20]}...{text[-10:]} ({len(id):,} characters)"


def _lane(op: Op, scale: int) -> str:
    start = round(op.invoked / scale * (_LANE - 1))
    end = _LANE - 1 if op.completed is None else round(op.completed / scale * (_LANE - 1))
    inside = max(0, end - start - 1)
    bar = "├" + "─" * inside + ("┄" if op.completed is None else "┤")
    return f"worker {op.worker:<3}{' ' * start}{bar:<{_LANE + 1 - start}}"


def answer(op: Op) -> str:
    """What was delivered and what came of it."""
    said = {"applied": "True", "duplicate": "False", "conflict": "Conflict"}.get(
        op.outcome, op.detail or op.outcome
    )
    return f"{op.qty} → {said}{', transaction left open' if op.left_open else ''}"


def _closing(result: RunResult) -> Iterator[Text]:
    for variant in result.variants:
        line = Text(f"{variant.name}: ")
        line.append(variant.verdict, style=f"bold {_COLOURS[variant.verdict]}")
        declared = variant.expected_verdict
        line.append(" as declared" if variant.verdict == declared else f", declared {declared}")
        yield line
        yield Text(f"  tried {_tried(variant)}", style="dim")
    yield Text(f"again: {result.command}", style="dim")


def _tried(variant: VariantResult) -> str:
    races = variant.races
    if not races:
        reached = sum(point.reached for point in variant.points)
        return f"{reached:,} kills, one process at a time; nothing raced"
    deliveries = sum(race.tallies.deliveries for race in races)
    ids, raced = sum(race.ids for race in races), sum(race.overlapped_ids for race in races)
    kills = sum(race.kills for race in races)
    died = f"{kills:,} workers killed" if kills else "no crash"
    return f"{deliveries:,} deliveries; {raced:,} of {ids:,} ids raced; {died}; no chosen schedule"


def duration(nanoseconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return (
                f"{nanoseconds / size:.3g} {unit}"
                if nanoseconds < 1000 * size
                else f"{nanoseconds / size:,.0f} {unit}"
            )
    return f"{nanoseconds:.0f} ns" if nanoseconds else "0"
