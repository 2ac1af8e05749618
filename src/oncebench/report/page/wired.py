"""A wire campaign on the page: requests, deliveries and effects apart."""

from __future__ import annotations

from collections.abc import Iterator

from oncebench.report import wired
from oncebench.report.page.blocks import Block, Line, Page, Row, Section, Table, Verdict, of_run
from oncebench.report.page.raced import smallest_first
from oncebench.report.texts import counted, duration
from oncebench.results.wired import WireRun, WireSettings, WireVariant

_MOST_LINES = 20


def page(run: WireRun) -> Page:
    """All of it."""
    return of_run(
        run,
        f"Wire campaigns of {counted(len(run.variants), 'receiver')}, over 127.0.0.1",
        [_verdict(variant) for variant in run.variants],
        [
            *(Section(v.name, list(_blocks(v)), verdict=v.verdict) for v in run.variants),
        ],
        _settings(run.seed, run.settings),
    )


def _verdict(variant: WireVariant) -> Verdict:
    found = [f"{kind}: {counted(count, 'id')}" for kind, count in variant.violation_counts.items()]
    says = [*found, f"tried {wired.tried(variant)}"]
    if variant.verdict == variant.expected_verdict or variant.must_show:
        return Verdict(variant.name, variant.verdict, variant.expected_verdict, says)
    return Verdict(
        variant.name,
        variant.verdict,
        variant.expected_verdict,
        [*says, wired.against_declared(variant).strip(", ")],
    )


def _blocks(variant: WireVariant) -> Iterator[Block]:
    for reason in variant.because:
        yield Line(f"unknown, because {reason}", "reason")
    for note in variant.notes:
        if note not in variant.because:
            yield Line(note)
    for kind, failure in variant.tallies.errors.items():
        yield Line(f"{failure.count:,} x {kind}" + (f": {failure.example}" if failure.example else ""))
    lines = [
        Row([label.strip(), *cells], indented=label.startswith(" ")) for label, cells in wired.rows([variant])
    ]
    yield Table(f"{variant.name}: what was counted", ["", variant.name], lines)
    if variant.faults:
        faults = [Row([fault, f"{count:,}"]) for fault, count in variant.faults.items()]
        yield Table("Faults that requests met", ["fault", "requests"], faults)
    yield from smallest_first(variant.violations, variant.violation_counts)
    if any(op.worker == 0 for proof in variant.violations for op in proof.operations):
        yield Line("worker 0 is what the publisher believes of its outbox row")
    for one in variant.not_once[:_MOST_LINES]:
        yield Line(wired.reckoned(one))
    if len(variant.not_once) > _MOST_LINES:
        yield Line(f"and {len(variant.not_once) - _MOST_LINES:,} more ids without exactly one effect")
    if not variant.not_once and variant.busiest:
        yield Line(f"{wired.reckoned(variant.busiest[0])}, the most of any")
    if variant.retention is not None:
        late = [Row(cells) for cells in wired.late(variant.retention)]
        yield Table("Late redeliveries", wired.LATE, late)
        yield Line(wired.remembered(variant.retention))


def _settings(seed: int, s: WireSettings) -> list[tuple[str, str]]:
    return [
        ("seed", str(seed)),
        ("messages", f"{s.messages:,}"),
        ("faults", f"{s.faults:,}"),
        ("kills", f"{s.kills:,}"),
        ("servers", f"{s.servers} of {counted(s.connections, 'connection')}"),
        ("journal mode", s.journal),
        ("synchronous", s.synchronous),
        ("busy timeout", duration(s.busy_timeout * 1e9)),
        ("publisher waits for an answer", duration(s.timeout * 1e9)),
        ("publisher tries one message for", duration(s.give_up * 1e9)),
        *([("messages remembered", f"{s.retain:,}")] if s.retain is not None else []),
    ]
