"""Operations a second that the audit judges, against one pass over the same columns that only counts."""

from __future__ import annotations

import sys
import time

import numpy as np

from measure import in_turn, ratios, spread
from oncebench.audit import Verdict, audit_columns, encode
from oncebench.messages import Event, History, State, Witness

OPERATIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
PER_ID = 4


def made() -> tuple[History, State]:
    """A sound run: four deliveries of each id, overlapping, in random order, the first of them applied."""
    rng = np.random.default_rng(7)
    ids = OPERATIONS // PER_ID
    number = rng.permutation(np.repeat(np.arange(ids), PER_ID))
    rows = np.arange(len(number))
    invoked = rows * 10 + 1
    first = np.full(ids, -1)
    first[number[::-1]] = rows[::-1]
    outcome = np.full(len(rows), 2)
    outcome[first] = 1
    qty = rng.integers(1, 99, ids)
    names = [f"message-{n}" for n in range(ids)]
    history = History(
        names, [""], rows % 4, number, qty[number], invoked, invoked + 35, outcome,
        np.zeros_like(rows), np.zeros(len(rows), dtype=np.bool_), rows, rows,
    )  # fmt: skip
    event = np.tile([int(Event.RECORDED), int(Event.EFFECT)], ids)
    in_order = np.sort(first)
    who = number[in_order]
    seen = Witness(
        event,
        np.repeat(qty[who], 2),
        np.repeat(in_order, 2),
        np.repeat(invoked[in_order] + 5, 2),
        [name for n in who.tolist() for name in (names[n], None)],
    )
    inbox = [(names[n], int(qty[n])) for n in who.tolist()]
    return history, State(int(qty.sum()), inbox, seen)


def main() -> None:
    """Print figures and ratios."""
    history, state = made()
    blind = State(state.total, state.inbox)
    columns, blind_columns = encode(history, State(0), state), encode(history, State(0), blind)

    def timed(work: object) -> float:
        start = time.perf_counter()
        work()  # type: ignore[operator]
        return OPERATIONS / (time.perf_counter() - start) / 1e6

    def judged(run: object) -> None:
        assert audit_columns(run).verdict is Verdict.SOUND  # type: ignore[arg-type]

    figures = in_turn(
        7,
        lambda: timed(lambda: np.bincount(history.id[history.outcome == 1], minlength=len(history.ids))),
        lambda: timed(lambda: judged(blind_columns)),
        lambda: timed(lambda: judged(columns)),
        lambda: timed(lambda: encode(history, State(0), state)),
    )
    print(f"{OPERATIONS:,} operations, {PER_ID} of each id; millions of operations a second")
    labels = ("one bincount (baseline)", "audit", "audit with witness", "numbering text ids")
    for label, column in zip(labels, figures, strict=True):
        print(f"{label:26} {spread(column, 1)}   ratio {spread(ratios(column, figures[0]), 3)}")


if __name__ == "__main__":
    main()
