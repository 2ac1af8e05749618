"""One schedule, played to its end: what was done, what was answered, what was read afterwards."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from oncebench.explore.plan import Plan
from oncebench.explore.site import Reading
from oncebench.messages import History, Operation

PASSES = "an hour passes"
"""The status of the step at which the clock is put forward."""


class Diverged(Exception):
    """The schedule has a move that cannot be made at that step."""


class Unexplorable(Exception):
    """The receiver did not come back to a step: no schedule of it can be played to its end.

    Attributes:
        schedule: What was played until then.
    """

    def __init__(self, message: str, schedule: str) -> None:
        super().__init__(message)
        self.schedule = schedule


class NeedsOthers(Exception):
    """The receiver does what these workers cannot do for each other.

    Attributes:
        on: Which workers can.
        where: Its line.
    """

    def __init__(self, on: Literal["threads", "processes"], where: str) -> None:
        super().__init__(where)
        self.on = on
        self.where = where


@dataclass(frozen=True, slots=True)
class Step:
    """One move, for the timeline.

    Attributes:
        move: As in the schedule.
        statement: What ran; empty for a death, or for a call that needed none.
        parameters: Its parameters as text.
        seen: What the receiver saw of it, as text; of a refusal, the lock error's name.
        status: "ok", "waits", "timed out", "refused", "asleep" (outside SQLite), "killed" or
            "an hour passes".
        answer: The call's outcome, if it ended with this step.
        lock: What the worker holds afterwards: "write", "open" (a transaction, an unread cursor) or nothing.
        reading: Inbox and total as an independent connection sees them afterwards; None where SQLite let
            nobody read.
    """

    move: str
    statement: str
    parameters: str
    seen: tuple[str, ...]
    status: str
    answer: str = ""
    lock: str = ""
    reading: Reading | None = None


@dataclass
class Run:
    """One schedule, played to its end.

    Attributes:
        plan: What was delivered.
        schedule: Its moves.
        operations: What became of each call. Times keep only the order of ends and beginnings.
        drained: These, and the redeliveries at the end of what had not been answered.
        before: The store before.
        between: After the last move, all transactions ended.
        after: After the redeliveries.
        stuck: Positions in `drained` of messages that were redelivered in vain.
        endless: Positions in `operations` of calls that would not end.
        deadlocks: How often everybody waited for everybody, until a busy timeout passed.
        preemptions: How often a worker that could have gone on was left, or killed.
        asleep: Lines of the receiver at which a worker waited outside SQLite until another had moved.
        steps: For the timeline, if it was asked for.
    """

    plan: Plan
    schedule: tuple[str, ...]
    operations: tuple[Operation, ...]
    drained: tuple[Operation, ...]
    before: Reading
    between: Reading
    after: Reading
    stuck: tuple[int, ...]
    endless: tuple[int, ...]
    deadlocks: int
    preemptions: int
    asleep: tuple[str, ...] = ()
    steps: list[Step] = field(default_factory=list)

    @property
    def size(self) -> tuple[int, int, tuple[str, ...]]:
        """What makes one schedule smaller than another: preemptions, steps, the alphabet."""
        return self.preemptions, len(self.schedule), self.schedule

    @property
    def outcome(self) -> Hashable:
        """All that a judge can see: equal outcomes get equal verdicts."""
        return self.drained, self.before, self.between, self.after, self.stuck, self.endless, self.deadlocks

    @property
    def history(self) -> History:
        """The operations as columns."""
        return History.of(self.operations)
