"""What `run.json` holds. Keys are never renamed within a schema version; new ones may be added."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

SCHEMA = 1
"""Version of the saved form. A file of another version is refused by name."""


Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""How many of something, or nanoseconds."""
Amount = Annotated[float, Meta(ge=0, le=1e15)]
"""Seconds, or so many a second."""
VerdictWord = Annotated[str, Meta(pattern="^(sound|broken|unknown)$")]
"""A verdict; the audit's `Verdict` is what gives them."""


class Failure(Struct, forbid_unknown_fields=False):
    """One kind of failure: how often it came, and the message of the first."""

    count: Count
    example: str = ""


class Tallies(Struct):
    """Counts. The first five kinds of answer count calls; a call is a delivery or one of its retries.

    Attributes:
        deliveries: Messages handed over, redeliveries included, retries not.
        applied: Completions that answered True.
        duplicate: Completions that answered False.
        conflict: Completions that raised the conflict exception.
        locked: Lock errors by extended SQLite code. None of them is a completion.
        error: Calls that failed otherwise.
        errors: The same by kind.
        indeterminate: Calls without an answer, or with one that proves nothing.
        indeterminates: The same by kind.
        retried: Deliveries that took more than one call.
        retries: Calls beyond the first of their delivery.
        unanswered: Deliveries whose last call was not a completion, left to the drain.
        planned: Deliveries that would have been handed over had nothing cut the run short.
    """

    deliveries: Count = 0
    applied: Count = 0
    duplicate: Count = 0
    conflict: Count = 0
    locked: dict[str, Count] = field(default_factory=dict)
    error: Count = 0
    errors: dict[str, Failure] = field(default_factory=dict)
    indeterminate: Count = 0
    indeterminates: dict[str, Failure] = field(default_factory=dict)
    retried: Count = 0
    retries: Count = 0
    unanswered: Count = 0
    planned: Count = 0


class Effects(Struct):
    """What an independent connection read after the drain, against what its inbox explains.

    Attributes:
        expected: Sum of the quantities of the ids that came into the inbox.
        observed: By how much the stock's total moved.
        ids: How many ids came into the inbox.
        witnessed: How many changes of the total the witness saw; None without one.
    """

    expected: int = 0
    observed: int = 0
    ids: int = 0
    witnessed: int | None = None


class Op(Struct, omit_defaults=True):
    """One operation of a proof; times in nanoseconds from the first of them, None for never."""

    worker: Annotated[int, Meta(ge=0, le=2**16)]
    id: str
    qty: Count
    invoked: Count
    completed: Count | None
    outcome: str
    detail: str = ""
    left_open: bool = False


class Proof(Struct):
    """One violation, or one remark.

    Attributes:
        kind: What is wrong.
        id: The message; empty where the sums cannot be pinned on one.
        message: What happened, with the sums.
        operations: The fewest that show it.
        schedule: A replayable schedule; empty where the operating system made it.
        journal: The journal mode it was seen in.
        point: After which kill; empty where nobody was killed on purpose.
    """

    kind: str
    id: str
    message: str
    operations: list[Op] = field(default_factory=list)
    schedule: str = ""
    journal: str = ""
    point: str = ""


class Latency(Struct):
    """Nanoseconds to the return, from the call or as `Load` has it.

    Attributes:
        histogram: `[lower bound, count]` for each bucket that is not empty; eight buckets for each doubling.
    """

    count: Count = 0
    p50: Count = 0
    p90: Count = 0
    p99: Count = 0
    max: Count = 0
    histogram: list[tuple[Count, Count]] = field(default_factory=list)


class Fairness(Struct):
    """How evenly the workers got on in the measured phase.

    Attributes:
        completions: Per worker, when the first of them had come to the end of its deliveries.
        longest_wait: Per worker, nanoseconds from a delivery's first call, or from when it was due in an open
            load, to its completion, at the most.
    """

    completions: list[Count] = field(default_factory=list)
    longest_wait: list[Count] = field(default_factory=list)


class Series(Struct):
    """Calls of the whole race over time, in equal bins from the first call to the last return.

    Attributes:
        bin: Nanoseconds of each.
        completions: Calls that came back with an answer in it.
        locks: Calls that came back with a lock error in it.
        phases: `[name, nanoseconds until its first call]` for each part of the workload.
    """

    bin: Count = 0
    completions: list[Count] = field(default_factory=list)
    locks: list[Count] = field(default_factory=list)
    phases: list[tuple[str, Count]] = field(default_factory=list)


class Drain(Struct):
    """The redelivery of all that was not answered.

    Attributes:
        redelivered: Messages.
        applied: Of them answered True.
        duplicate: Answered False: they had been done.
        conflict: Raised the conflict exception.
        stuck: Never answered.
        undrained: Given up on before their turn.
    """

    redelivered: Count = 0
    applied: Count = 0
    duplicate: Count = 0
    conflict: Count = 0
    stuck: Count = 0
    undrained: Count = 0


class Load(Struct):
    """How the deliveries of the measured phase were offered.

    Attributes:
        kind: "closed loop": a worker hands over its next delivery as soon as the last came back, and a
            latency begins with the call. "open load": each delivery has its moment whatever became of those
            before it, and a latency begins at that moment.
        rate: Deliveries a second that were offered to all workers together; 0 in a closed loop.
        reached: Deliveries a second that were handed over; less than the rate if workers were late.
    """

    kind: str = "closed loop"
    rate: Amount = 0.0
    reached: Amount = 0.0


class Repeat(Struct):
    """One of several races that were the same; the figures are those of `RaceResult`."""

    verdict: VerdictWord
    seconds: Amount
    deliveries: Count
    throughput: Amount
    latency: Latency
    lock_latency: Latency
    load: Load = field(default_factory=Load)


class RaceResult(Struct):
    """One race of one variant in one journal mode, or several that were the same.

    Of several, counts are sums, a maximum is that of all, and other figures of speed are medians.

    Attributes:
        because: Why the verdict is unknown; empty otherwise.
        seconds: Of the race, without start and drain.
        ids: Ids that were delivered.
        overlapped_ids: Those of them that had two deliveries in flight at once.
        measured: The phase that throughput, latency and fairness are taken from.
        throughput: Completions a second in it.
        latency: Of its completions.
        lock_latency: Time to refusal, over all phases.
        effective: `[journal, synchronous, busy timeout in seconds]` that each worker's connection really had.
        notes: What a reader must know.
        interrupted: Whether Ctrl-C ended it.
        kills: Workers that were killed in mid-race, as planned, and started again.
        threaded: Whether it opened connections for use by several threads of a process.
        load: How deliveries were offered in the measured phase.
        repeats: The figures of each race, in order, if there were several; empty for one.
        series: Calls over time, of the first race if there were several; empty in files of older versions.
    """

    journal: str
    verdict: VerdictWord
    because: list[str]
    seconds: Amount
    tallies: Tallies
    effects: Effects
    ids: Count
    overlapped_ids: Count
    violations: list[Proof]
    violation_counts: dict[str, Count]
    remarks: list[Proof]
    measured: str
    throughput: Amount
    latency: Latency
    lock_latency: Latency
    fairness: Fairness
    drain: Drain
    effective: list[tuple[str, str, Amount]]
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    kills: Count = 0
    threaded: bool = False
    load: Load = field(default_factory=Load)
    repeats: list[Repeat] = field(default_factory=list)
    series: Series = field(default_factory=Series)


class Point(Struct):
    """A kill at one point, and what came of it.

    Attributes:
        delivery: "first", or "again" if the killed delivery was a redelivery of one that had been answered.
        signal: "SIGKILL" or "SIGTERM".
        process: Who was killed: the "worker" that called the receiver, or the "server" that works for it.
        place: "before call", "after statement", "before ACK" or "after ACK".
        number: After which statement of its process in this delivery, from 1; 0 elsewhere.
        statement: That statement.
        names: What the lesson calls this point.
        reached: Whether the process was killed there; not if it did not come by again.
        answered: What the killed call answered all the same; empty if it did not.
        rows: Inbox rows after the kill.
        total: The total after the kill.
        redelivered: What the redelivery was told in the end; empty if nothing.
        conflicting: What a message with the same id and another quantity was told after that.
        rows_at_end: Inbox rows after both.
        total_at_end: The total after both.
        because: Why the verdict is unknown; empty otherwise.
        violations: Their kinds.
    """

    journal: str
    delivery: Annotated[str, Meta(pattern="^(first|again)$")]
    signal: str
    process: str
    place: Annotated[str, Meta(pattern="^(before call|after statement|before ACK|after ACK)$")]
    number: Count
    statement: str
    names: list[str]
    reached: bool
    answered: str
    rows: Count | None
    total: int | None
    redelivered: str
    conflicting: str
    rows_at_end: Count | None
    total_at_end: int | None
    verdict: VerdictWord
    because: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


class VariantResult(Struct):
    """One variant over all its races, or all points it was killed at.

    Attributes:
        expected_verdict: What a shipped variant declares; "sound" for anybody's own receiver.
        points: Where it was killed, one process at a time; empty for races.
        because: Why the verdict over all points is unknown; empty otherwise, and for races.
        notes: What a reader of the points must know.
        interrupted: Whether Ctrl-C ended the kills; a race says so itself.
    """

    name: str
    verdict: VerdictWord
    expected_verdict: VerdictWord
    tallies: Tallies
    effects: Effects
    overlapped_ids: Count
    violations: list[Proof]
    races: list[RaceResult]
    points: list[Point] = field(default_factory=list)
    because: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False


class Settings(Struct):
    """With what it ran; times in seconds, `rate` in deliveries a second (0: as fast as they can)."""

    workers: Count
    ids: Count
    redeliveries: Count
    conflicts: Amount
    max_qty: Count
    workload: list[str]
    journal: list[str]
    synchronous: str
    busy_timeout: Amount
    max_tries: Count
    deadline: Amount
    witness: bool
    kills: Count = 0
    time_limit: Amount | None = None
    threads: Count = 1
    repeat: Count = 1
    rate: Amount = 0.0


class RunResult(Struct):
    """One run.

    Attributes:
        schema: `SCHEMA`.
        kind: "race" or "crash".
        seed: From which all deliveries follow.
        command: The line that runs it again.
        created: UTC, ISO 8601.
        complete: False while it runs, and if it was cut short.
    """

    schema: int
    kind: Literal["race", "crash"]
    seed: int
    command: str
    created: str
    complete: bool
    settings: Settings
    environment: dict[str, str | int | list[str]]
    variants: list[VariantResult] = field(default_factory=list)


def encode(result: Struct) -> bytes:
    """As JSON a person can read."""
    return msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n"
