"""From recordings to one history, and which of its deliveries are without an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oncebench.messages import CALL_BITS, DEADLINE, NEVER, Delivery, History, Outcome
from oncebench.race import recorder
from oncebench.race.crew import Member

if TYPE_CHECKING:  # workers come past here, and must not pay for numpy
    from oncebench.messages import Ints

DIED = "its worker died"
"""The detail of an operation whose worker was gone before it had an answer."""
KILLED = "its worker was killed, as planned"
"""The same where the bench did it."""


def read(
    folder: Path, members: Sequence[Member], deliveries: Mapping[int, Sequence[Delivery]], warm_up: int = 0
) -> History:
    """The recordings of workers that have ended as one history.

    Args:
        folder: Where their recordings are.
        members: Those who worked; several of one number are its lives, in order.
        deliveries: What was planned for each number.
        warm_up: Deliveries of each number that are left out, if they came back.
    """
    import numpy as np

    ids: dict[str, int] = {}
    details: dict[str, int] = {"": 0}
    columns: list[list[Ints]] = []
    for member in members:
        job = member.job
        invoked, completed, answer = recorder.read(folder / recorder.recording(job.worker, job.life))
        delivery = job.first_delivery + begun(answer)
        calls = job.first_call + np.arange(len(delivery), dtype=np.int64)
        planned = deliveries[job.worker]
        id_of = np.array([ids.setdefault(d.id, len(ids)) for d in planned] or [0], dtype=np.int64)
        qty_of = np.array([d.qty for d in planned] or [0], dtype=np.int64)
        # A kind of failure whose announcement died with its worker is still a failure.
        names = [*member.details, *["unknown"] * 256]
        detail_of = np.array([details.setdefault(name, len(details)) for name in names], dtype=np.int64)
        detail = detail_of[np.minimum(answer >> recorder.DETAIL_SHIFT, len(names) - 1)]
        open_ = completed == 0
        fate = DEADLINE if member.hung else KILLED if member.doomed else DIED
        kept = open_ | (delivery >= warm_up)
        columns.append(
            [
                column[kept]
                for column in (
                    np.full(len(delivery), job.worker, dtype=np.int64),
                    id_of[delivery],
                    qty_of[delivery],
                    invoked,
                    np.where(open_, NEVER, completed),
                    np.where(open_, int(Outcome.INDETERMINATE), answer & recorder.OUTCOME_MASK),
                    np.where(open_, details.setdefault(fate, len(details)), detail),
                    (answer & recorder.LEFT_OPEN) > 0,
                    delivery,
                    calls | job.worker << CALL_BITS,
                )
            ]
        )
    if not columns:
        return History.of([])
    worker, id, qty, invoked, completed, outcome, detail, left_open, delivery, call = (
        np.concatenate(parts) for parts in zip(*columns, strict=True)
    )
    return History(
        list(ids), list(details), worker, id, qty, invoked, completed, outcome, detail,
        left_open.astype(np.bool_), delivery, call,
    )  # fmt: skip


def begun(answer: Ints) -> Ints:
    """For each row of a recording, the number of its delivery in it."""
    import numpy as np

    return np.cumsum((answer & recorder.RETRY) == 0) - 1


def handed_over(history: History) -> int:
    """How many deliveries were begun."""
    import numpy as np

    return len(np.unique(history.worker << CALL_BITS | history.delivery))


def last_rows(history: History) -> list[int]:
    """The row of each delivery's last call."""
    import numpy as np

    key = history.worker << CALL_BITS | history.delivery
    rows = np.lexsort((history.call, key))
    last = np.append(key[rows][1:] != key[rows][:-1], True) if len(rows) else np.empty(0, bool)
    return [int(row) for row in np.sort(rows[last])]


def unanswered(history: History) -> list[Delivery]:
    """Each message once that some delivery did not get an answer for."""
    rows = [row for row in last_rows(history) if history.outcome[row] > Outcome.CONFLICT]
    return list(dict.fromkeys(Delivery(history.ids[history.id[row]], int(history.qty[row])) for row in rows))


def joined(first: History, second: History) -> History:
    """The rows of both, the first's first."""
    import numpy as np

    ids = {id: n for n, id in enumerate(first.ids)}
    details = {detail: n for n, detail in enumerate(first.details)}
    id_of = np.array([ids.setdefault(id, len(ids)) for id in second.ids], dtype=np.int64)
    detail_of = np.array([details.setdefault(d, len(details)) for d in second.details], dtype=np.int64)

    def column(name: str) -> Ints:
        return np.concatenate([getattr(first, name), getattr(second, name)])

    return History(
        ids=list(ids),
        details=list(details),
        id=np.concatenate([first.id, id_of[second.id]]),
        detail=np.concatenate([first.detail, detail_of[second.detail]]),
        left_open=np.concatenate([first.left_open, second.left_open]),
        **{
            name: column(name)
            for name in ("worker", "qty", "invoked", "completed", "outcome", "delivery", "call")
        },
    )
