"""What a campaign sends, what goes wrong on the way, and who dies where: all drawn from one seed.

All choices come from `random.Random.random()`, whose sequence is the same on every Python.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from oncebench.messages import BadInput, Delivery
from oncebench.wire import proxy, publisher
from oncebench.wire.process import Kill

MAX_QTY = 99
_LATEST_KILL = 4  # occurrences of its point that a process lives to see, at most
_LATEST_STATEMENT = 16  # the same for statements, of which a call has several
_SERVER_POINTS = (
    "in_receiver",
    "before_answer",
    "in_receiver",
    "before_receiver",
    "in_receiver",
    "after_answer",
)
_Any = TypeVar("_Any")


@dataclass(frozen=True, slots=True)
class Plan:
    """One campaign.

    Attributes:
        seed: From which it was drawn; also for the publisher's waits.
        rows: The outbox, in order.
        faults: What the nth request to the proxy meets; behind its end all is well.
        publisher_kills: Where the first publisher process dies, where the next, ...; then one survives.
        server_kills: The same for the server processes, in the order in which they are started.
    """

    seed: int = 0
    rows: tuple[Delivery, ...] = ()
    faults: tuple[str, ...] = ()
    publisher_kills: tuple[Kill, ...] = ()
    server_kills: tuple[Kill, ...] = ()


def draw(
    seed: int,
    *,
    messages: int = 24,
    redeliveries: float = 0.2,
    conflicts: float = 0.15,
    faults: int = 36,
    kills: int = 12,
) -> Plan:
    """Draw a campaign.

    Args:
        seed: From which everything follows.
        messages: How many ids.
        redeliveries: Share of ids that the outbox owes twice.
        conflicts: Share of ids that it owes a second time with another quantity.
        faults: How many requests meet one: one in three a duplicate, for it alone makes two deliveries meet;
            of the others each kind as often as any other.
        kills: How many processes die, publishers and servers in turn.

    Raises:
        BadInput: A figure is out of bounds.
    """
    bounds = (
        ("seed", seed, 0, 2**63 - 1),
        ("messages", messages, 1, 100_000),
        ("faults", faults, 0, 100_000),
        ("kills", kills, 0, 1_000),
        ("redeliveries", redeliveries, 0, 1),
        ("conflicts", conflicts, 0, 1),
    )
    for name, value, least, most in bounds:
        if not least <= value <= most:
            raise BadInput(f"{name} must be {least} to {most}, not {value}")
    rng = random.Random(f"{seed} wire")
    rows = []
    for n in range(messages):
        id, qty = f"order-{n}", 1 + _below(MAX_QTY, rng)
        rows.append(Delivery(id, qty))
        if rng.random() < redeliveries:
            rows.append(Delivery(id, qty))
        if rng.random() < conflicts:
            rows.append(Delivery(id, 1 + (qty + _below(MAX_QTY - 1, rng)) % MAX_QTY))
    # A clean request now and then, or the publisher would wait longer and longer and send nothing else.
    drawn = _in_turn([*proxy.FAULTS, "duplicate", "duplicate", "duplicate"], faults)
    met = _shuffled([*drawn, *[proxy.WELL] * (faults // 3)], rng)
    half = kills // 2
    return Plan(
        seed, tuple(rows), tuple(met), _kills(publisher.POINTS, kills - half, rng),
        _kills(_SERVER_POINTS, half, rng),
    )  # fmt: skip


def _kills(points: Sequence[str], count: int, rng: random.Random) -> tuple[Kill, ...]:
    return tuple((point, 1 + _below(_LATEST_KILL, rng)) for point in _shuffled(_in_turn(points, count), rng))


def _in_turn(values: Sequence[_Any], count: int) -> list[_Any]:
    return [values[n % len(values)] for n in range(count)]


def _shuffled(values: list[_Any], rng: random.Random) -> list[_Any]:
    for last in range(len(values) - 1, 0, -1):
        other = _below(last + 1, rng)
        values[last], values[other] = values[other], values[last]
    return values


def _below(n: int, rng: random.Random) -> int:
    return int(rng.random() * n)
