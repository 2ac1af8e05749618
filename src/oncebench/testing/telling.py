"""What an exploration says: in its saved form, and as the message of a failing test."""

from __future__ import annotations

from collections import Counter

from oncebench.explore.timeline import timeline
from oncebench.messages import Outcome
from oncebench.results.explored import (
    Counterexample,
    ExplorePart,
    ExploreVariant,
    Schedules,
    steps_of,
)
from oncebench.results.schema import Effects, Tallies
from oncebench.results.summary import proof
from oncebench.testing.exploration import Exploration, Failure, Part


def explained(failure: Failure, target: str) -> str:
    """A failure as plain text: what is wrong, the timeline, and how to replay it."""
    told = _violation(target, failure)
    drawn = timeline(failure.run).plain if told.steps else "it did not go the same way when played again"
    return (
        f"{told.kind} {told.id}: {told.message}\n"
        f"smallest schedule: {told.schedule} ({told.size}; journal {told.journal}, locks {told.locks})\n\n"
        f"{drawn}\n\nreplay it: {told.replay}"
    )


def in_saved_form(exploration: Exploration) -> ExploreVariant:
    """An exploration as it is saved and printed."""
    outcomes: Counter[Outcome] = Counter()
    locked: Counter[str] = Counter()
    for part in exploration.parts:
        outcomes.update(part.outcomes)
        locked.update(part.locked)
    return ExploreVariant(
        name=exploration.name,
        verdict=exploration.verdict,
        expected_verdict=exploration.expected,
        because=exploration.because,
        tallies=Tallies(
            deliveries=outcomes.total(),
            applied=outcomes[Outcome.APPLIED],
            duplicate=outcomes[Outcome.DUPLICATE],
            conflict=outcomes[Outcome.CONFLICT],
            locked=dict(sorted(locked.items())),
            error=outcomes[Outcome.ERROR],
            indeterminate=outcomes[Outcome.INDETERMINATE],
            planned=outcomes.total(),
        ),
        effects=Effects(
            expected=sum(part.expected for part in exploration.parts),
            observed=sum(part.observed for part in exploration.parts),
        ),
        overlapped_ids=sum(part.overlapped for part in exploration.parts),
        violations=[_violation(exploration.name, failure) for failure in exploration.failures.values()],
        schedules=Schedules(
            run=exploration.run,
            total=exploration.total,
            complete=exploration.complete,
            broken=sum(part.broken for part in exploration.parts),
        ),
        deadlocks=sum(part.deadlocks for part in exploration.parts),
        parts=[_part(part) for part in exploration.parts],
        unexplored=exploration.unexplored,
    )


def _violation(target: str, failure: Failure) -> Counterexample:
    shown, run = proof(failure.violation, failure.setting.journal), failure.run
    return Counterexample(
        kind=shown.kind,
        id=shown.id,
        message=shown.message,
        operations=shown.operations,
        schedule=shown.schedule,
        journal=shown.journal,
        preemptions=run.preemptions,
        locks=failure.setting.locks,
        deliveries=str(run.plan),
        replay=failure.command(target),
        schedules=failure.schedules,
        steps=steps_of(run),
        inbox_at_end=list(run.after.inbox),
        total_at_end=run.after.total,
    )


def _part(part: Part) -> ExplorePart:
    return ExplorePart(
        scenario=part.plan.name,
        deliveries=str(part.plan),
        deaths=part.plan.deaths,
        journal=part.setting.journal,
        locks=part.setting.locks,
        on=part.setting.on,
        verdict=part.verdict,
        because=part.because,
        notes=part.notes,
        schedules=Schedules(part.run, part.total, part.complete, part.broken),
        bound=part.bound,
        deadlocks=part.deadlocks,
        locked=dict(sorted(part.locked.items())),
        kinds={failure.kind: failure.schedules for failure in part.failures},
    )
