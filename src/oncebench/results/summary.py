"""From a race to its result: tallies, figures and the audit's verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from oncebench.audit import Findings, Verdict, Violation, audit, overlapped
from oncebench.messages import CALL_BITS, NEVER, Event, History, Operation, Outcome, State
from oncebench.race import Race, pace, reading
from oncebench.results.excuses import is_our_world, may_refuse
from oncebench.results.notes import notes_of
from oncebench.results.phases import bounds, inside, over_time
from oncebench.results.schema import (
    Drain,
    Effects,
    Failure,
    Fairness,
    Latency,
    Load,
    Op,
    Proof,
    RaceResult,
    Tallies,
    VariantResult,
)

if TYPE_CHECKING:
    from oncebench.messages import Flags, Ints


def of_race(race: Race) -> RaceResult:
    """Judge a race and put its figures together."""
    history = race.history
    state = race.after or race.between
    findings = _findings(race)
    flags = overlapped(history)
    because = _why_unknown(race, int(flags.sum()))
    verdict = findings.verdict
    if verdict is Verdict.SOUND and because:
        verdict = Verdict.UNKNOWN
    name, phase = _measured(race)
    journal = race.settings.journal
    completed = phase & (history.outcome <= Outcome.CONFLICT)
    took = history.completed - history.invoked
    began, load = _offered(race, phase)
    return RaceResult(
        journal=journal,
        verdict=verdict,
        because=because if verdict is Verdict.UNKNOWN else [],
        seconds=race.seconds,
        tallies=tally(race.history, race.examples, _planned(race)),
        effects=moved(race.before, state),
        ids=len(np.unique(history.id)),
        overlapped_ids=int(flags.sum()),
        violations=[proof(v, journal) for v in findings.violations],
        violation_counts={str(kind): count for kind, count in findings.counts.items()},
        remarks=[proof(v, journal) for v in findings.remarks],
        measured=name,
        throughput=_throughput(history, began, completed),
        latency=latency_of((history.completed - began)[completed]),
        lock_latency=latency_of(took[history.outcome == Outcome.LOCKED]),
        fairness=_fairness(history, began, phase, race.workload.workers),
        drain=_drain(race),
        effective=[(s.journal, s.synchronous, s.busy_timeout) for s in race.effective],
        notes=notes_of(race, load),
        interrupted=race.interrupted,
        kills=race.kills,
        threaded=race.threaded,
        load=load,
        series=over_time(race),
    )


def of_variant(name: str, expected: str, races: Sequence[RaceResult]) -> VariantResult:
    """All races of one variant as one."""
    return VariantResult(
        name=name,
        verdict=Verdict.worst(Verdict(race.verdict) for race in races),
        expected_verdict=expected,
        tallies=total_tallies(race.tallies for race in races),
        effects=total_effects(race.effects for race in races),
        overlapped_ids=sum(race.overlapped_ids for race in races),
        violations=[violation for race in races for violation in race.violations],
        races=list(races),
    )


def total_tallies(parts: Iterable[Tallies]) -> Tallies:
    """Their sum."""
    total = Tallies()
    for part in parts:
        for name in ("deliveries", "applied", "duplicate", "conflict", "error", "indeterminate"):
            setattr(total, name, getattr(total, name) + getattr(part, name))
        for name in ("retried", "retries", "unanswered", "planned"):
            setattr(total, name, getattr(total, name) + getattr(part, name))
        for code, count in part.locked.items():
            total.locked[code] = total.locked.get(code, 0) + count
        for mine, theirs in ((total.errors, part.errors), (total.indeterminates, part.indeterminates)):
            for kind, failure in theirs.items():
                known = mine.get(kind, Failure(0, failure.example))
                mine[kind] = Failure(known.count + failure.count, known.example)
    return total


def refused(tallies: Tallies) -> float:
    """Share of calls that ended in a lock error; 0 if there were no calls."""
    calls = tallies.deliveries + tallies.retries
    return sum(tallies.locked.values()) / calls if calls else 0.0


def total_effects(parts: Iterable[Effects]) -> Effects:
    """Their sum."""
    total = Effects(witnessed=0)
    for part in parts:
        total.expected = _written(total.expected + part.expected)
        total.observed = _written(total.observed + part.observed)
        total.ids += part.ids
        if part.witnessed is None or total.witnessed is None:
            total.witnessed = None
        else:
            total.witnessed += part.witnessed
    return total


def _findings(race: Race) -> Findings:
    """What two audits find: before the drain, and with it."""
    if race.before is None or race.between is None:
        return Findings()
    findings = audit(race.history, race.before, race.between)
    if race.after is None or len(race.drained) == len(race.history):
        return findings
    stuck = [row for row in race.stuck if not (is_our_world(race.drained, row) or may_refuse(race, row))]
    return findings.join(audit(race.drained, race.before, race.after, stuck, len(race.history)))


def _why_unknown(race: Race, overlaps: int) -> list[str]:
    reasons = []
    if race.interrupted:
        reasons.append("it was interrupted")
    elif race.between is None or race.after is None:
        reasons.extend(race.notes or ["the store could not be read"])
    else:
        reasons += race.failures
        if race.cut:
            left = _planned(race) - reading.handed_over(race.history)
            reasons.append(
                f"it was stopped after {race.policy.time_limit:g} s: {left:,} of {_planned(race):,} "
                "deliveries were not handed over"
            )
        elif unseen := _unseen(race):
            reasons.append(f"nothing was delivered in the part {' and '.join(unseen)} of the workload")
    worldly = sorted({race.drained[row].detail for row in race.stuck if is_our_world(race.drained, row)})
    if worldly:
        reasons.append(f"the drain met {' and '.join(worldly)}, which is no fault of the receiver")
    elif race.undrained:
        reasons.append(f"{race.undrained} messages were not redelivered")
    if not overlaps and not all(phase.alone for phase in race.phases[1:]):
        reasons.append("it raced nothing: no two deliveries of one id were ever in flight at once")
    return reasons


def _unseen(race: Race) -> list[str]:
    """Parts of the workload that no worker came to."""
    counted = range(1, len(race.phases))
    return [race.phases[at].name for at in counted if not inside(race, at).any()]


def _planned(race: Race) -> int:
    return sum(len(list_) for phase in race.phases[1:] for list_ in phase.deliveries)


def tally(h: History, examples: Mapping[str, str], planned: int) -> Tallies:
    """Counts of what became of the calls of a history.

    Args:
        h: The history.
        examples: The first message of each kind of failure.
        planned: Deliveries that there should have been.
    """
    key = h.worker << CALL_BITS | h.delivery
    order = np.lexsort((h.call, key))
    last = order[np.append(key[order][1:] != key[order][:-1], True)] if len(h) else order
    calls = np.unique(key, return_counts=True)[1]
    counts = np.bincount(h.outcome, minlength=7).tolist()
    return Tallies(
        deliveries=len(calls),
        applied=counts[Outcome.APPLIED],
        duplicate=counts[Outcome.DUPLICATE],
        conflict=counts[Outcome.CONFLICT],
        locked={code: failure.count for code, failure in _failures(h, examples, Outcome.LOCKED).items()},
        error=counts[Outcome.ERROR],
        errors=_failures(h, examples, Outcome.ERROR),
        indeterminate=counts[Outcome.INDETERMINATE],
        indeterminates=_failures(h, examples, Outcome.INDETERMINATE),
        retried=int((calls > 1).sum()),
        retries=int((calls - 1).sum()),
        unanswered=int((h.outcome[last] > Outcome.CONFLICT).sum()),
        planned=planned,
    )


def _failures(h: History, examples: Mapping[str, str], outcome: Outcome) -> dict[str, Failure]:
    counts = np.bincount(h.detail[h.outcome == outcome], minlength=len(h.details)).tolist()
    return {
        detail: Failure(count, examples.get(detail, ""))
        for detail, count in zip(h.details, counts, strict=True)
        if count
    }


def moved(before: State | None, after: State | None) -> Effects:
    """By how much the total moved, against what the inbox explains; nothing where one is missing."""
    if before is None or after is None:
        return Effects()
    known = {id for id, _ in before.inbox}
    new = {id: qty for id, qty in reversed(after.inbox) if id not in known}
    seen = after.witness
    return Effects(
        expected=_written(sum(new.values())),
        observed=_written(after.total - before.total),
        ids=len(new),
        witnessed=None if seen is None else int((seen.event == Event.EFFECT).sum()),
    )


def _written(figure: int) -> int:
    """As far as JSON carries it exactly; proofs spell their sums out."""
    return max(-(2**63), min(figure, 2**64 - 1))


def _measured(race: Race) -> tuple[str, Flags]:
    """The phase that figures of speed come from: free running and without pauses, if there is one."""
    plain = [p for p in race.phases[1:] if not p.paused and not p.alone]
    free = [p for p in plain if not p.gated]
    best = next((p for p in free if p.rate), (free or plain or race.phases[1:])[0])
    return best.name, inside(race, race.phases.index(best))


def _offered(race: Race, measured: Flags) -> tuple[Ints, Load]:
    """The moment from which the latency of each call counts, and how the measured phase was offered.

    In an open load that moment is when the delivery was due, retries included: who waits for a worker that
    stands still waits, though nobody called yet.
    """
    history, rate = race.history, race.workload.rate
    if not rate or not race.offered_since or not measured.any():
        return history.invoked, Load()
    at = next(n for n, phase in enumerate(race.phases) if phase.rate)
    first, _ = bounds(race, at)
    place = (history.delivery - first[history.worker]) * race.workload.workers + history.worker
    due = race.offered_since + (place * pace.between(rate)).astype(np.int64)
    handed = len(np.unique(place[measured]))
    seconds = (int(history.invoked[measured].max()) - race.offered_since) / 1e9 + 1 / rate
    return np.where(measured, due, history.invoked), Load("open load", rate, handed / seconds)


def _throughput(history: History, began: Ints, completed: Flags) -> float:
    if not completed.any():
        return 0.0
    nanoseconds = int(history.completed[completed].max() - began[completed].min())
    return float(completed.sum()) / (nanoseconds / 1e9)


def latency_of(nanoseconds: Ints) -> Latency:
    """Percentiles and histogram of these."""
    if not len(nanoseconds):
        return Latency()
    p50, p90, p99 = np.percentile(nanoseconds, [50, 90, 99], method="inverted_cdf").tolist()
    bucket = np.floor(np.log2(np.maximum(nanoseconds, 1)) * 8).astype(np.int64)
    buckets, counts = np.unique(bucket, return_counts=True)
    lower = np.floor(2 ** (buckets / 8)).astype(np.int64)
    return Latency(
        count=len(nanoseconds),
        p50=int(p50),
        p90=int(p90),
        p99=int(p99),
        max=int(nanoseconds.max()),
        histogram=list(zip(lower.tolist(), counts.tolist(), strict=True)),
    )


def _fairness(history: History, since: Ints, phase: Flags, workers: int) -> Fairness:
    mine = [phase & (history.worker == worker) for worker in range(workers)]
    answered = history.outcome <= Outcome.CONFLICT
    ends = [int(history.completed[rows & answered].max()) for rows in mine if (rows & answered).any()]
    first = min(ends, default=0)
    completions = [int((rows & answered & (history.completed <= first)).sum()) for rows in mine]
    waits = []
    for rows in mine:
        deliveries, inverse = np.unique(history.delivery[rows], return_inverse=True)
        began = np.full(len(deliveries), NEVER, dtype=np.int64)
        ended = np.zeros(len(deliveries), dtype=np.int64)
        np.minimum.at(began, inverse, since[rows])
        done = np.where(history.completed[rows] < NEVER, history.completed[rows], 0)
        np.maximum.at(ended, inverse, done)
        waits.append(int(np.max(ended - began, initial=0)))
    return Fairness(completions, waits)


def _drain(race: Race) -> Drain:
    outcomes = race.drained.outcome[len(race.history) :]
    counts = np.bincount(outcomes, minlength=7).tolist()
    answered = counts[Outcome.APPLIED] + counts[Outcome.DUPLICATE] + counts[Outcome.CONFLICT]
    return Drain(
        redelivered=answered + len(race.stuck),
        applied=counts[Outcome.APPLIED],
        duplicate=counts[Outcome.DUPLICATE],
        conflict=counts[Outcome.CONFLICT],
        stuck=len(race.stuck),
        undrained=race.undrained,
    )


def proof(violation: Violation, journal: str, point: str = "") -> Proof:
    """A violation in its saved form."""
    start = min((op.invoked for op in violation.operations), default=0)
    return Proof(
        kind=violation.kind,
        id=violation.id,
        message=violation.message,
        operations=[_operation(op, start) for op in violation.operations],
        schedule=violation.schedule,
        journal=journal,
        point=point,
    )


def _operation(op: Operation, start: int) -> Op:
    return Op(
        worker=op.worker,
        id=op.id,
        qty=op.qty,
        invoked=op.invoked - start,
        completed=None if op.completed == NEVER else op.completed - start,
        outcome=op.outcome.name.lower(),
        detail=op.detail,
        left_open=op.left_open,
    )
