"""Failures that are no fault of the receiver, though its message was redelivered in vain."""

from __future__ import annotations

from oncebench.messages import MAX_QTY, History, Outcome
from oncebench.race import Race
from oncebench.workload import EXTREME

_OUR_WORLD = (
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_CORRUPT",
    "SQLITE_NOTADB",
)
"""Failures of the machine or the file: a drain that ends in one of them says nothing about the receiver."""


def is_our_world(history: History, row: int) -> bool:
    """Whether a call failed for a fault of the machine or the file."""
    return history[row].detail.startswith(_OUR_WORLD)


def may_refuse(race: Race, row: int) -> bool:
    """Whether to refuse a message of the drain for ever is right: a total, or a column, has its bounds."""
    if race.after is None:
        return False
    no_room = int(race.drained.qty[row]) > MAX_QTY - race.after.total
    extreme = all(phase in EXTREME for phase in race.workload.phases)
    return no_room or (extreme and race.drained.outcome[row] == Outcome.ERROR)
