"""A run as columns in which every id is a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from oncebench.messages import History, State, Witness

if TYPE_CHECKING:
    from oncebench.messages import Flags, Ints


@dataclass(frozen=True, slots=True)
class Columns:
    """A run in which every id is a number: its position in `names`.

    Attributes:
        names: The ids of the history, then those that only the store has.
        was: For each id, its quantity in the inbox before the run; 0 for none.
        was_rows: For each id, its rows in the inbox before the run.
        qty: As `was`, after the run.
        rows: As `was_rows`, after the run.
        totals: The total before and after.
        recorded: For each row of the witness, the number of its id; -1 for an effect.
    """

    history: History
    names: Sequence[str]
    was: Ints
    was_rows: Ints
    qty: Ints
    rows: Ints
    totals: tuple[int, int]
    witness: Witness | None
    recorded: Ints


def encode(history: History, before: State, after: State) -> Columns:
    """Number all ids."""
    numbers = dict(zip(history.ids, range(len(history.ids)), strict=True))

    def inbox(state: State) -> tuple[Ints, Ints]:
        where = np.fromiter((numbers.setdefault(id, len(numbers)) for id, _ in state.inbox), dtype=np.int64)
        qty = np.fromiter((qty for _, qty in state.inbox), dtype=np.int64)
        first = np.zeros(len(numbers), dtype=np.int64)
        first[where[::-1]] = qty[::-1]
        return first, np.bincount(where, minlength=len(numbers))

    was, was_rows = inbox(before)
    qty, rows = inbox(after)
    seen = after.witness.id if after.witness is not None else ()
    recorded = np.fromiter((-1 if id is None else numbers.get(id, -1) for id in seen), dtype=np.int64)
    new = np.zeros(len(numbers) - len(was), dtype=np.int64)
    return Columns(
        history, list(numbers), np.append(was, new), np.append(was_rows, new), qty, rows,
        (before.total, after.total), after.witness, recorded,
    )  # fmt: skip


def overlapped(history: History) -> Flags:
    """For each id of the history, whether two deliveries of it were ever in flight at once."""
    flags = np.zeros(len(history.ids), dtype=np.bool_)
    if not len(history):
        return flags
    order = np.lexsort((history.invoked, history.id))
    id, invoked, completed = history.id[order], history.invoked[order], history.completed[order]
    # The latest completion so far within each id: a running maximum over ranks, one band of them per id.
    rank = np.empty(len(id), dtype=np.int64)
    by_completion = np.argsort(completed, kind="stable")
    rank[by_completion] = np.arange(len(id))
    latest = np.maximum.accumulate(rank + id * len(id)) - id * len(id)
    still_open = completed[by_completion[np.clip(latest[:-1], 0, len(id) - 1)]]
    meets = (id[1:] == id[:-1]) & (invoked[1:] <= still_open)
    flags[id[1:][meets]] = True
    return flags
