"""Ways to pick schedules where not all are played: at random, by random priorities, or as told."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from oncebench.explore.crew import Crew
from oncebench.explore.plan import Plan, letter
from oncebench.explore.play import Play
from oncebench.explore.run import Run
from oncebench.explore.search import Found
from oncebench.explore.site import Site
from oncebench.explore.views import Views
from oncebench.messages import BadInput

Choose = Callable[[Sequence[str]], str]
"""Picks one of the moves that can be made; the first continues with the worker moved last, if it can."""


class Strategy(Protocol):
    """A way to pick schedules."""

    @property
    def schedules(self) -> int:
        """How many to play."""

    def chooser(self, nth: int, plan: Plan, seed: int, steps: int) -> Choose:
        """For the nth schedule; the longest so far had this many steps."""

    def promise(self, plan: Plan, steps: int) -> str:
        """What playing this many schedules is worth, in words."""


@dataclass(frozen=True, slots=True)
class Random:
    """Each move is as likely as any other that can be made."""

    schedules: int = 1000

    def chooser(self, nth: int, plan: Plan, seed: int, steps: int) -> Choose:
        """Random moves."""
        rng = random.Random(f"{seed} random {nth}")
        return lambda options: options[int(rng.random() * len(options))]

    def promise(self, plan: Plan, steps: int) -> str:
        """No bound is known for it."""
        return f"{self.schedules} random schedules; how likely that is to find a fault is not known"


@dataclass(frozen=True, slots=True)
class PCT:
    """Random priorities, lowered at random steps: finds a fault of a depth with a known probability.

    A fault of depth d needs d orderings of steps to be just so. With n workers and k steps in all, one
    schedule finds it with probability 1/(n k^(d-1)) at the least (Burckhardt and others, 2010).

    Attributes:
        schedules: How many to play.
        depth: Of the faults looked for.
    """

    schedules: int = 1000
    depth: int = 3

    def chooser(self, nth: int, plan: Plan, seed: int, steps: int) -> Choose:
        """Whoever has the highest priority moves; a death is as likely as a change of priorities."""
        rng = random.Random(f"{seed} pct {nth}")
        names = [letter(worker) for worker in range(plan.workers)]
        order = sorted(names, key=lambda _: rng.random())
        priority = {name: self.depth + at for at, name in enumerate(order)}
        changes = {int(rng.random() * steps): low for low in range(1, self.depth)}
        step = -1

        def choose(options: Sequence[str]) -> str:
            nonlocal step
            step += 1
            best = max((option for option in options if option in priority), key=lambda name: priority[name])
            if step in changes:
                dying = [option for option in options if option == f"{best}!"]
                if dying and rng.random() < 0.5:
                    return dying[0]
                priority[best] = changes[step]
                best = max((o for o in options if o in priority), key=lambda name: priority[name])
            return best

        return choose

    def promise(self, plan: Plan, steps: int) -> str:
        """The bound, for one schedule and for all of them."""
        one = self.bound(plan.workers, steps)
        return (
            f"a fault of depth {self.depth} is found by one schedule with probability >= {one:.3g}, "
            f"by {self.schedules} with >= {1 - (1 - one) ** self.schedules:.3g} "
            f"(1/(n k^(d-1)) with n = {plan.workers}, k = {steps}, d = {self.depth})"
        )

    def bound(self, workers: int, steps: int) -> float:
        """The probability with which one schedule finds a fault, at the least."""
        return 1.0 / (max(workers, 1) * float(max(steps, 1)) ** (self.depth - 1))


def with_preemptions(points: Mapping[int, int], first: int = 0) -> Choose:
    """Let each worker go on to its end, but for some steps: what hypothesis shrinks well.

    Args:
        points: Before which steps (from 0) to turn to another choice, and to which (counted by turns).
        first: Which worker begins, by turns.
    """
    step = -1

    def choose(options: Sequence[str]) -> str:
        nonlocal step
        step += 1
        if step == 0:
            return options[first % len(options)]
        turn = points.get(step, 0)
        return options[turn % len(options)]

    return choose


def play_chosen(play: Play, choose: Choose) -> Run:
    """Play a schedule whose moves are picked one by one."""
    while options := play.enabled():
        move = choose(options)
        while not play.move(move):  # it still waits for its lock: not a move
            options = [option for option in options if option != move] or play.enabled()
            move = options[0]
    return play.finish()


def play_told(play: Play, moves: Sequence[str]) -> Run:
    """Play a schedule that is written down.

    Raises:
        BadInput: It is not one of this receiver: says at which step it departs from what the code does.
    """
    name = "".join(moves)
    for step, move in enumerate(moves, 1):
        left = len(moves) - step + 1
        if not play.enabled():
            raise BadInput(
                f"the schedule {name} has {left} {'step' if left == 1 else 'steps'} left at step {step} "
                f"({move}), but all is delivered: end it after {''.join(moves[: step - 1])}"
            )
        if move not in play.enabled() or not play.move(move):
            raise BadInput(f"the schedule {name} diverges at step {step} ({move}): {play.why_not(move)}")
    if play.enabled():
        raise BadInput(
            f"the schedule {name} ends after step {len(moves)}, but these have not come to an end: "
            f"{play.unfinished()}; go on with {', '.join(play.enabled())}"
        )
    return play.finish()


@dataclass
class Sample:
    """Schedules picked by a strategy; shows the same face as a search, but never claims to be complete."""

    crew: Crew
    site: Site
    plan: Plan
    views: Views
    strategy: Strategy
    seed: int
    played: int = 0
    cut: int = 0
    complete: bool = False
    bounded: bool = False
    total: int | None = None
    steps: int = 1
    found: dict[Hashable, Found] = field(default_factory=dict)

    def runs(self) -> Iterator[Run]:
        """Play on."""
        self.steps = len(play_chosen(self._play(), with_preemptions({})).schedule)
        for nth in range(self.strategy.schedules):
            run = play_chosen(self._play(), self.strategy.chooser(nth, self.plan, self.seed, self.steps))
            self.steps = max(self.steps, len(run.schedule))
            self.played += 1
            found = self.found.setdefault(run.outcome, Found(run))
            found.offer(run)
            found.schedules += 1
            yield run

    def _play(self) -> Play:
        return Play(self.crew, self.site, self.plan, self.views)
