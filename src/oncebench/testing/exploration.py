"""What exploring comes to: a part for each plan and setting, the smallest failure of each kind, a verdict."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

from oncebench.audit import Kind, Verdict, Violation
from oncebench.explore.plan import TICK, Plan
from oncebench.explore.run import Run
from oncebench.messages import Outcome
from oncebench.stores.sqlite import Journal

Locks = Literal["error", "wait"]
Crewed = Literal["greenlets", "threads", "processes"]
JOURNALS: tuple[Journal, ...] = ("wal", "delete")
LOCKS: tuple[Locks, ...] = ("error", "wait")


@dataclass(frozen=True, slots=True)
class Setting:
    """With what a part is explored.

    Attributes:
        journal: The journal mode of the bench's own store.
        locks: `error`: a refused lock is the step's outcome. `wait`: a worker waits as in the busy handler.
        on: What moves the workers: greenlets (fast), threads or processes (faithful).
        patience: Seconds after which a worker that does not come back to a step is given up.
    """

    journal: Journal = "wal"
    locks: Locks = "error"
    on: Crewed = "greenlets"
    patience: float = 5.0


USUAL = Setting()


@dataclass(frozen=True, slots=True)
class Failure:
    """The smallest schedule that shows one kind of violation.

    Attributes:
        violation: What is wrong, with the operations that prove it and the schedule.
        run: The schedule as it was played.
        setting: With what.
        schedules: How many schedules of this part show this kind.
    """

    violation: Violation
    run: Run
    setting: Setting
    schedules: int

    @property
    def kind(self) -> Kind:
        """What is wrong."""
        return self.violation.kind

    def command(self, target: str) -> str:
        """The line that replays it."""
        plan = str(self.run.plan)
        words = ["oncebench", "replay", target, self.violation.schedule]
        letters = {move[0] for move in self.run.schedule} - {TICK}
        if plan != "/".join(["m1:3"] * len(letters)):
            words += ["--deliveries", plan]
        if self.setting.locks != USUAL.locks:
            words += ["--locks", self.setting.locks]
        if self.setting.journal != USUAL.journal:
            words += ["--journal", self.setting.journal]
        if self.setting.on != USUAL.on:
            words += ["--on", self.setting.on]
        return shlex.join(words)


@dataclass
class Part:
    """One plan in one setting.

    Attributes:
        run: Schedules played; those that met a known state and were left off there are among them.
        total: Schedules that exist (within the bound of preemptions, if there is one); None if not known.
        complete: Whether all of them are covered.
        bound: Preemptions at the most, if that left any schedule out.
        broken: How many of the total (of those played, if it is not known) break the receiver.
        failures: The smallest of each kind.
        outcomes: Answers over all schedules counted, by outcome.
        locked: Lock errors over them, by SQLite's name.
        expected: Sum over them of what the inbox says that the effects are.
        observed: Sum over them of the effects on the total.
        deadlocks: Schedules in which everybody waited for everybody.
        overlapped: Schedules in which two calls of one id were in flight at once.
        because: Why nothing can be said; empty otherwise.
        notes: What a reader must know.
        unexplored: What was not explored although all schedules may be covered.
        reads_the_clock: Whether it did: a schedule may put the clock forward.
        given_up: Whether it did not come back, so that there is no use in another part.
    """

    plan: Plan
    setting: Setting
    run: int = 0
    total: int | None = None
    complete: bool = False
    bound: int | None = None
    broken: int = 0
    failures: list[Failure] = field(default_factory=list)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    locked: Counter[str] = field(default_factory=Counter)
    expected: int = 0
    observed: int = 0
    deadlocks: int = 0
    overlapped: int = 0
    because: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unexplored: list[str] = field(default_factory=list)
    reads_the_clock: bool = False
    given_up: bool = False

    @property
    def verdict(self) -> Verdict:
        """Broken if there is a proof, unknown if there is a reason."""
        if self.failures:
            return Verdict.BROKEN
        return Verdict.UNKNOWN if self.because else Verdict.SOUND


@dataclass
class Exploration:
    """What exploring a receiver has come to.

    Attributes:
        name: The receiver.
        expected: The verdict it must get.
        seed: From which all random choices follow.
        parts: Each plan in each setting.
    """

    name: str
    expected: str
    seed: int
    parts: list[Part] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """The worst of the parts; unknown if no two calls of one id were ever in flight at once."""
        worst = Verdict.worst(part.verdict for part in self.parts)
        if worst is Verdict.SOUND and not any(part.overlapped for part in self.parts):
            return Verdict.UNKNOWN
        return worst

    @property
    def because(self) -> list[str]:
        """Why the verdict is unknown; empty if it is not."""
        if self.verdict is not Verdict.UNKNOWN:
            return []
        reasons = [reason for part in self.parts for reason in part.because]
        nothing = "it raced nothing: no two calls of one id were ever in flight at once"
        return list(dict.fromkeys(reasons)) or [nothing]

    @property
    def unexplored(self) -> list[str]:
        """What was not explored although all schedules may be covered: a sound receiver's limits."""
        return list(dict.fromkeys(what for part in self.parts for what in part.unexplored))

    @property
    def failures(self) -> dict[Kind, Failure]:
        """The smallest of each kind over all parts: fewest workers, deliveries, preemptions, steps."""
        smallest: dict[Kind, Failure] = {}
        for failure in sorted((f for part in self.parts for f in part.failures), key=_size):
            smallest.setdefault(failure.kind, failure)
        return smallest

    @property
    def complete(self) -> bool:
        """Whether all schedules of all parts are covered."""
        return bool(self.parts) and all(part.complete for part in self.parts)

    @property
    def run(self) -> int:
        """Schedules played."""
        return sum(part.run for part in self.parts)

    @property
    def total(self) -> int | None:
        """Schedules that exist; None if not known."""
        totals = [part.total for part in self.parts]
        return None if None in totals else sum(total for total in totals if total is not None)


def on_schedule(violation: Violation, run: Run) -> Violation:
    """A violation that says on which schedule it came."""
    return replace(violation, schedule="".join(run.schedule))


def _size(failure: Failure) -> tuple[int, int, tuple[int, int, tuple[str, ...]]]:
    plan = failure.run.plan
    return plan.workers, sum(map(len, plan.deliveries)), failure.run.size
