"""What an exploration says: on the terminal, as JSON, and as the message of a failing test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oncebench.explore.timeline import timeline
from oncebench.messages import NEVER, Operation, Outcome
from oncebench.testing.exploration import Exploration, Failure, Part

if TYPE_CHECKING:
    from rich.text import Text

_COLOURS = {"sound": "green", "broken": "red", "unknown": "yellow"}


def told(exploration: Exploration, quiet: bool = False) -> Text:
    """For the terminal: what was covered, what is wrong, and the smallest schedule of each kind.

    Args:
        exploration: What there is to tell.
        quiet: Only the verdict.
    """
    from rich.text import Text

    text = Text()
    if not quiet:
        for line, style in _lines(exploration):
            text.append(line + "\n", style=style)
    verdict = exploration.verdict
    text.append(f"{exploration.name}: ", style="bold")
    text.append(verdict, style=f"bold {_COLOURS[verdict]}")
    declared = "as declared" if verdict == exploration.expected else f"declared {exploration.expected}"
    text.append(f" {declared} · {covered(exploration)}")
    for reason in exploration.because:
        text.append(f"\n  unknown, because {reason}", style="yellow")
    return text


def covered(exploration: Exploration) -> str:
    """How many schedules of how many, in words."""
    if exploration.total is None:
        return f"{exploration.run:,} schedules played, not all that there are"
    if exploration.complete and not any(part.bound is not None for part in exploration.parts):
        return f"{exploration.total:,} of {exploration.total:,} schedules ({exploration.run:,} played)"
    return f"{exploration.total:,} schedules within the bound ({exploration.run:,} played)"


def explained(failure: Failure, target: str) -> str:
    """A failure as plain text: what is wrong, the timeline, and how to replay it."""
    violation = failure.violation
    return (
        f"{violation.kind} {violation.id}: {violation.message}\n"
        f"smallest schedule: {violation.schedule} ({_size(failure)}; journal {failure.setting.journal}, "
        f"locks {failure.setting.locks})\n\n{timeline(failure.run).plain}\n\n"
        f"replay it: {failure.command(target)}"
    )


def as_data(exploration: Exploration) -> dict[str, Any]:
    """For machines: one variant, with the keys that all ways of running share.

    Keys: name, verdict, expected_verdict, because, tallies, effects, overlapped_ids, violations (each with
    schedule, journal, locks, deliveries, replay, and how many schedules show its kind), schedules (run,
    total, complete), deadlocks, parts. Tallies are over all schedules that exist, those that were skipped as
    equivalent included.
    """
    outcomes: Counter[Outcome] = Counter()
    locked: Counter[str] = Counter()
    for part in exploration.parts:
        outcomes.update(part.outcomes)
        locked.update(part.locked)
    return {
        "name": exploration.name,
        "verdict": exploration.verdict,
        "expected_verdict": exploration.expected,
        "because": exploration.because,
        "tallies": {
            "deliveries": outcomes.total(),
            "applied": outcomes[Outcome.APPLIED],
            "duplicate": outcomes[Outcome.DUPLICATE],
            "conflict": outcomes[Outcome.CONFLICT],
            "locked": dict(sorted(locked.items())),
            "error": outcomes[Outcome.ERROR],
            "indeterminate": outcomes[Outcome.INDETERMINATE],
            "retried": 0,
            "retries": 0,
        },
        "effects": {
            "expected": sum(part.expected for part in exploration.parts),
            "observed": sum(part.observed for part in exploration.parts),
        },
        "overlapped_ids": sum(part.overlapped for part in exploration.parts),
        "violations": [_violation(exploration, failure) for failure in exploration.failures.values()],
        "schedules": {
            "run": exploration.run,
            "total": exploration.total,
            "complete": exploration.complete,
        },
        "deadlocks": sum(part.deadlocks for part in exploration.parts),
        "parts": [_part(part) for part in exploration.parts],
    }


def _lines(exploration: Exploration) -> Iterator[tuple[str, str]]:
    for part in exploration.parts:
        yield _summary(part), _COLOURS[part.verdict] if part.failures else ""
        for code, count in sorted(part.locked.items()):
            yield f"    lock error {code}: {count:,}", "dim"
        for note in part.notes:
            yield f"    {note}", "dim"
        if part.deadlocks:
            yield f"    deadlock, until a busy timeout passes: in {part.deadlocks:,} schedules", "yellow"
    for kind, failure in exploration.failures.items():
        yield f"{kind}: {failure.violation.message}", "red"
        yield f"    smallest: {failure.violation.schedule} ({_size(failure)})", ""
        for operation in failure.violation.operations:
            yield f"    {_operation(operation)}", ""
        yield f"    {failure.command(exploration.name)}", "bold"


def _summary(part: Part) -> str:
    what = part.plan.name or str(part.plan)
    if part.total is None:
        many = f"{part.run:,} schedules"
    else:
        many = f"{part.total:,} of {part.total:,} schedules"
        if part.bound is not None:
            many += f" with at most {part.bound} preemptions"
    broken = f", {part.broken:,} broken" if part.broken else ""
    return f"{part.setting.journal}, locks {part.setting.locks}, {what}: {part.verdict}, {many}{broken}"


def _size(failure: Failure) -> str:
    count = failure.run.preemptions
    return f"{count} {'preemption' if count == 1 else 'preemptions'}, {len(failure.run.schedule)} steps"


def _operation(operation: Operation) -> str:
    answer = operation.detail or operation.outcome.name.lower()
    return f"{chr(ord('A') + operation.worker)}: ({operation.id}, {operation.qty}) → {answer}"


def _violation(exploration: Exploration, failure: Failure) -> dict[str, Any]:
    violation = failure.violation
    return {
        "kind": violation.kind,
        "id": violation.id,
        "message": violation.message,
        "operations": [_operation_data(operation) for operation in violation.operations],
        "schedule": violation.schedule,
        "preemptions": failure.run.preemptions,
        "journal": failure.setting.journal,
        "locks": failure.setting.locks,
        "deliveries": str(failure.run.plan),
        "replay": failure.command(exploration.name),
        "schedules": failure.schedules,
    }


def _operation_data(operation: Operation) -> dict[str, Any]:
    return {
        "worker": operation.worker,
        "id": operation.id,
        "qty": operation.qty,
        "invoked": operation.invoked,
        "completed": None if operation.completed == NEVER else operation.completed,
        "outcome": operation.outcome.name.lower(),
        "detail": operation.detail,
        "left_open": operation.left_open,
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "scenario": part.plan.name,
        "deliveries": str(part.plan),
        "deaths": part.plan.deaths,
        "journal": part.setting.journal,
        "locks": part.setting.locks,
        "on": part.setting.on,
        "verdict": part.verdict,
        "because": part.because,
        "notes": part.notes,
        "schedules": {"run": part.run, "total": part.total, "complete": part.complete, "broken": part.broken},
        "deadlocks": part.deadlocks,
        "kinds": {failure.kind: failure.schedules for failure in part.failures},
    }
