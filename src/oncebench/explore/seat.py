"""Where one worker is, as the scheduler sees it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from oncebench.messages import CALL_BITS


class Status(enum.Enum):
    """What it does."""

    IDLE = "between calls"
    PARKED = "before a statement"
    WAITING = "waiting for a lock with"
    ASLEEP = "waiting outside SQLite after"
    DONE = "all delivered"


@dataclass(slots=True, eq=False)
class Seat:
    """Where one worker is.

    Attributes:
        view: What it has seen, as a number.
        where: The receiver's line at which it waits outside SQLite.
        retry: It waits, and somebody has let go of a lock since.
        draws: How many random texts it has drawn.
        marks: For each statement of the open transaction: what was committed when it ran, and after how many
            commits.
    """

    number: int
    name: str
    view: int
    status: Status
    retry: bool = False
    waiting_since: int = 0
    delivered: int = 0
    calls: int = 0
    statements: int = 0
    refusals: int = 0
    code: str = ""
    holding: int = 0
    statement: str = ""
    parameters: str = ""
    where: str = ""
    draws: int = 0
    marks: tuple[tuple[int, int], ...] = ()

    @property
    def call(self) -> int:
        """The number of its call."""
        return self.number << CALL_BITS | self.calls

    @property
    def can_go_on(self) -> bool:
        """Whether it has something to do, and is not known to wait in vain."""
        status = self.status
        return status is Status.PARKED or status is Status.IDLE or (status is Status.WAITING and self.retry)

    @property
    def is_in_a_call(self) -> bool:
        """Whether it can be killed."""
        return self.status in (Status.PARKED, Status.WAITING)

    def __str__(self) -> str:
        return f"{self.name} ({self.status.value}{' ' + self.statement if self.is_in_a_call else ''})"

    def why_not(self, move: str) -> str:
        """Why a move of it cannot be made now, in words."""
        if self.status is Status.DONE:
            return f"{self.name} has delivered all it had"
        if len(move) > 1:
            return f"{self.name} is in no call that it could die in"
        if self.status is Status.ASLEEP:
            return f"{self.name} waits outside SQLite at {self.where}"
        if self.status is Status.WAITING:
            return f"{self.name} waits for a lock with {self.statement}, and nobody has let go of one"
        return f"{self.name} was refused {self.refusals} times while nobody else moved"
