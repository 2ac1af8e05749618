"""The saved form of an exploration: schedules counted, and the smallest that shows each kind of violation."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from oncebench.explore.plan import MOST_WORKERS, TICK, moves
from oncebench.explore.run import Run
from oncebench.explore.timeline import result_of
from oncebench.results.schema import Effects, Proof, Tallies, VerdictWord


class TimelineStep(Struct):
    """One move of a schedule, as a timeline draws it.

    Attributes:
        step: From 1.
        worker: "A", "B", ...; empty where the clock was put forward.
        move: As in the schedule: `A`, or `A!` for its death.
        statement: What ran; empty for a death, or for a call that needed none.
        parameters: Its parameters as text.
        result: What came of it, in a few words.
        seen: What the receiver saw of it, each as text.
        status: "ok", "waits", "timed out", "refused", "asleep" (outside SQLite), "killed" or "an hour
            passes".
        answer: The call's outcome; empty while it goes on.
        lock: What the worker holds afterwards: "write", "open" (a transaction, an unread cursor) or "".
        total: The stock as an independent connection sees it afterwards; None where nobody can read.
        inbox: `[id, qty]` as that connection sees them; None where nobody can read.
    """

    step: int
    worker: str
    move: str
    statement: str
    parameters: str
    result: str
    seen: list[str]
    status: str
    answer: str
    lock: str
    total: int | None
    inbox: list[tuple[str, int]] | None


class Counterexample(Proof, kw_only=True):
    """The smallest schedule that shows one kind of violation; times of operations only say their order.

    Attributes:
        preemptions: How often a worker that could have gone on was left, or killed.
        locks: "error" or "wait".
        deliveries: What A, B, ... were handed.
        replay: The command that shows it again.
        schedules: How many schedules of its part show this kind.
        steps: The schedule step by step; empty if it did not go the same way a second time.
        inbox_at_end: After the last step and the redelivery of what was not answered.
        total_at_end: As `inbox_at_end`.
    """

    preemptions: int
    locks: str
    deliveries: str
    replay: str
    schedules: int
    steps: list[TimelineStep]
    inbox_at_end: list[tuple[str, int]]
    total_at_end: int

    @property
    def size(self) -> str:
        """How small it is, in words."""
        count, steps = self.preemptions, len(moves(self.schedule, MOST_WORKERS))
        return f"{count} {'preemption' if count == 1 else 'preemptions'}, {steps} steps"


class Schedules(Struct):
    """How many schedules.

    Attributes:
        run: Played; those that met a known state and were left off there are among them.
        total: That exist, within the bound of preemptions if there is one; None if not known.
        complete: Whether all of them are covered.
        broken: How many of the total (of those played, if it is not known) break the receiver.
    """

    run: int
    total: int | None
    complete: bool
    broken: int = 0


class ExplorePart(Struct):
    """One plan in one setting.

    Attributes:
        scenario: The plan's name; empty for deliveries that were given.
        deliveries: What A, B, ... were handed.
        deaths: How often a schedule may kill a worker.
        on: What moved the workers: "greenlets", "threads" or "processes".
        because: Why the verdict is unknown; empty otherwise.
        notes: What a reader must know.
        bound: Preemptions at the most, if that left any schedule out.
        deadlocks: Schedules in which everybody waited for everybody.
        locked: Lock errors over all schedules, by SQLite's name.
        kinds: How many schedules show each kind of violation.
    """

    scenario: str
    deliveries: str
    deaths: int
    journal: str
    locks: str
    on: str
    verdict: VerdictWord
    because: list[str]
    notes: list[str]
    schedules: Schedules
    bound: int | None
    deadlocks: int
    locked: dict[str, int]
    kinds: dict[str, int]


class ExploreVariant(Struct):
    """One receiver over all parts. Tallies are over all schedules, those skipped as equivalent included.

    Attributes:
        expected_verdict: What a shipped variant declares; "sound" for anybody's own receiver.
        because: Why the verdict is unknown; empty otherwise.
        overlapped_ids: Schedules in which two calls of one id were in flight at once.
        violations: The smallest schedule of each kind.
        deadlocks: Schedules in which everybody waited for everybody.
        unexplored: What was not explored although all schedules may be covered.
    """

    name: str
    verdict: VerdictWord
    expected_verdict: VerdictWord
    because: list[str]
    tallies: Tallies
    effects: Effects
    overlapped_ids: int
    violations: list[Counterexample]
    schedules: Schedules
    deadlocks: int
    parts: list[ExplorePart]
    unexplored: list[str] = field(default_factory=list)

    @property
    def covered(self) -> str:
        """How many schedules of how many, in words."""
        run, total = self.schedules.run, self.schedules.total
        if total is None:
            return f"{run:,} schedules played, not all that there are"
        if self.schedules.complete and not any(part.bound is not None for part in self.parts):
            return f"{total:,} of {total:,} schedules ({run:,} played)"
        return f"{total:,} schedules within the bound ({run:,} played)"


class ExploreSettings(Struct):
    """With what it ran; times in seconds.

    Attributes:
        plans: Names of scenarios, or the deliveries that were given.
        strategy: "exhaustive", "random" or "pct".
        preemptions: At the most; None for any number.
        schedules: Of random and pct: how many in each part.
        depth: Of pct: the depth of fault looked for.
        most: Schedules begun in each part at the most.
        reduce: Whether each state was followed once only.
    """

    workers: int
    plans: list[str]
    journal: list[str]
    locks: list[str]
    strategy: str
    preemptions: int | None
    schedules: int
    depth: int
    most: int
    reduce: bool
    on: str
    patience: float


class ExploreRun(Struct):
    """What `oncebench explore` saves.

    Attributes:
        schema: `oncebench.results.schema.SCHEMA`.
        kind: "explore".
        seed: From which strategies choose.
        command: The line that runs it again.
        created: UTC, ISO 8601.
        complete: False if it was cut short.
    """

    schema: int
    kind: Literal["explore"]
    seed: int
    command: str
    created: str
    complete: bool
    settings: ExploreSettings
    environment: dict[str, str | int | list[str]]
    variants: list[ExploreVariant] = field(default_factory=list)


def steps_of(run: Run) -> list[TimelineStep]:
    """The steps of a run that was recorded."""
    return [
        TimelineStep(
            step=at,
            worker="" if step.move == TICK else step.move[0],
            move=step.move,
            statement=step.statement,
            parameters=step.parameters,
            result=result_of(step),
            seen=list(step.seen),
            status=step.status,
            answer=step.answer,
            lock=step.lock,
            total=None if step.reading is None else step.reading.total,
            inbox=None if step.reading is None else list(step.reading.inbox),
        )
        for at, step in enumerate(run.steps, 1)
    ]
