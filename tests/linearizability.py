"""A brute-force judge of small histories, and a maker of them: what the audit is held against.

The specification is a map from id to quantity, each key written once. Every order of the operations that
real time allows is tried on it (Herlihy and Wing's definition, with closed intervals).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from oncebench.messages import NEVER, Event, Operation, Outcome, State, Witness

Inbox = dict[str, int]
OPTIONAL = (Outcome.LOCKED, Outcome.ERROR, Outcome.INDETERMINATE)
"""Those that say nothing: each may take effect at any time after its invocation, or never.

For locked and error that is the audit's documented mercy: a failed call that did its work is a remark.
"""


def linearizable(operations: Sequence[Operation], before: Inbox, after: Inbox) -> bool:
    """Whether some order of the operations, one at a time, explains all answers and ends in this inbox."""
    must = [op for op in operations if op.outcome not in OPTIONAL]
    may = [replace(op, completed=NEVER) for op in operations if op.outcome in OPTIONAL]
    return _search(must, may, before, after)


def _search(must: list[Operation], may: list[Operation], inbox: Inbox, after: Inbox) -> bool:
    if not must and inbox == after:
        return True
    ready = [op for op in (*must, *may) if all(other.completed >= op.invoked for other in must)]
    for op in ready:  # nobody that is still to come was over before it began
        effect = _step(op, inbox)
        if effect is not None and _search(_without(op, must), _without(op, may), effect, after):
            return True
    return False


def _without(one: Operation, operations: list[Operation]) -> list[Operation]:
    at = next((n for n, op in enumerate(operations) if op is one), len(operations))
    return operations[:at] + operations[at + 1 :]


def _step(op: Operation, inbox: Inbox) -> Inbox | None:
    """The inbox after this operation; None if it could not have answered so."""
    there = inbox.get(op.id)
    applied = {**inbox, op.id: op.qty}
    if op.outcome is Outcome.APPLIED:
        return applied if there is None else None
    if op.outcome is Outcome.DUPLICATE:
        return inbox if there == op.qty else None
    if op.outcome is Outcome.CONFLICT:
        return inbox if there is not None and there != op.qty else None
    return applied if there is None else inbox


@dataclass(frozen=True)
class Case:
    """A small history between two inboxes."""

    operations: tuple[Operation, ...]
    before: Inbox
    after: Inbox


def any_case(rng: random.Random) -> Case:
    """Anything at all."""
    operations = []
    for call in range(rng.randrange(7)):
        invoked = rng.randrange(8)
        operations.append(
            Operation(
                worker=call,
                id=rng.choice("ab"),
                qty=rng.choice((1, 2)),
                invoked=invoked,
                completed=invoked + rng.randrange(6),
                outcome=rng.choice(list(Outcome)),
                call=call,
            )
        )
    return Case(tuple(operations), _any_inbox(rng), _any_inbox(rng))


def real_case(rng: random.Random) -> Case:
    """What a right receiver would leave behind, and perhaps a word of it changed."""
    before = inbox = _any_inbox(rng) if rng.random() < 0.3 else {}
    drawn = []
    for call in range(1 + rng.randrange(6)):
        invoked, length = rng.randrange(8), rng.randrange(6)
        fails = rng.choice(OPTIONAL) if rng.random() < 0.4 else None
        point = invoked + rng.randrange(length + 1 if fails is None else 10)  # when it takes effect
        drawn.append((point, rng.random(), call, invoked, invoked + length, fails))
    operations = []
    for _, _, call, invoked, completed, fails in sorted(drawn):
        id, qty = rng.choice("aab"), rng.choice((1, 1, 2))
        there = inbox.get(id)
        outcome = Outcome.DUPLICATE if there == qty else Outcome.CONFLICT
        if there is None and (fails is None or rng.random() < 0.5):
            outcome, inbox = Outcome.APPLIED, {**inbox, id: qty}
        if fails is Outcome.INDETERMINATE and rng.random() < 0.5:
            completed = NEVER
        operations.append(Operation(call, id, qty, invoked, completed, fails or outcome, call=call))
    rng.shuffle(operations)
    case = Case(tuple(operations), before, inbox)
    return _changed(case, rng) if rng.random() < 0.6 else case


def _changed(case: Case, rng: random.Random) -> Case:
    field = rng.choice(("outcome", "qty", "when", "after"))
    if field == "after":
        return replace(case, after=_any_inbox(rng))
    operations = list(case.operations)
    at = rng.randrange(len(operations))
    op = operations[at]
    match field:
        case "outcome":
            op = replace(op, outcome=rng.choice(list(Outcome)))
        case "qty":
            op = replace(op, qty=3 - op.qty)
        case _:
            invoked = rng.randrange(12)
            op = replace(op, invoked=invoked, completed=invoked + rng.randrange(4))
    operations[at] = op
    return replace(case, operations=tuple(operations))


def _any_inbox(rng: random.Random) -> Inbox:
    return {id: rng.choice((1, 2)) for id in "ab" if rng.random() < 0.5}


def states(case: Case, witnessed: str = "not") -> tuple[State, State]:
    """The states around a case, in which total and witness say just what the inbox says.

    Args:
        case: Between which inboxes.
        witnessed: "not" at all, by its "calls", or by a "foreign" connection.
    """
    new = {id: qty for id, qty in case.after.items() if id not in case.before}
    rows: list[tuple[int, int, int, int, str | None]] = []
    for id, qty in new.items():
        author = _author(case, id, qty)
        call, at = (-1, 0) if author is None or witnessed == "foreign" else (author.call, author.invoked)
        rows += [(Event.RECORDED, qty, call, at, id), (Event.EFFECT, qty, call, at, None)]
    after = State(100 + sum(new.values()), list(case.after.items()))
    if witnessed != "not":
        events, amounts, calls, times = np.array([r[:4] for r in rows], dtype=np.int64).reshape(-1, 4).T
        after = replace(after, witness=Witness(events, amounts, calls, times, [r[4] for r in rows]))
    return State(100, list(case.before.items())), after


def _author(case: Case, id: str, qty: int) -> Operation | None:
    """Who put this row there: the first that says so, else the first that may have."""
    able = [op for op in case.operations if op.id == id and op.qty == qty]
    sure = [op for op in able if op.outcome is Outcome.APPLIED]
    able = sure or [op for op in able if op.outcome in OPTIONAL]
    return min(able, key=lambda op: op.invoked, default=None)
