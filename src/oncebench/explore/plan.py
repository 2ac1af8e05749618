"""What is delivered to whom, and schedules as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from oncebench.messages import MAX_QTY, BadInput, Delivery

MOST_WORKERS = 26
TICK = "+"
"""The move that puts the clock forward."""
SCENARIOS = ("same", "conflict", "distinct", "death")


@dataclass(frozen=True, slots=True)
class Plan:
    """One list of deliveries for each worker.

    Attributes:
        deliveries: For worker A, B, ...: what it is handed, one after another.
        deaths: How often a schedule may kill a worker, which then gets its delivery again.
        name: What it tries.
        clocked: Whether the workers' time stands still but for jumps, sleeps and the redelivery at the end.
        jumps: How often a schedule may put the clock forward.
    """

    deliveries: tuple[tuple[Delivery, ...], ...]
    deaths: int = 0
    name: str = ""
    clocked: bool = False
    jumps: int = 0

    @classmethod
    def of(cls, scenario: str, workers: int = 2) -> Plan:
        """A scenario by its name.

        `same`: one message to all workers at once. `conflict`: the last worker's has another quantity.
        `distinct`: a message of its own to each. `death`: as `same`, and one worker may be killed.

        Raises:
            BadInput: There is no such scenario, or that many workers cannot be named.
        """
        if scenario not in SCENARIOS:
            raise BadInput(f"there is no scenario {scenario!r}: choose from {', '.join(SCENARIOS)}")
        if not 1 <= workers <= MOST_WORKERS:
            raise BadInput(f"{workers} workers: give 1 to {MOST_WORKERS}, a letter is the name of each")
        last = workers - 1
        ids = [f"m{worker + 1}" if scenario == "distinct" else "m1" for worker in range(workers)]
        quantities = [5 if scenario == "conflict" and worker == last else 3 for worker in range(workers)]
        deliveries = tuple((Delivery(id, qty),) for id, qty in zip(ids, quantities, strict=True))
        return cls(deliveries, 1 if scenario == "death" else 0, scenario)

    @classmethod
    def parse(cls, text: str) -> Plan:
        """Read `m1:3,m2:5/m1:3`: worker A gets m1 (quantity 3), then m2; worker B gets m1.

        Raises:
            BadInput: It is not written so.
        """
        workers = []
        for part in text.split("/"):
            found = [
                re.fullmatch(r"([^:,/]+):(\d+)", item.strip()) for item in part.split(",") if item.strip()
            ]
            if None in found:
                raise BadInput(f"deliveries are written m1:3,m2:5/m1:3 (a / between workers), not {text!r}")
            row = tuple(Delivery(match[1], int(match[2])) for match in found if match is not None)
            if any(not 1 <= delivery.qty <= MAX_QTY for delivery in row):
                raise BadInput(f"quantities are 1 to {MAX_QTY}: mend {part!r}")
            workers.append(row)
        if len(workers) > MOST_WORKERS:
            raise BadInput(f"{len(workers)} workers: {MOST_WORKERS} at most, a letter is the name of each")
        return cls(tuple(workers), deaths=MOST_WORKERS)

    def to_consumers(self, consumers: Sequence[str]) -> list[Plan]:
        """The same for the first consumer alone, and with the workers at one consumer each."""
        if not consumers or any("@" in delivery.id for row in self.deliveries for delivery in row):
            return [self]
        alone, apart = (
            tuple(
                tuple(Delivery(f"{delivery.id}@{each[worker % len(each)]}", delivery.qty) for delivery in row)
                for worker, row in enumerate(self.deliveries)
            )
            for each in (consumers[:1], consumers)
        )
        return [Plan(alone, self.deaths, self.name), Plan(apart, self.deaths, f"{self.name} apart".strip())]

    def __str__(self) -> str:
        return "/".join(",".join(f"{d.id}:{d.qty}" for d in row) for row in self.deliveries)

    @property
    def workers(self) -> int:
        """How many."""
        return len(self.deliveries)


def letter(worker: int) -> str:
    """A worker's name in a schedule."""
    return chr(ord("A") + worker)


def moves(schedule: str, workers: int) -> list[str]:
    """Take a schedule such as `ABBA!A` apart: `A` moves worker A by one statement, `A!` kills it.

    In place of a letter, `+` is an hour in which nobody moves.


    Raises:
        BadInput: It is written otherwise, or names a worker that there is not.
    """
    tokens = re.findall(r"\S!?", schedule)
    for at, token in enumerate(tokens, 1):
        if token == TICK:
            continue
        if not "A" <= token[0] <= "Z":
            raise BadInput(
                f"step {at} of the schedule is {token!r}: a step is a worker's letter, A! kills worker A, "
                "+ puts the clock forward"
            )
        if ord(token[0]) - ord("A") >= workers:
            raise BadInput(
                f"step {at} of the schedule moves worker {token[0]}, but there are {workers}: "
                f"A to {letter(workers - 1)}"
            )
    return tokens


def preemptions(schedule: Sequence[str], forced: Sequence[bool]) -> int:
    """How often a worker that could have gone on was left or killed.

    Args:
        schedule: Its moves.
        forced: For each move, whether the worker of the move before could not go on.
    """
    count = 0
    for at, move in enumerate(schedule):
        if len(move) > 1 or move == TICK or (at and move[0] != schedule[at - 1][0] and not forced[at]):
            count += 1
    return count
