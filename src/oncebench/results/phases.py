"""Which calls of a history belong to which phase of a race, and when they came back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oncebench.messages import NEVER, Outcome
from oncebench.race import Race
from oncebench.results.schema import Series

if TYPE_CHECKING:
    from oncebench.messages import Flags, Ints

BINS = 120
"""Of the saved series over time."""


def inside(race: Race, at: int) -> Flags:
    """Which rows of the history belong to a phase."""
    first, end = bounds(race, at)
    worker, delivery = race.history.worker, race.history.delivery
    if not len(worker):
        return np.zeros(0, dtype=np.bool_)
    inside: Flags = (delivery >= first[worker]) & (delivery < end[worker])
    return inside


def bounds(race: Race, at: int) -> tuple[Ints, Ints]:
    """For each worker, the numbers of the first delivery of a phase and of the next one in its plan."""
    lengths = np.array([[len(list_) for list_ in phase.deliveries] for phase in race.phases])
    first = lengths[:at].sum(axis=0)
    return first, first + lengths[at]


def over_time(race: Race) -> Series:
    """How many calls came back with what, over time."""
    history = race.history
    back = history.completed < NEVER
    if not back.any():
        return Series()
    start = int(history.invoked.min())
    width = (int(history.completed[back].max()) - start) // BINS + 1

    def counts(calls: Flags) -> list[int]:
        binned: list[int] = np.bincount((history.completed[calls] - start) // width, minlength=BINS).tolist()
        return binned

    begun = [(phase.name, inside(race, at)) for at, phase in enumerate(race.phases) if at]
    return Series(
        bin=width,
        completions=counts(back & (history.outcome <= Outcome.CONFLICT)),
        locks=counts(back & (history.outcome == Outcome.LOCKED)),
        phases=[(name, int(history.invoked[rows].min()) - start) for name, rows in begun if rows.any()],
    )
