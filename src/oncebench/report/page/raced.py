"""A race on the page."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from oncebench.report import charts
from oncebench.report.page.blocks import (
    Block,
    Folded,
    Line,
    Page,
    Row,
    Section,
    Table,
    Verdict,
    drawn,
    evidence,
    of_run,
)
from oncebench.report.rows import rows
from oncebench.report.terminal import tried
from oncebench.report.texts import counted, duration, short
from oncebench.results.repeated import instability
from oncebench.results.schema import Proof, RunResult, Settings, VariantResult

MOST_PROOFS = 25
"""Of one variant that the page shows."""


def page(run: RunResult) -> Page:
    """All of it."""
    return of_run(
        run,
        f"Race of {counted(len(run.variants), 'receiver')}",
        [verdict(variant) for variant in run.variants],
        [section(variant) for variant in run.variants],
        settings(run.seed, run.settings),
    )


def verdict(variant: VariantResult) -> Verdict:
    """Word, and in a sentence what it rests on."""
    found = [f"{kind}: {counted(count, 'id')}" for kind, count in counts(variant).items()]
    return Verdict(
        variant.name, variant.verdict, variant.expected_verdict, [*found, f"tried {tried(variant)}"]
    )


def section(variant: VariantResult, title: str = "") -> Section:
    """Tallies, charts and evidence of one receiver."""
    blocks: list[Block] = [*lines(variant)]
    if variant.races:
        blocks.append(tallies(variant))
        for race in variant.races:
            data = list(charts.of_race(race))
            if data:
                blocks.append(drawn(f"{variant.name}, {race.journal} mode", data))
    blocks += proofs(variant)
    return Section(title or variant.name, blocks, verdict=variant.verdict)


def tallies(variant: VariantResult) -> Table:
    """What was counted and measured."""
    together = len(variant.races) > 1
    lines: list[Row] = []
    part = ""
    for row in rows(variant):
        if row.part != part:
            part = row.part
            lines.append(Row([part], role="part"))
        cells = [row.label.strip(), *row.cells, *([row.together] if together else [])]
        lines.append(Row(cells, indented=row.label.startswith(" ")))
    words = ["verdict", *(race.verdict for race in variant.races), *([variant.verdict] if together else [])]
    head = ["", *(race.journal for race in variant.races), *(["together"] if together else [])]
    return Table(f"{variant.name}: what was counted and measured", head, [*lines, Row(words, role="verdict")])


def lines(variant: VariantResult) -> Iterator[Line]:
    """Why something is unknown, what failed, what a reader must know."""
    for reason in variant.because:
        yield Line(f"unknown, because {reason}", "reason")
    for note in variant.notes:
        yield Line(note)
    for race in variant.races:
        for reason in race.because:
            yield Line(f"{race.journal}: unknown, because {reason}", "reason")
        for note in race.notes:
            if note not in race.because:
                yield Line(f"{race.journal}: {note}")
        for why, change in instability(race):
            yield Line(f"{race.journal}: unstable: {why}; {change}", "reason")
    failures = {**variant.tallies.errors, **variant.tallies.indeterminates}
    for kind, failure in sorted(failures.items(), key=lambda item: -item[1].count)[:10]:
        yield Line(f"{failure.count:,} x {kind}" + (f": {failure.example}" if failure.example else ""))
    for remark in [remark for race in variant.races for remark in race.remarks][:1]:
        yield Line(f"a call of {short(remark.id)} {remark.message}; its redelivery is told so")


def proofs(variant: VariantResult) -> Iterator[Block]:
    """What was found wrong, and how to have it again in its smallest form."""
    explore = shlex.join(["oncebench", "explore", variant.name])
    return smallest_first(variant.violations, counts(variant), explore if variant.races else "")


def smallest_first(violations: Sequence[Proof], ids: Mapping[str, int], explore: str = "") -> Iterator[Block]:
    """The smallest of each kind, the first unfolded; then what else was saved."""
    first: list[Proof] = []
    more: list[Proof] = []
    known: set[str] = set()
    for proof in violations:
        (more if proof.kind in known else first).append(proof)
        known.add(proof.kind)
    for n, proof in enumerate(first[:MOST_PROOFS]):
        yield evidence(proof, "" if n else explore, ids.get(proof.kind, 0), open=n == 0)
    if more:
        shown = [evidence(proof, "") for proof in more[:MOST_PROOFS]]
        yield Folded(f"{counted(len(more), 'further example')}, {len(shown)} shown", shown)


def counts(variant: VariantResult) -> Counter[str]:
    """How many ids there are of each kind of violation."""
    found: Counter[str] = Counter()
    for race in variant.races:
        found.update(race.violation_counts)
    return found


def settings(seed: int, s: Settings) -> list[tuple[str, str]]:
    """With what it ran, in words."""
    return [
        ("seed", str(seed)),
        ("workers", str(s.workers)),
        ("workload", ", ".join(s.workload)),
        ("ids in each part", f"{s.ids:,}"),
        ("redeliveries", str(s.redeliveries)),
        ("ids with two quantities", f"{s.conflicts:.0%}"),
        ("journal modes", ", ".join(s.journal)),
        ("synchronous", s.synchronous),
        ("busy timeout", duration(s.busy_timeout * 1e9)),
        ("calls of a delivery at most", str(s.max_tries)),
        ("witness", "on" if s.witness else "off"),
        ("workers killed", str(s.kills)),
        ("races of each", str(s.repeat)),
        ("load", f"open, {s.rate:,.10g} deliveries a second" if s.rate else "closed loop"),
    ]
