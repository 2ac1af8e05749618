"""All schedules of a plan, those with the fewest preemptions first, each state only once.

Schedules are paths through a graph of states. Two prefixes that end in one state have the same futures, so
only the first is followed; how many schedules there are, and how many end in each outcome, is counted over
the paths of the graph. A receiver cannot be put back into an earlier state, so each path is played from the
start. Preemptions are what counts as cost (Musuvathi and Qadeer, 2007): most faults need one or two.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from oncebench.explore.crew import Crew
from oncebench.explore.plan import Plan
from oncebench.explore.play import Play
from oncebench.explore.run import Diverged, Run
from oncebench.explore.site import Site
from oncebench.explore.views import Views

_Branch = tuple[int, int, tuple[str, ...], Hashable, int]
"""Cost so far, number, prefix to play, the state that its last move starts from, and that move's cost."""


@dataclass
class Found:
    """One outcome.

    Attributes:
        run: The smallest that led to it: fewest preemptions, then steps, then the first in the alphabet.
        schedules: How many end so.
    """

    run: Run
    schedules: int = 0

    def offer(self, run: Run) -> None:
        """Keep the smaller one."""
        if run.size < self.run.size:
            self.run = run


@dataclass
class Search:
    """What a search has come to; `runs()` goes on with it.

    Attributes:
        bound: Preemptions at the most; None for any number.
        reduce: Whether a state that was reached before is followed once only.
        most: Schedules begun at the most; None for any number.
        played: Schedules played to their end.
        cut: Schedules left off where they met a known state.
        complete: Whether all within the bound are covered.
        bounded: Whether the bound left any out.
        total: How many schedules there are within the bound; only known when complete.
        found: The outcomes; `schedules` of each is known when complete.
    """

    crew: Crew
    site: Site
    plan: Plan
    views: Views
    bound: int | None = None
    reduce: bool = True
    most: int | None = None
    played: int = 0
    cut: int = 0
    complete: bool = False
    bounded: bool = False
    total: int | None = None
    found: dict[Hashable, Found] = field(default_factory=dict)
    _edges: dict[Hashable, list[tuple[Hashable, int]]] = field(default_factory=dict)
    _frontier: list[_Branch] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=itertools.count)

    @property
    def states(self) -> int:
        """How many were visited."""
        return len(self._edges) - 1

    def runs(self) -> Iterator[Run]:
        """Play on; of several runs with one outcome each is given.

        Raises:
            Diverged: The receiver did not do the same again on the same schedule.
        """
        self._edges[_START] = []
        self._push(0, (), _START, 0)
        while self._frontier:
            if self.most is not None and self.played + self.cut >= self.most:
                return
            cost, _, prefix, parent, edge = heapq.heappop(self._frontier)
            play = Play(self.crew, self.site, self.plan, self.views, keyed=self.reduce)
            for move in prefix[:-1]:
                if not play.move(move):
                    raise Diverged(f"{move} waits in {''.join(prefix)} where it went on before")
            if prefix and not play.move(prefix[-1]):  # it still waits: no move, no schedule
                self.crew.settle()
                continue
            run = self._follow(play, cost, parent, edge)
            if run is not None:
                yield run
        self.complete = True
        self._count()

    def _follow(self, play: Play, cost: int, parent: Hashable, edge: int) -> Run | None:
        """Go on with whoever moved last, to the end or to a known state; other choices are kept for later."""
        while True:
            options = play.enabled()
            if not options:
                run = play.finish()
                run.preemptions = cost
                self.played += 1
                self._edges[parent].append(((_END, run.outcome), edge))
                self.found.setdefault(run.outcome, Found(run)).offer(run)
                return run
            state = play.key() if self.reduce else play.schedule
            self._edges[parent].append((state, edge))
            if state in self._edges:
                self.crew.settle()
                self.cut += 1
                return None
            self._edges[state] = []
            prefix = play.schedule
            costs = [play.costs(option) for option in options]
            while not play.move(options[0]):  # it still waits; when all do, one of them times out
                options = options[1:] or play.enabled()
                costs = [play.costs(option) for option in options]
            for option, price in zip(options[1:], costs[1:], strict=True):
                self._push(cost + price, (*prefix, option), state, price)
            parent, edge = state, costs[0]
            cost += edge

    def _push(self, cost: int, prefix: tuple[str, ...], parent: Hashable, edge: int) -> None:
        if self.bound is not None and cost > self.bound:
            self.bounded = True
        else:
            heapq.heappush(self._frontier, (cost, next(self._order), prefix, parent, edge))

    def _count(self) -> None:
        """Count the paths to each end, by what they cost: a state may be reached at several costs."""
        ways: dict[Hashable, Counter[int]] = {_START: Counter({0: 1})}
        for state in self._in_order():
            for child, edge in self._edges.get(state, ()):
                into = ways.setdefault(child, Counter())
                for cost, count in ways[state].items():
                    if self.bound is None:
                        into[0] += count
                    elif cost + edge <= self.bound:
                        into[cost + edge] += count
        for outcome, found in self.found.items():
            found.schedules = ways[(_END, outcome)].total()
        self.total = sum(found.schedules for found in self.found.values())

    def _in_order(self) -> list[Hashable]:
        """All states, each before those that it leads to."""
        done: list[Hashable] = []
        seen: set[Hashable] = {_START}
        stack: list[tuple[Hashable, Iterator[tuple[Hashable, int]]]] = [(_START, iter(self._edges[_START]))]
        while stack:
            state, children = stack[-1]
            for child, _ in children:
                if child not in seen:
                    seen.add(child)
                    stack.append((child, iter(self._edges.get(child, ()))))
                    break
            else:
                stack.pop()
                done.append(state)
        return done[::-1]


_START, _END = "start", "end"
