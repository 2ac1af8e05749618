"""What a race says besides its verdict: of lock errors, of calls that never end, of an inbox that forgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from oncebench.messages import DEADLINE, Delivery, History, Operation, Outcome, State
from oncebench.race import Policy, Race, race
from oncebench.receivers.loader import load
from oncebench.results.notes import notes_of
from oncebench.results.schema import Load
from oncebench.stores.sqlite import Settings
from oncebench.workload import Phase, Workload

A, D, C, L, E, U = Outcome
MS = 1_000_000


def call(id: str, at: int, outcome: Outcome, *, took: float = 1, detail: str = "") -> Operation:
    """Of worker 0, at and for so many milliseconds."""
    ends = at * MS + round(took * MS)
    return Operation(0, id, 5, at * MS, ends, outcome, delivery=1 + at, detail=detail)


def made(operations: Sequence[Operation], *, stuck: Sequence[int] = (), impatient: bool = False) -> Race:
    """One worker; call n is at n ms, and its process is new from the thousandth delivery on."""
    ended = Race("mine", Workload(workers=1), Settings(), Policy(), effective=[Settings()])
    many = [[Delivery("x", 5)] * 999]
    ended.phases = [
        Phase("warm-up", [[Delivery("w", 1)]]),
        Phase("spread", many, impatient=impatient),
        Phase("sequence", many, alone=True, restarted=True),
    ]
    ended.history = ended.drained = History.of(operations)
    ended.before = ended.between = ended.after = State(0)
    ended.stuck = list(stuck)
    return ended


def said(ended: Race) -> str:
    return "\n".join(notes_of(ended, Load()))


@pytest.mark.parametrize(
    ("name", "word"), [("immediate", ""), ("deferred", "refuses at once"), ("pruned", "its inbox forgets")]
)
def test_what_the_races_of_variants_say(name: str, word: str) -> None:
    """The right one, that waits and remembers, nothing at all."""
    workload = Workload(7, ids=60, phases=("paused", "impatient", "sequence"))
    ended = race(load(name), workload, Settings(synchronous="off"), Policy())
    assert word in said(ended)
    assert bool(said(ended)) == bool(word)


def test_a_refusal_at_once_is_held_against_the_timeout_that_did_not_apply() -> None:
    """Not one that had waited, not where there is no timeout."""
    waited = call("a", 0, L, took=5000, detail="SQLITE_BUSY")
    at_once = [call("b", n, L, took=0.01 * n, detail="SQLITE_BUSY_SNAPSHOT") for n in range(1, 4)]
    assert said(made([waited])) == ""
    text = said(made([waited, *at_once]))
    assert "3 of 4 lock errors (SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT)" in text
    assert "busy timeout of 5 s, half of them within 0.02 ms" in text
    assert said(made([waited, *at_once], impatient=True)) == ""
    hasty = made([waited, *at_once])
    hasty.effective = [Settings(), Settings(busy_timeout=0)]
    assert said(hasty) == ""


def test_a_call_that_never_ends_is_to_be_explored() -> None:
    """Its lock errors stay inside; one that is answered needs no word."""
    operations = [call("a", 0, A), call("b", 1, U, detail=DEADLINE)]
    assert said(made(operations)) == ""
    assert "oncebench explore" in said(made(operations, stuck=[1]))


def redelivered(known: Sequence[int], new: Sequence[int], *, first: int = 0) -> list[Operation]:
    """Ids that come again after so many others, and are known or applied again; the first at `first`."""
    operations, at = [], first
    for n, (between, outcome) in enumerate([*((k, D) for k in known), *((k, A) for k in new)]):
        for id in (f"m{n}", *(f"f{n}-{m}" for m in range(between))):
            operations.append(call(id, at := at + 2, A))
        operations.append(call(f"m{n}", at := at + 2, outcome))
    return operations


def test_an_inbox_that_forgets_has_its_window_named() -> None:
    """Both sides of it must have been seen, and often."""
    text = said(made(redelivered([1, 2, 3, 4, 5], [20, 21, 22, 23, 24])))
    assert "5 redeliveries were known, with at most 5 other orders in between" in text
    assert "5 applied again, with at least 20" in text
    assert said(made(redelivered([1, 2, 3, 4], [20, 21, 22, 23, 24]))) == ""
    assert said(made(redelivered([1, 2, 3, 4, 5], [20, 21, 22, 23]))) == ""


def test_one_that_remembers_longer_than_it_forgets_has_no_window() -> None:
    """To be applied again by chance is another fault."""
    assert said(made(redelivered([1, 2, 3, 4, 20], [20, 21, 22, 23, 24]))) == ""


def test_what_a_new_process_has_forgotten_is_no_window() -> None:
    """The same history, with the new start between the first deliveries and the second, and long after."""
    known, new = redelivered([1, 2, 3, 4, 5], []), redelivered([], [20], first=900)
    firsts = [replace(new[0], id=f"m{n}") for n in range(5)]
    known = [replace(op, id=f"k{op.id}") for op in known]

    def second_at(at: int) -> Race:
        seconds = [call(op.id, at + n, A) for n, op in enumerate(firsts)]
        return made([*known, *firsts, *new[1:-1], *seconds])

    assert "its inbox forgets" in said(second_at(960))
    assert said(second_at(1010)) == ""
