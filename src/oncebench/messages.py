"""The words of the bench: what is delivered, what is answered, what is read afterwards."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a receiver imports Conflict from here: it must not pay for numpy
    from typing import Any

    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

MAX_QTY = 2**63 - 1
NEVER = 2**63 - 1
"""The completion time of an operation that was never answered."""
CALL_BITS = 40
"""A call is numbered ``worker << CALL_BITS | nth call of that worker``."""
DEADLINE = "no answer before the deadline"
"""The detail of an operation whose worker was killed because the receiver did not come back."""


class Conflict(Exception):
    """The id is known with another quantity; the earlier work stands."""


class BadInput(ValueError):
    """A sentence for a person: what is wrong, where, and what to do. Commands exit with 2."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt to hand message `(id, qty)` to a receiver.

    Attributes:
        id: Non-empty text.
        qty: 1 to 2**63-1.
    """

    id: str
    qty: int


class Outcome(enum.IntEnum):
    """What became of one call of a receiver."""

    APPLIED = 1
    """It returned True."""
    DUPLICATE = 2
    """It returned False: the same id and quantity were there already. A success."""
    CONFLICT = 3
    """It raised its conflict exception."""
    LOCKED = 4
    """SQLite refused for contention; not known to be done."""
    ERROR = 5
    """Any other failure, or an answer that is neither True nor False."""
    INDETERMINATE = 6
    """No answer, or one that proves nothing (an I/O error, a full disk). The state decides."""

    @property
    def is_completion(self) -> bool:
        """Whether the receiver answered."""
        return self <= Outcome.CONFLICT


@dataclass(frozen=True, slots=True)
class Operation:
    """What was recorded of one call of the receiver.

    Attributes:
        worker: Number of the worker process.
        id: The message's id.
        qty: The message's quantity.
        invoked: Nanoseconds of the machine's monotonic clock, just before the call.
        completed: The same clock just after it; `NEVER` if the call did not come back.
        outcome: What became of it.
        detail: The extended SQLite code, or class and message of the exception.
        left_open: Whether the call came back with a transaction still open.
        delivery: Number of the delivery in its worker's plan; a retry repeats it.
        call: Number of this call, unique in its history; the witness names it.
    """

    worker: int
    id: str
    qty: int
    invoked: int
    completed: int
    outcome: Outcome
    detail: str = ""
    left_open: bool = False
    delivery: int = 0
    call: int = -1


@dataclass(frozen=True)
class History:
    """All operations of one run, a column each (equal lengths, one row per operation).

    Attributes:
        ids: The text of every id; the column `id` holds positions in it.
        details: The text of every detail; the column `detail` holds positions in it.
    """

    ids: Sequence[str]
    details: Sequence[str]
    worker: Ints
    id: Ints
    qty: Ints
    invoked: Ints
    completed: Ints
    outcome: Ints
    detail: Ints
    left_open: Flags
    delivery: Ints
    call: Ints

    def __len__(self) -> int:
        return len(self.worker)

    def __getitem__(self, row: int) -> Operation:
        return Operation(
            worker=int(self.worker[row]),
            id=self.ids[self.id[row]],
            qty=int(self.qty[row]),
            invoked=int(self.invoked[row]),
            completed=int(self.completed[row]),
            outcome=Outcome(int(self.outcome[row])),
            detail=self.details[self.detail[row]],
            left_open=bool(self.left_open[row]),
            delivery=int(self.delivery[row]),
            call=int(self.call[row]),
        )

    @classmethod
    def of(cls, operations: Iterable[Operation]) -> History:
        """The columns of a few operations; those without a number of a call are given one."""
        import numpy as np

        rows = list(operations)
        ids: dict[str, int] = {}
        details: dict[str, int] = {}
        taken = {row.call for row in rows}
        spare = (n for n in range(len(rows) + len(taken)) if n not in taken)

        def column(values: Iterable[Any]) -> Ints:
            return np.array(list(values), dtype=np.int64)

        return cls(
            worker=column(row.worker for row in rows),
            id=column(ids.setdefault(row.id, len(ids)) for row in rows),
            qty=column(row.qty for row in rows),
            invoked=column(row.invoked for row in rows),
            completed=column(row.completed for row in rows),
            outcome=column(row.outcome for row in rows),
            detail=column(details.setdefault(row.detail, len(details)) for row in rows),
            left_open=np.array([row.left_open for row in rows], dtype=np.bool_),
            delivery=column(row.delivery for row in rows),
            call=column(row.call if row.call >= 0 else next(spare) for row in rows),
            ids=list(ids),
            details=list(details),
        )


COLUMNS = tuple(column.name for column in fields(History) if column.name not in ("ids", "details"))
"""The columns of a history that are numbers, one for each operation."""


class Event(enum.IntEnum):
    """What the witness saw."""

    EFFECT = 1
    """The total changed, by `amount`."""
    RECORDED = 2
    """A row `(id, amount)` came into the inbox."""
    ERASED = 3
    """A row `(id, amount)` left the inbox."""


@dataclass(frozen=True)
class Witness:
    """Committed effects and inbox changes in the order SQLite made them, a column each.

    Attributes:
        event: An `Event`.
        amount: By how much the total changed, or the quantity of the inbox row.
        call: The call that did it; -1 where the connection was not one of the bench's.
        at: Monotonic nanoseconds when the statement ran (before its commit); 0 where unknown.
        id: The inbox row's id; None for an effect.
    """

    event: Ints
    amount: Ints
    call: Ints
    at: Ints
    id: Sequence[str | None]


@dataclass(frozen=True)
class State:
    """What an independent connection reads.

    Attributes:
        total: The stock.
        inbox: Its rows `(id, qty)`.
        witness: What the triggers wrote; None where there were none.
    """

    total: int
    inbox: Sequence[tuple[str, int]] = field(default_factory=tuple)
    witness: Witness | None = None
