"""Seeded deliveries: which worker hands over which message, in which order, under which pressure.

The same workload gives the same deliveries per worker on every machine and every Python: all choices come
from `random.Random.random()`, the one method whose sequence is promised never to change
(https://docs.python.org/3/library/random.html#notes-on-reproducibility).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from oncebench.messages import MAX_QTY, BadInput, Delivery

MAX_PLAIN_QTY = 99
MAX_RATE = 1_000_000
NEIGHBOURS = (
    *("Order-7", "order-7", "ORDER-7", "Order-7 ", " Order-7", "Order-7\t", "Order-07", "Order_7", "Order%7"),
    *("7", "07", "7 ", " 7", "7.0", "+7", "0x7", "a", "A", "'", "''", '"', "--", "null", "NULL", "\\"),
    *("Caf\u00e9-7", "Cafe\u0301-7", "Cafe-7", "\uff17", "\u0667", "stra\u00dfe", "strasse", "\U0001f368"),
    *("a\0b", "a\0c", "Order-7\n", "Order%37", "Order7", "Order*", "[Oo]rder7", "9007199254740992"),
    *("10", "1e1"),
    *("9007199254740993", "9223372036854775807", "9223372036854775808"),
    *("x" * 255, "x" * 256, "x" * 10_000, "x" * 9_999 + "y"),
)
"""Ids that differ in case, spaces, Unicode form, digits against text, SQL's own signs, or at their end."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What to deliver.

    Attributes:
        seed: From which everything follows.
        workers: Processes that deliver at once.
        ids: Ids in each phase; `spread` has four times as many, `paused` a quarter.
        redeliveries: Further deliveries of each id in the `spread` and `impatient` phases.
        conflicts: Share of ids that come with two quantities, 0 to 1.
        max_qty: Quantities are 1 to this.
        phases: Which of `PHASES`, in order; those after `impatient` are not among the usual ones.
        rate: Deliveries a second in the `spread` phase, all workers together, whatever becomes of those
            before; 0: each worker as fast as it can.
    """

    seed: int = 0
    workers: int = 4
    ids: int = 120
    redeliveries: int = 3
    conflicts: float = 0.1
    max_qty: int = MAX_PLAIN_QTY
    phases: tuple[str, ...] = ("same", "distinct", "spread", "neighbours", "paused", "impatient")
    rate: float = 0.0

    def __post_init__(self) -> None:
        bounds = (
            ("workers", 1, 256),
            ("ids", 1, 10_000_000),
            ("redeliveries", 0, 1_000),
            ("max_qty", 2, MAX_QTY),
        )
        for name, least, most in bounds:
            value = getattr(self, name)
            if not least <= value <= most:
                raise BadInput(f"{name} must be {least} to {most}, not {value}")
        if not 0 <= self.conflicts <= 1:
            raise BadInput(f"conflicts is a share from 0 to 1, not {self.conflicts}")
        if not 0 <= self.seed < 2**63:
            raise BadInput(f"seed must be 0 to 2**63-1, not {self.seed}")
        for phase in self.phases:
            if phase not in PHASES:
                raise BadInput(f"there is no workload {phase!r}: choose from {', '.join(PHASES)}")
        ids = 16 * (self.ids + self.workers) + len(NEIGHBOURS)
        deliveries = ids * (self.workers + self.redeliveries + 1)
        if deliveries * self.max_qty > MAX_QTY:  # even if a broken receiver applies every one
            raise BadInput(
                f"with {self.ids} ids and quantities up to {self.max_qty} the total could pass 2**63-1: "
                "lower max-qty or ids"
            )
        if len(set(self.phases)) < len(self.phases):
            raise BadInput(f"each part of a workload runs once, not as in {','.join(self.phases)}")
        lone = [phase for phase in self.phases if phase in EXTREME]
        if lone and len(lone) < len(self.phases):
            raise BadInput(
                f"{' and '.join(lone)} fill the total to 2**63-1: leave the other parts of the workload out"
            )
        if not 0 <= self.rate <= MAX_RATE:
            raise BadInput(
                f"rate must be 0 (closed loop) to {MAX_RATE:,} deliveries a second, not {self.rate:g}"
            )
        if self.rate and "spread" not in self.phases:
            raise BadInput("rate is that of the part spread: add it to the workload")
        if not self.phases:
            raise BadInput(f"a workload needs at least one phase: choose from {', '.join(PHASES)}")


@dataclass(frozen=True, slots=True)
class Phase:
    """One kind of pressure, and what each worker delivers under it.

    Attributes:
        name: Which of `PHASES`, or "warm-up".
        deliveries: A list for each worker, in its order.
        gated: All workers are released together before each delivery.
        paused: Seeded pauses before statements.
        impatient: The busy timeout is 0, so that every wait becomes a refusal, and workers hold locks
            for a moment that the others need.
        alone: One worker delivers and the others wait: what goes wrong here needs no race.
        restarted: All worker processes are started anew before it.
        rate: Deliveries a second, all workers together; 0: as fast as they can. The workers take turns:
            the nth delivery of worker w is due when `(n * workers + w) / rate` seconds have passed.
    """

    name: str
    deliveries: Sequence[Sequence[Delivery]]
    gated: bool = False
    paused: bool = False
    impatient: bool = False
    alone: bool = False
    restarted: bool = False
    rate: float = 0.0


def plan(workload: Workload) -> list[Phase]:
    """All phases of a race, the warm-up first."""
    lone = set(workload.phases) <= set(EXTREME)  # they need all the room there is
    phases = [warm_up(workload.workers, 0 if lone else 10)]
    for name in workload.phases:
        phases += PHASES[name](workload, random.Random(f"{workload.seed} {name}"))
    return phases


def to_consumers(phases: Sequence[Phase], consumers: Sequence[str]) -> list[Phase]:
    """Each delivery once for each consumer, as `m1@stock`; now all workers begin with the same, now not."""
    return [
        replace(
            phase,
            deliveries=[
                [
                    Delivery(f"{delivery.id}@{consumer}", delivery.qty)
                    for n, delivery in enumerate(deliveries)
                    for consumer in (consumers[::-1] if n % 2 and worker % 2 else consumers)
                ]
                for worker, deliveries in enumerate(phase.deliveries)
            ],
        )
        for phase in phases
    ]


def warm_up(workers: int, deliveries: int) -> Phase:
    """Deliveries that fill caches and are not counted."""
    lists = [[Delivery(f"warm-up-{w}-{n}", 1) for n in range(deliveries)] for w in range(workers)]
    return Phase("warm-up", lists)


def same(workload: Workload, rng: random.Random) -> list[Phase]:
    """Rounds: all workers are released at once on one id. Catches check-then-act."""
    lists: list[list[Delivery]] = [[] for _ in range(workload.workers)]
    for n in range(workload.ids):
        for deliveries, delivery in zip(
            lists, _message(f"same-{n}", workload.workers, workload, rng), strict=True
        ):
            deliveries.append(delivery)
    return [Phase("same", lists, gated=True)]


def distinct(workload: Workload, rng: random.Random) -> list[Phase]:
    """Rounds: all workers are released at once, each on an id of its own. Catches lost updates."""
    lists: list[list[Delivery]] = [[] for _ in range(workload.workers)]
    for n in range(max(1, workload.ids // workload.workers)):
        for w, deliveries in enumerate(lists):
            deliveries.append(Delivery(f"distinct-{n * workload.workers + w}", _quantity(workload, rng)))
    return [Phase("distinct", lists, gated=True)]


def spread(workload: Workload, rng: random.Random) -> list[Phase]:
    """Free running: all deliveries shuffled over the workers. Measures; catches what repeats in sequence."""
    return [Phase("spread", _spread("spread", 4 * workload.ids, workload, rng), rate=workload.rate)]


def neighbours(workload: Workload, rng: random.Random) -> list[Phase]:
    """Free running: ids that are easily taken for each other, all with one quantity. Catches coarse keys."""
    qty = _quantity(workload, rng)
    deck = [Delivery(id, qty) for id in NEIGHBOURS] * (1 + workload.redeliveries)
    return [Phase("neighbours", _dealt(deck, workload, rng), alone=workload.workers == 1)]


def paused(workload: Workload, rng: random.Random) -> list[Phase]:
    """Free running in one order, with pauses before statements. Widens every gap between two statements."""
    lists: list[list[Delivery]] = [[] for _ in range(workload.workers)]
    for n in range(max(1, workload.ids // 4)):
        for deliveries, delivery in zip(
            lists, _message(f"paused-{n}", workload.workers, workload, rng), strict=True
        ):
            deliveries.append(delivery)
    return [Phase("paused", lists, paused=True)]


def impatient(workload: Workload, rng: random.Random) -> list[Phase]:
    """Free running with pauses and no busy timeout. Catches those that take a refusal for an answer."""
    return [
        Phase("impatient", _spread("impatient", workload.ids, workload, rng), paused=True, impatient=True)
    ]


def sequence(workload: Workload, rng: random.Random) -> list[Phase]:
    """One after the other: again at once, hundreds of ids later, after a restart; conflicts in both orders.

    Catches what is wrong without any race: keys made anew for each attempt, memories that are too short or
    end with the process, later quantities that win, quantities taken for the identity.
    """
    at_once, later, restarted = [], [], []
    for n in range(3 * workload.ids):  # the first of three conflicts, the other two have one quantity
        if n % 3 < 2:
            small, large = _two_quantities(workload, rng)
            small = small if n > 1 else 1  # the least, as a conflict and under two ids
        own, other = (small, large) if n % 2 else (large, small)
        message, changed = (
            Delivery(f"sequence-{n}", small if n % 3 else own),
            Delivery(f"sequence-{n}", other),
        )
        conflicts = n % 3 == 0 and workload.conflicts > 0
        at_once += [message, changed, message] if conflicts else [message, message]
        later += [changed, message] if conflicts else [message]
        restarted.append(message)
    again = _alone("sequence", restarted, workload)
    return [_alone("sequence", at_once + later, workload), replace(again, restarted=True)]


def conflicting(workload: Workload, rng: random.Random) -> list[Phase]:
    """Rounds: all workers are released at once on one id, every other one with the smaller quantity."""
    lists: list[list[Delivery]] = [[] for _ in range(workload.workers)]
    for n in range(workload.ids):
        small, large = _two_quantities(workload, rng)
        for w, deliveries in enumerate(lists):
            deliveries.append(Delivery(f"conflicting-{n}", small if (n + w) % 2 else large))
    return [Phase("conflicting", lists, gated=True)]


def extremes(workload: Workload, rng: random.Random) -> list[Phase]:
    """One after the other: the quantity 2**63-1, which fills the total to its last unit, and one less.

    Catches quantities or sums that pass through floating point or 32 bits. The stock must begin at 0.
    """
    largest, changed = Delivery("extremes", MAX_QTY), Delivery("extremes", MAX_QTY - 1)
    return [_alone("extremes", [largest, largest, changed, largest], workload)]


def overflow(workload: Workload, rng: random.Random) -> list[Phase]:
    """One after the other: messages that the total has no room for. None of them may be half done."""
    deliveries = [Delivery(f"overflow-{n}", MAX_QTY - n) for n in range(2)]
    return [_alone("overflow", deliveries * 2, workload)]


def _alone(name: str, deliveries: list[Delivery], workload: Workload) -> Phase:
    return Phase(name, [deliveries, *([] for _ in range(workload.workers - 1))], alone=True)


EXTREME = ("extremes", "overflow")
PHASES: dict[str, Callable[[Workload, random.Random], list[Phase]]] = {
    "same": same,
    "distinct": distinct,
    "spread": spread,
    "neighbours": neighbours,
    "paused": paused,
    "impatient": impatient,
    "sequence": sequence,
    "conflicting": conflicting,
    "extremes": extremes,
    "overflow": overflow,
}


def _spread(name: str, ids: int, workload: Workload, rng: random.Random) -> list[list[Delivery]]:
    copies = 1 + workload.redeliveries
    deck = [d for n in range(ids) for d in _message(f"{name}-{n}", copies, workload, rng)]
    return _dealt(deck, workload, rng)


def _dealt(deck: list[Delivery], workload: Workload, rng: random.Random) -> list[list[Delivery]]:
    """Shuffled, then to each worker in turn."""
    for last in range(len(deck) - 1, 0, -1):
        other = _below(last + 1, rng)
        deck[last], deck[other] = deck[other], deck[last]
    return [deck[w :: workload.workers] for w in range(workload.workers)]


def _message(id: str, copies: int, workload: Workload, rng: random.Random) -> list[Delivery]:
    """Copies of one message; in a share of them at least one has another quantity."""
    qty = _quantity(workload, rng)
    if rng.random() >= workload.conflicts or copies < 2:
        return [Delivery(id, qty)] * copies
    other = 1 + (qty + _below(workload.max_qty - 1, rng)) % workload.max_qty
    messages = [Delivery(id, qty if rng.random() < 0.5 else other) for _ in range(copies)]
    messages[0] = Delivery(id, qty)
    messages[1 + _below(copies - 1, rng)] = Delivery(id, other)
    return messages


def _quantity(workload: Workload, rng: random.Random) -> int:
    return 1 + _below(workload.max_qty, rng)


def _two_quantities(workload: Workload, rng: random.Random) -> tuple[int, int]:
    """The smaller one and the larger one."""
    small = 1 + _below(workload.max_qty - 1, rng)
    return small, small + 1 + _below(workload.max_qty - small, rng)


def _below(n: int, rng: random.Random) -> int:
    return int(rng.random() * n)
