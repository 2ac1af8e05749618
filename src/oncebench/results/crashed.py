"""From kills to their result: the audit's verdict on each point, and on all of them."""

from __future__ import annotations

from collections.abc import Sequence

from oncebench.audit import Findings, Verdict, audit
from oncebench.crash.campaign import Crash, Killed
from oncebench.messages import Operation, State
from oncebench.results.excuses import is_our_world
from oncebench.results.schema import Point, Proof, VariantResult
from oncebench.results.summary import moved, proof, tally, total_effects, total_tallies

MOST_PROOFS = 3
"""Proofs of one kind that are kept for a variant; the points have every kind."""
_LONGEST = 34


def of_crashes(name: str, expected: str, crashes: Sequence[Crash]) -> VariantResult:
    """All kills of one receiver, in all journal modes, as one result."""
    points: list[Point] = []
    violations: list[Proof] = []
    because: list[str] = []
    notes: list[str] = []
    for crash in crashes:
        journal = crash.settings.journal
        for case in crash.killed:
            findings = _findings(case)
            points.append(_point(case, findings, journal))
            label = f"{case.point.signal.name} {label_of(points[-1])}"
            for violation in findings.violations:
                if sum(known.kind == violation.kind for known in violations) < MOST_PROOFS:
                    violations.append(proof(violation, journal, label))
        notes += [f"{journal}: {note}" for note in dict.fromkeys(crash.notes)]
        if not crash.killed:
            because.append(f"{journal}: nobody was killed")
        elif not any(crash.statements.values()):
            because.append(
                f"{journal}: no statement of a sqlite3 connection was seen in its calls, "
                "so it was killed before and after them, never within"
            )
        if crash.interrupted:
            because.append(f"{journal}: it was interrupted")
    verdict = Verdict.worst(Verdict(point.verdict) for point in points)
    if verdict is Verdict.SOUND and because:
        verdict = Verdict.UNKNOWN
    cases = [case for crash in crashes for case in crash.killed]
    return VariantResult(
        name=name,
        verdict=verdict,
        expected_verdict=expected,
        tallies=total_tallies(
            tally(case.drained, case.examples, 3 + (case.point.delivery == "again")) for case in cases
        ),
        effects=total_effects(moved(case.before, case.after) for case in cases),
        overlapped_ids=0,
        violations=violations,
        races=[],
        points=points,
        because=because if verdict is Verdict.UNKNOWN else [],
        notes=notes,
        interrupted=any(crash.interrupted for crash in crashes),
    )


def label_of(point: Point) -> str:
    """Where it was killed, in a few words."""
    if point.place != "after statement":
        again = " of a redelivery" if point.delivery == "again" else ""
        words = {
            "before call": "before the call",
            "before ACK": "before the ACK",
            "after ACK": "after the ACK",
        }
        return words[point.place] + again
    again = "redelivery, " if point.delivery == "again" else ""
    server = "server, " if point.process == "server" else ""
    text = f"{again}{server}after {point.number} {point.statement}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _findings(case: Killed) -> Findings:
    """What two audits find: of the state after the kill, and of the one after the redelivery."""
    if case.before is None or case.killed is None:
        return Findings()
    findings = audit(case.history, case.before, case.killed)
    if case.after is None:
        return findings
    stuck = [row for row in case.stuck if not is_our_world(case.drained, row)]
    return findings.join(audit(case.drained, case.before, case.after, stuck, len(case.history)))


def _point(case: Killed, findings: Findings, journal: str) -> Point:
    because = list(case.notes)
    if not case.reached:
        because.append("in this run it did not come by this point, and was killed elsewhere or not at all")
    verdict = findings.verdict
    if verdict is Verdict.SOUND and (because or case.after is None):
        verdict = Verdict.UNKNOWN
    point = case.point
    return Point(
        journal=journal,
        delivery=point.delivery,
        signal=point.signal.name,
        process=point.process,
        place=point.place,
        number=point.number,
        statement=point.statement,
        names=case.names,
        reached=case.reached,
        answered=_said(case.answered),
        rows=_rows(case.killed),
        total=_total(case.killed),
        redelivered=_said(case.redelivered),
        conflicting=_said(case.conflicting),
        rows_at_end=_rows(case.after),
        total_at_end=_total(case.after),
        verdict=verdict,
        because=because if verdict is Verdict.UNKNOWN else [],
        violations=[str(kind) for kind in findings.counts],
    )


def _said(operation: Operation | None) -> str:
    if operation is None or operation.outcome.name == "INDETERMINATE":
        return ""
    return operation.outcome.name.lower() if operation.outcome.is_completion else operation.detail


def _rows(state: State | None) -> int | None:
    return None if state is None else len(state.inbox)


def _total(state: State | None) -> int | None:
    return None if state is None else state.total
