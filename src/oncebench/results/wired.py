"""From wire campaigns to their saved form: the audit's verdict, and requests and effects apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field

from oncebench.audit import Findings, Verdict, audit, overlapped
from oncebench.messages import CALL_BITS, COLUMNS, Event, History
from oncebench.results.excuses import is_our_world
from oncebench.results.schema import Effects, Proof, Tallies, VerdictWord
from oncebench.results.summary import moved, proof, tally
from oncebench.wire.campaign import Campaign
from oncebench.wire.retention import Late

CAUGHT = frozenset({"naive", "memory", "unique_only", "ack_early", "ignore_rowcount"})
"""Wrong variants that every campaign of the default size must catch; others it may."""


class Death(Struct):
    """One process that died.

    Attributes:
        who: Its name.
        point: Where it was killed; empty if nobody planned it.
        nth: Which occurrence of that point.
        recovery: Nanoseconds until the next answer that proved something; None if none came.
    """

    who: str
    point: str
    nth: int
    recovery: int | None


class Reckoning(Struct):
    """One id: what was asked, what reached the receiver, what was done."""

    id: str
    requests: int
    deliveries: int
    effects: int


class LateDelivery(Struct):
    """A redelivery of a message after so many newer ones.

    Attributes:
        lag: Messages that came in between.
        way: "http" or "in process".
        answer: The status, or what the receiver answered.
        effects: Of this id altogether, at the end.
    """

    lag: int
    way: str
    answer: str
    effects: int


class Retention(Struct):
    """What forgetting does.

    Attributes:
        keep: Messages that the store remembers.
        rate: Messages a second that came in here.
        longest_retry: Seconds for which the publisher may try one message.
        needed: Messages that must be remembered so that the longest retry still meets its own.
    """

    keep: int
    rate: float
    longest_retry: float
    needed: int
    late: list[LateDelivery]


class WireVariant(Struct):
    """One variant's campaign.

    Attributes:
        expected_verdict: What a shipped variant declares; "sound" for anybody's own receiver.
        must_show: Whether this campaign must give that verdict; a wrong variant may survive it by luck.
        because: Why the verdict is unknown; empty otherwise.
        requests: How often the publisher sent something.
        tallies: Of the receiver's calls.
        overlapped_ids: Ids of which two calls were under way at once.
        redelivered_ids: Ids that were called more than once.
        outbox: Rows by state.
        faults: Requests by what they met.
        not_once: Ids without exactly one effect, one by one.
        busiest: The ids with the most requests and calls.
        seconds: From the first request to the last proof.
    """

    name: str
    verdict: VerdictWord
    expected_verdict: VerdictWord
    must_show: bool
    because: list[str]
    requests: int
    tallies: Tallies
    effects: Effects
    overlapped_ids: int
    redelivered_ids: int
    outbox: dict[str, int]
    faults: dict[str, int]
    deaths: list[Death]
    not_once: list[Reckoning]
    busiest: list[Reckoning]
    violations: list[Proof]
    violation_counts: dict[str, int]
    remarks: list[Proof]
    journal: str
    seconds: float
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    retention: Retention | None = None


class WireSettings(Struct):
    """With what it ran; times in seconds."""

    messages: int
    faults: int
    kills: int
    servers: int
    connections: int
    journal: str
    synchronous: str
    busy_timeout: float
    pause: float
    timeout: float
    give_up: float
    deadline: float
    retain: int | None = None


class WireRun(Struct):
    """One run of `oncebench wire`; the keys that it shares with a race mean the same."""

    schema: int
    kind: Literal["wire"]
    seed: int
    command: str
    created: str
    complete: bool
    settings: WireSettings
    environment: dict[str, str | int | list[str]]
    variants: list[WireVariant] = field(default_factory=list)


def of_campaign(ran: Campaign, expected: str) -> WireVariant:
    """Judge a campaign and put its figures together."""
    calls = _first(ran.history, ran.calls)
    findings = _findings(ran)
    reckonings = _reckon(ran, calls)
    redelivered = sum(one.deliveries > 1 for one in reckonings)
    because = _why_unknown(ran, redelivered)
    verdict = findings.verdict
    if verdict is Verdict.SOUND and because:
        verdict = Verdict.UNKNOWN
    journal = ran.setting.settings.journal
    reckonings.sort(key=lambda one: (-one.requests - one.deliveries, one.id))
    return WireVariant(
        name=ran.receiver,
        verdict=verdict,
        expected_verdict=expected,
        must_show=expected == "sound" or ran.receiver in CAUGHT,
        because=because if verdict is Verdict.UNKNOWN else [],
        requests=ran.requests.total(),
        tallies=tally(calls, {}, len(ran.plan.rows)),
        effects=moved(ran.before, ran.after),
        overlapped_ids=int(overlapped(calls).sum()),
        redelivered_ids=redelivered,
        outbox=dict(Counter(row.state for row in ran.outbox)),
        faults=dict(sorted(ran.met.items())),
        deaths=[
            Death(
                dead.who,
                dead.point[0] if dead.point else "",
                dead.point[1] if dead.point else 0,
                dead.recovery,
            )
            for dead in ran.deaths
        ],
        not_once=[one for one in reckonings if one.effects != 1] if ran.after else [],
        busiest=reckonings[:3],
        violations=[proof(violation, journal) for violation in findings.violations],
        violation_counts={str(kind): count for kind, count in findings.counts.items()},
        remarks=[proof(violation, journal) for violation in findings.remarks],
        journal=journal,
        seconds=ran.seconds,
        notes=ran.notes,
        interrupted=ran.interrupted,
    )


def of_retention(ran: Campaign, expected: str, keep: int, rate: float, late: Sequence[Late]) -> WireVariant:
    """Judge a measurement of what a store forgets."""
    result = of_campaign(ran, expected)
    result.must_show = expected == "sound" or ran.receiver == "pruned"
    patience = ran.setting.patience
    longest = patience.give_up + patience.timeout
    seen = {one.id: one.effects for one in _reckon(ran, _first(ran.history, ran.calls))}
    result.retention = Retention(
        keep=keep,
        rate=rate,
        longest_retry=longest,
        needed=int(rate * longest) + 1,
        late=[
            LateDelivery(one.lag, one.way, one.answer, seen[one.id] if one.effects is None else one.effects)
            for one in late
        ],
    )
    return result


def _first(history: History, count: int) -> History:
    """The calls of the receiver, without what the publisher believes."""
    return History(history.ids, history.details, **{name: getattr(history, name)[:count] for name in COLUMNS})


def _findings(ran: Campaign) -> Findings:
    if ran.before is None or ran.after is None:
        return Findings()
    cut_short = ran.interrupted or ran.timed_out
    stuck = [row for row in ran.stuck if not cut_short and not _was_worldly(ran, row)]
    return audit(ran.history, ran.before, ran.after, stuck)


def _was_worldly(ran: Campaign, row: int) -> bool:
    """Whether the last call for a message that was never proven failed for a fault of the machine."""
    history = ran.history
    calls = [call for call in range(ran.calls) if history.id[call] == history.id[row]]
    return bool(calls) and is_our_world(history, calls[-1])


def _why_unknown(ran: Campaign, redelivered: int) -> list[str]:
    if ran.interrupted:
        return ["it was interrupted"]
    if ran.before is None or ran.after is None:
        return list(ran.notes) or ["the store could not be read"]
    reasons = []
    if ran.stuck:
        reasons += ran.notes or ["not every message was proven"]
    if not redelivered:
        reasons.append("nothing went wrong: no message was delivered more than once")
    return reasons


def _reckon(ran: Campaign, calls: History) -> list[Reckoning]:
    """For each id that was sent, called or done: how often."""
    deliveries = Counter(calls.ids[id] for id in calls.id.tolist())
    effects: Counter[str] = Counter()
    seen = ran.after.witness if ran.after is not None else None
    if seen is not None:
        ids = {call: calls.ids[id] for call, id in zip(calls.call.tolist(), calls.id.tolist(), strict=True)}
        for event, call in zip(seen.event.tolist(), seen.call.tolist(), strict=True):
            if event == Event.EFFECT:
                effects[ids.get(call, f"unknown call of worker {call >> CALL_BITS}")] += 1
    elif ran.after is not None:
        effects = Counter(id for id, _ in ran.after.inbox)
    return [
        Reckoning(id, ran.requests[id], deliveries[id], effects[id])
        for id in dict.fromkeys([*ran.requests, *deliveries, *effects])
    ]
