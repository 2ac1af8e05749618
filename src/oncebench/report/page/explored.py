"""An exploration on the page: what was covered, and the smallest schedule of each kind, step by step."""

from __future__ import annotations

from collections.abc import Iterator

from oncebench.report import charts
from oncebench.report.charts import MOST_LANES, Bar, Timeline
from oncebench.report.page.blocks import (
    Block,
    Evidence,
    Line,
    Page,
    Row,
    Section,
    Table,
    Verdict,
    evidence,
    of_run,
)
from oncebench.report.points import told
from oncebench.report.texts import answer, counted, short
from oncebench.results.explored import (
    Counterexample,
    ExplorePart,
    ExploreRun,
    ExploreSettings,
    ExploreVariant,
    TimelineStep,
)

_MOST_STEPS = 200


def page(run: ExploreRun) -> Page:
    """All of it."""
    return of_run(
        run,
        f"Every interleaving of {counted(len(run.variants), 'receiver')}",
        [verdict(variant) for variant in run.variants],
        [section(variant) for variant in run.variants],
        _settings(run.seed, run.settings),
    )


def verdict(variant: ExploreVariant) -> Verdict:
    """Word, and what it rests on."""
    found = [f"{violation.kind}: {violation.schedule} ({violation.size})" for violation in variant.violations]
    return Verdict(variant.name, variant.verdict, variant.expected_verdict, [*found, variant.covered])


def section(variant: ExploreVariant, title: str = "") -> Section:
    """Parts and proofs of one receiver."""
    blocks: list[Block] = [Line(f"unknown, because {reason}", "reason") for reason in variant.because]
    blocks.append(_parts(variant))
    blocks += [Line(note) for note in dict.fromkeys(note for part in variant.parts for note in part.notes)]
    blocks += [counterexample(one, open=n == 0) for n, one in enumerate(variant.violations)]
    return Section(title or variant.name, blocks, verdict=variant.verdict)


def counterexample(found: Counterexample, open: bool) -> Evidence:
    """One kind of violation with its smallest schedule."""
    if not found.steps:
        return evidence(found, found.replay, open=open)
    return evidence(found, found.replay, open=open, steps=_steps(found), drawn=timeline(found))


def timeline(found: Counterexample) -> Timeline:
    """Each worker's call from its first step to its last, and below it the steps."""
    if not found.steps:
        return charts.timeline(found)
    lanes: dict[str, list[Bar]] = {}
    for step in found.steps[:MOST_LANES]:
        lanes.setdefault(step.worker, []).append(
            Bar(step.step - 1.0, float(step.step), 1, _OUTCOMES.get(step.status, ""), "", _says(step))
        )
    for worker, bars in lanes.items():
        said = "; ".join(
            f"{short(op.id)}: {answer(op)}"
            for op in found.operations
            if charts.lane(op.worker, found)[-1] == worker
        )
        whole = Bar(bars[0].start, bars[-1].end, 0, "applied", said, f"worker {worker}: {said}")
        bars.insert(0, whole)
    named = [(f"worker {worker}", bars) for worker, bars in sorted(lanes.items())]
    return Timeline(f"{found.kind} on {found.schedule}", named, float(len(found.steps[:MOST_LANES])), "")


_OUTCOMES = {
    "ok": "duplicate",
    "waits": "locked",
    "timed out": "locked",
    "refused": "locked",
    "killed": "error",
}
"""The colour of a step, by what came of it."""


def _says(step: TimelineStep) -> str:
    return f"step {step.step}, worker {step.worker}: {_told(step)}"


def _steps(found: Counterexample) -> Table:
    """A column for each worker, as `oncebench replay` prints it."""
    workers = sorted({step.worker for step in found.steps})
    lines = [
        Row(
            [
                str(step.step),
                *(_told(step) if step.worker == worker else "" for worker in workers),
                _seen(step),
            ]
        )
        for step in found.steps[:_MOST_STEPS]
    ]
    inbox = ", ".join(f"{short(id)}: {qty}" for id, qty in found.inbox_at_end) or "empty"
    end = f"inbox {inbox}, total {found.total_at_end}"
    lines.append(Row(["end", *("" for _ in workers), end]))
    head = ["step", *(f"worker {worker}" for worker in workers), "what others can read"]
    return Table(f"Step by step: {found.deliveries}, locks {found.locks}", head, lines, numbers=False)


def _told(step: TimelineStep) -> str:
    if step.status == "killed":
        return "killed"
    parameters = "" if step.parameters in ("", "()") else f" {step.parameters}"
    lock = {"write": ", has the write lock", "open": ", transaction open"}.get(step.lock, "")
    answer = f" ⇒ {told(step.answer)}" if step.answer else ""
    return f"{' '.join(step.statement.split())}{parameters} → {step.result}{lock}{answer}"


def _seen(step: TimelineStep) -> str:
    if step.inbox is None:
        return "nobody can read now"
    inbox = ", ".join(f"{short(id)}: {qty}" for id, qty in step.inbox) or "empty"
    return f"inbox {inbox}, total {step.total}"


def _parts(variant: ExploreVariant) -> Table:
    return Table(
        f"{variant.name}: what was covered",
        [
            "journal, locks, delivered",
            "schedules",
            "played",
            "broken",
            "lock errors",
            "deadlocks",
            "verdict",
        ],
        [Row(list(_cells(part)), role="verdict") for part in variant.parts],
    )


def _cells(part: ExplorePart) -> Iterator[str]:
    schedules = part.schedules
    bound = "" if part.bound is None else f" (at most {counted(part.bound, 'preemption')})"
    yield f"{part.journal}, {part.locks}, {f'{part.scenario} {part.deliveries}'.strip()}"
    yield ("not known" if schedules.total is None else f"{schedules.total:,}") + bound
    yield f"{schedules.run:,}"
    yield f"{schedules.broken:,}"
    yield f"{sum(part.locked.values()):,}"
    yield f"{part.deadlocks:,}"
    yield part.verdict


def _settings(seed: int, s: ExploreSettings) -> list[tuple[str, str]]:
    return [
        ("seed", str(seed)),
        ("workers", str(s.workers)),
        ("plans", ", ".join(s.plans)),
        ("journal modes", ", ".join(s.journal)),
        ("locks", ", ".join(s.locks)),
        ("strategy", s.strategy),
        ("preemptions at most", "any number" if s.preemptions is None else str(s.preemptions)),
        ("equivalent schedules", "followed once" if s.reduce else "all played"),
        ("moved by", s.on),
    ]
