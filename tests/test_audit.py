import random
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from linearizability import any_case, real_case, states
from oncebench.audit import MOST_EXAMPLES, Findings, Kind, Verdict, audit, audit_columns, encode, overlapped
from oncebench.messages import DEADLINE, MAX_QTY, NEVER, Event, History, Operation, Outcome, State, Witness

APPLIED, DUPLICATE, CONFLICT = Outcome.APPLIED, Outcome.DUPLICATE, Outcome.CONFLICT
LOCKED, ERROR, OPEN = Outcome.LOCKED, Outcome.ERROR, Outcome.INDETERMINATE

Seen = tuple[Event, int, int, int, str | None]


@pytest.fixture(autouse=True)
def _no_warning_is_ignored() -> Iterator[None]:
    """An overflow or a division that numpy only warns of is a fault."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        yield


def op(
    outcome: Outcome,
    qty: int = 7,
    at: tuple[int, int] = (10, 20),
    id: str = "a",
    call: int = -1,
    detail: str = "",
    left_open: bool = False,
) -> Operation:
    return Operation(0, id, qty, *at, outcome, detail, left_open, call=call)


def effect(call: int, amount: int = 7, at: int = 15) -> Seen:
    return (Event.EFFECT, amount, call, at, None)


def recorded(call: int, amount: int = 7, at: int = 15, id: str = "a") -> Seen:
    return (Event.RECORDED, amount, call, at, id)


def witness(*seen: Seen) -> Witness:
    event, amount, call, at = np.array([row[:4] for row in seen], dtype=np.int64).reshape(-1, 4).T
    return Witness(event, amount, call, at, [row[4] for row in seen])


def state(total: int, inbox: dict[str, int] | Sequence[tuple[str, int]] = (), *seen: Seen) -> State:
    rows = list(inbox.items()) if isinstance(inbox, dict) else list(inbox)
    return State(total, rows, witness(*seen) if seen else None)


NOTHING = state(0)


@dataclass(frozen=True)
class Run:
    """What an audit is given."""

    operations: tuple[Operation, ...]
    after: State
    before: State = NOTHING
    stuck: tuple[int, ...] = ()
    drain_from: int | None = None

    def audit(self) -> Findings:
        return audit(History.of(self.operations), self.before, self.after, self.stuck, self.drain_from)


ONCE = Run((op(APPLIED), op(DUPLICATE, at=(15, 30))), state(7, {"a": 7}))
"""The sound twin of most: one delivery applied, one was told so."""
KEPT = Run((op(DUPLICATE), op(CONFLICT, 8)), state(7, {"a": 7}), state(7, {"a": 7}))
"""What was there before the run stays as it is."""

# Name: the broken run, the kinds it has, how many operations prove the first of them, its sound twin.
EXAMPLES: dict[str, tuple[Run, list[Kind], int, Run]] = {
    "answered applied twice, and the total agrees": (
        Run((op(APPLIED), op(APPLIED, at=(15, 30))), state(14, {"a": 7})),
        [Kind.DOUBLE_APPLY],
        2,
        ONCE,
    ),
    "answered applied twice, and the total does not agree": (
        Run((op(APPLIED), op(APPLIED, at=(15, 30))), state(7, {"a": 7})),
        [Kind.WRONG_ANSWER],
        1,
        ONCE,
    ),
    "answered applied twice, and the witness saw one effect": (
        Run(
            (op(APPLIED, call=1), op(APPLIED, at=(15, 30), call=2)),
            state(7, {"a": 7}, recorded(1), effect(1)),
        ),
        [Kind.WRONG_ANSWER],
        1,
        Run(
            (op(APPLIED, call=1), op(DUPLICATE, at=(15, 30), call=2)),
            state(7, {"a": 7}, recorded(1), effect(1)),
        ),
    ),
    "answered duplicate, and the witness saw it work again": (
        Run(
            (op(APPLIED, call=1), op(DUPLICATE, at=(15, 30), call=2)),
            state(14, {"a": 7}, recorded(1), effect(1), effect(2)),
        ),
        [Kind.DOUBLE_APPLY],
        2,
        Run(
            (op(APPLIED, call=1), op(DUPLICATE, at=(15, 30), call=2)),
            state(7, {"a": 7}, recorded(1), effect(1)),
        ),
    ),
    "applied again what was there before the run": (
        Run((op(APPLIED),), state(14, {"a": 7}), state(7, {"a": 7})),
        [Kind.DOUBLE_APPLY],
        1,
        KEPT,
    ),
    "worked again on what was there before the run, as the witness saw": (
        Run((op(APPLIED, call=1),), state(14, {"a": 7}, effect(1)), state(7, {"a": 7})),
        [Kind.DOUBLE_APPLY],
        1,
        KEPT,
    ),
    "answered applied of what was there before the run, without an effect": (
        Run((op(APPLIED),), state(7, {"a": 7}), state(7, {"a": 7})),
        [Kind.WRONG_ANSWER],
        1,
        KEPT,
    ),
    "a conflict applied as well": (
        Run((op(APPLIED), op(APPLIED, 8, (30, 40))), state(15, {"a": 7})),
        [Kind.DOUBLE_APPLY, Kind.WRONG_ANSWER],
        2,
        Run((op(APPLIED), op(CONFLICT, 8, (30, 40))), state(7, {"a": 7})),
    ),
    "applied, and nothing there": (
        Run((op(APPLIED),), NOTHING),
        [Kind.ACKED_BUT_LOST],
        1,
        Run((op(LOCKED),), NOTHING),
    ),
    "duplicate, and nothing there": (
        Run((op(DUPLICATE),), NOTHING),
        [Kind.ACKED_BUT_LOST],
        1,
        Run((op(OPEN),), NOTHING),
    ),
    "there before the run, gone after it": (
        Run((), state(7), state(7, {"a": 7})),
        [Kind.ACKED_BUT_LOST],
        0,
        Run((), state(7, {"a": 7}), state(7, {"a": 7})),
    ),
    "the quantity of an earlier run overwritten": (
        Run((op(CONFLICT, 8),), state(7, {"a": 8}), state(7, {"a": 7})),
        [Kind.RECORD_EFFECT_MISMATCH],
        1,
        KEPT,
    ),
    "the quantity overwritten by a conflict": (
        Run((op(APPLIED), op(CONFLICT, 8, (30, 40))), state(8, {"a": 8})),
        [Kind.RECORD_EFFECT_MISMATCH],
        2,
        Run((op(APPLIED), op(CONFLICT, 8, (30, 40))), state(7, {"a": 7})),
    ),
    "two rows of one id": (
        Run((op(APPLIED),), state(7, [("a", 7), ("a", 7)])),
        [Kind.RECORD_EFFECT_MISMATCH],
        1,
        Run((op(APPLIED),), state(7, [("a", 7)])),
    ),
    "a row that nobody delivered": (
        Run((op(APPLIED),), state(8, {"a": 7, "b": 1})),
        [Kind.RECORD_EFFECT_MISMATCH],
        0,
        Run((op(APPLIED), op(APPLIED, 1, id="b")), state(8, {"a": 7, "b": 1})),
    ),
    "a row of a quantity that no call without an answer had": (
        Run((op(OPEN, 8),), state(7, {"a": 7})),
        [Kind.RECORD_EFFECT_MISMATCH],
        1,
        Run((op(OPEN, 7),), state(7, {"a": 7})),
    ),
    "recorded without its work": (
        Run((op(APPLIED, call=1),), state(0, {"a": 7}, recorded(1))),
        [Kind.RECORD_EFFECT_MISMATCH],
        1,
        Run((op(APPLIED, call=1),), state(7, {"a": 7}, recorded(1), effect(1))),
    ),
    "the total is more than the inbox explains": (
        Run((op(APPLIED),), state(9, {"a": 7})),
        [Kind.RECORD_EFFECT_MISMATCH],
        0,
        Run((op(APPLIED),), state(7, {"a": 7})),
    ),
    "the total moved, and no trigger saw it": (
        Run((op(APPLIED, call=1),), state(9, {"a": 7}, recorded(1), effect(1))),
        [Kind.RECORD_EFFECT_MISMATCH],
        0,
        Run((op(APPLIED, call=1),), state(7, {"a": 7}, recorded(1), effect(1))),
    ),
    "duplicate of another quantity": (
        Run((op(APPLIED), op(DUPLICATE, 8, (30, 40))), state(7, {"a": 7})),
        [Kind.WRONG_ANSWER],
        2,
        ONCE,
    ),
    "conflict of the same quantity": (
        Run((op(APPLIED), op(CONFLICT, at=(30, 40))), state(7, {"a": 7})),
        [Kind.WRONG_ANSWER],
        2,
        ONCE,
    ),
    "conflict with nothing": (
        Run((op(CONFLICT),), NOTHING),
        [Kind.WRONG_ANSWER],
        1,
        Run((op(ERROR),), NOTHING),
    ),
    "duplicate before the applying call began": (
        Run((op(DUPLICATE, at=(1, 9)), op(APPLIED)), state(7, {"a": 7})),
        [Kind.WRONG_ANSWER],
        2,
        Run((op(DUPLICATE, at=(1, 10)), op(APPLIED)), state(7, {"a": 7})),
    ),
    "duplicate before the row was in the inbox": (
        Run(
            (op(APPLIED, call=1), op(DUPLICATE, at=(11, 14), call=2)),
            state(7, {"a": 7}, recorded(1, at=15), effect(1)),
        ),
        [Kind.WRONG_ANSWER],
        2,
        Run(
            (op(APPLIED, call=1), op(DUPLICATE, at=(11, 15), call=2)),
            state(7, {"a": 7}, recorded(1, at=15), effect(1)),
        ),
    ),
    "a failed call left its row, and nobody did the work": (
        Run((op(LOCKED, call=1), op(DUPLICATE, at=(30, 40), call=2)), state(0, {"a": 7}, recorded(1))),
        [Kind.RECORD_EFFECT_MISMATCH, Kind.GHOST_APPLY],
        1,
        Run(
            (op(LOCKED, call=1), op(APPLIED, at=(30, 40), call=2)), state(7, {"a": 7}, recorded(2), effect(2))
        ),
    ),
    "a conflict with what was there before the run applied": (
        Run((op(APPLIED, 8),), state(15, {"a": 7}), state(7, {"a": 7})),
        [Kind.DOUBLE_APPLY, Kind.WRONG_ANSWER],
        1,
        KEPT,
    ),
    "a conflict with what was there before the run answered applied": (
        Run((op(APPLIED, 8),), state(7, {"a": 7}), state(7, {"a": 7})),
        [Kind.WRONG_ANSWER],
        1,
        KEPT,
    ),
    "duplicate, and no call can have applied it": (
        Run((op(DUPLICATE),), state(7, {"a": 7})),
        [Kind.WRONG_ANSWER, Kind.RECORD_EFFECT_MISMATCH],
        1,
        Run((op(DUPLICATE), op(OPEN)), state(7, {"a": 7})),
    ),
    "duplicate, and nothing there, nor was there ever": (
        Run(
            (op(DUPLICATE, call=1), op(APPLIED, id="b", call=2)),
            state(7, {"b": 7}, recorded(2, id="b"), effect(2)),
        ),
        [Kind.ACKED_BUT_LOST],
        1,
        Run(
            (op(LOCKED, call=1), op(APPLIED, id="b", call=2)),
            state(7, {"b": 7}, recorded(2, id="b"), effect(2)),
        ),
    ),
    "a failed call did its work without a row, and another worked again": (
        Run(
            (op(LOCKED, call=1), op(APPLIED, at=(30, 40), call=2)),
            state(14, {"a": 7}, effect(1), effect(2), recorded(2)),
        ),
        [Kind.DOUBLE_APPLY, Kind.GHOST_APPLY],
        2,
        Run(
            (op(LOCKED, call=1), op(APPLIED, at=(30, 40), call=2)), state(7, {"a": 7}, effect(2), recorded(2))
        ),
    ),
    "redelivered until answered conflict, and nothing there": (
        Run((op(LOCKED), op(CONFLICT, at=(30, 40))), NOTHING, drain_from=1),
        [Kind.WRONG_ANSWER, Kind.LOST],
        1,
        Run((op(LOCKED), op(CONFLICT, at=(30, 40))), state(8, {"a": 8}), state(8, {"a": 8}), drain_from=1),
    ),
    "came back with its transaction open": (
        Run((op(APPLIED, left_open=True),), state(7, {"a": 7})),
        [Kind.LEFT_OPEN],
        1,
        Run((op(APPLIED),), state(7, {"a": 7})),
    ),
    "redelivered until answered, and not there": (
        Run((op(LOCKED), op(APPLIED, at=(30, 40))), NOTHING, drain_from=1),
        [Kind.ACKED_BUT_LOST, Kind.LOST],
        1,
        Run((op(LOCKED), op(APPLIED, at=(30, 40))), state(7, {"a": 7}), drain_from=1),
    ),
    "redelivered until answered, and never an effect": (
        Run(
            (op(LOCKED, call=1), op(DUPLICATE, at=(30, 40), call=2)),
            state(0, {"a": 7}, recorded(1)),
            drain_from=1,
        ),
        [Kind.RECORD_EFFECT_MISMATCH, Kind.GHOST_APPLY, Kind.LOST],
        1,
        Run(
            (op(LOCKED, call=1), op(DUPLICATE, at=(30, 40), call=2)),
            state(7, {"a": 7}, recorded(1), effect(1)),
            drain_from=1,
        ),
    ),
    "redelivered in vain": (
        Run((op(LOCKED), op(LOCKED, at=(30, 40), detail="SQLITE_BUSY")), NOTHING, stuck=(1,), drain_from=1),
        [Kind.STUCK],
        1,
        Run((op(LOCKED), op(APPLIED, at=(30, 40))), state(7, {"a": 7}), drain_from=1),
    ),
    "never came back": (
        Run((op(OPEN, at=(10, NEVER), detail=DEADLINE),), NOTHING),
        [Kind.STUCK],
        1,
        Run((op(OPEN, at=(10, NEVER), detail="killed"),), NOTHING),
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_fault_is_named_and_its_sound_twin_is_not(name: str) -> None:
    """Just these kinds, once each, of the id in question, with their proof."""
    broken, kinds, operations, twin = EXAMPLES[name]
    assert twin.audit().counts == {}
    findings = broken.audit()
    assert findings.verdict is Verdict.BROKEN
    assert set(findings.counts) == set(kinds)
    assert set(findings.counts.values()) == {1}
    assert len(findings.violations) == len(kinds)
    first = next(v for v in findings.violations if v.kind is kinds[0])
    assert len(first.operations) == operations
    assert list(first.operations) == sorted(first.operations, key=lambda operation: operation.invoked)
    pinned = (
        {"b"} if "nobody delivered" in name else {""} if "the total m" in name or "is more" in name else {"a"}
    )
    assert {v.id for v in findings.violations} == pinned


def test_every_kind_has_an_example() -> None:
    """No kind is left out above."""
    assert {kind for _, kinds, _, _ in EXAMPLES.values() for kind in kinds} == set(Kind)


def test_the_proof_of_a_mismatch_is_the_call_that_left_something() -> None:
    """Not those that were told of it."""
    left, told = op(LOCKED, call=1), op(DUPLICATE, at=(30, 40), call=2)
    findings = Run((left, told), state(0, {"a": 7}, recorded(1))).audit()
    assert {violation.operations for violation in findings.violations} == {(left,)}


@pytest.mark.parametrize(
    ("total", "said"), [(9, "went from 0 to 9, 2 more"), (4, "went from 0 to 4, 3 less")]
)
def test_a_total_that_is_off_says_by_how_much(total: int, said: str) -> None:
    """And in which direction."""
    [violation] = Run((op(APPLIED),), state(total, {"a": 7})).audit().violations
    assert said in violation.message


def test_only_what_the_drain_redelivered_can_be_lost() -> None:
    """Not what was there before the run, nor what was answered in the race: that has kinds of its own."""
    was, rewritten = state(7, {"a": 7}), state(7, {"a": 7}, recorded(2))
    known = Run((op(LOCKED, call=1), op(DUPLICATE, call=2)), rewritten, was, drain_from=1)
    assert known.audit().counts == {}
    calls = op(APPLIED, call=1), op(LOCKED, id="b", call=2), op(APPLIED, id="b", at=(30, 40), call=3)
    after = state(7, {"a": 7, "b": 7}, recorded(1), recorded(3, id="b"), effect(3))
    assert Run(calls, after, drain_from=1).audit().counts == {Kind.RECORD_EFFECT_MISMATCH: 1}
    assert Run(calls[:1], NOTHING, drain_from=1).audit().counts == {Kind.ACKED_BUT_LOST: 1}


def test_the_proof_of_a_double_apply_is_the_pair_that_overlapped() -> None:
    """Of three that applied, the two in flight at once, if only for an instant; others came earlier."""
    for touching in (15, 20):
        calls = op(APPLIED, at=(1, 2)), op(APPLIED, at=(10, 20)), op(APPLIED, at=(touching, 30))
        [violation] = Run(calls, state(21, {"a": 7})).audit().violations
        assert [operation.invoked for operation in violation.operations] == [10, touching]


def test_the_proof_of_a_double_apply_is_those_that_the_witness_saw() -> None:
    """One that only claimed it is no proof, even if it overlapped."""
    calls = op(APPLIED, call=1), op(APPLIED, at=(15, 30), call=2), op(APPLIED, at=(40, 50), call=3)
    after = state(14, {"a": 7}, recorded(1), effect(1), effect(3))
    [violation] = Run(calls, after).audit().violations
    assert [operation.call for operation in violation.operations] == [1, 3]


def test_counts_are_exact_and_examples_few() -> None:
    """All ids count, MOST_EXAMPLES of them are written out, those with the fewest operations first."""
    many = MOST_EXAMPLES + 4
    calls = [op(APPLIED, id=f"{n:02}") for n in range(many) for _ in range(2 + (n == 0))]
    after = state(7 * len(calls), {f"{n:02}": 7 for n in range(many)})
    findings = Run(tuple(calls), after).audit()
    assert findings.counts == {Kind.DOUBLE_APPLY: many}
    assert [v.id for v in findings.violations] == [f"{n:02}" for n in range(1, 1 + MOST_EXAMPLES)]


@pytest.mark.parametrize("outcome", [LOCKED, ERROR])
@pytest.mark.parametrize("watched", [True, False])
def test_a_failed_call_that_did_its_work_is_a_remark(outcome: Outcome, watched: bool) -> None:
    """Harmless to a publisher that redelivers; without it there is no remark."""
    seen = (recorded(1), effect(1)) if watched else ()
    failed, told = op(outcome, call=1), op(DUPLICATE, at=(30, 40), call=2)
    findings = Run((failed, told), state(7, {"a": 7}, *seen)).audit()
    assert findings.counts == {}
    [remark] = findings.remarks
    assert (remark.kind, remark.id, remark.operations) == (Kind.GHOST_APPLY, "a", (failed,))
    for silent in (ONCE, KEPT):
        assert silent.audit().remarks == []


def test_no_remark_where_a_call_without_an_answer_may_have_done_it() -> None:
    """Without a witness nobody knows which of the two it was: none is named."""
    assert Run((op(LOCKED), op(OPEN, at=(12, NEVER))), state(7, {"a": 7})).audit().remarks == []


def test_a_failed_call_whose_rest_another_did_is_a_remark() -> None:
    """Its row, and the other's effect: together they are what there should be."""
    failed, applied = op(LOCKED, call=1), op(APPLIED, at=(30, 40), call=2)
    findings = Run((failed, applied), state(7, {"a": 7}, recorded(1), effect(2))).audit()
    assert findings.counts == {}
    assert [remark.operations for remark in findings.remarks] == [(failed,)]
    by_a_stranger = Run((failed, applied), state(7, {"a": 7}, recorded(-1, at=0), effect(2)))
    assert by_a_stranger.audit() == Findings()


def test_a_failed_call_that_did_all_its_work_is_not_blamed_for_the_second_time() -> None:
    """The one that applied again is the fault, and the failed one a part of its proof."""
    calls = op(LOCKED, call=1), op(APPLIED, at=(30, 40), call=2)
    findings = Run(calls, state(14, {"a": 7}, recorded(1), effect(1), effect(2))).audit()
    assert findings.counts == {Kind.DOUBLE_APPLY: 1}
    assert findings.violations[0].operations == calls
    assert findings.remarks == []


def test_one_remark_for_one_row() -> None:
    """Of several failed calls the first that had the quantity; others cannot have done it, or need not."""
    calls = op(LOCKED, 8, call=0), op(LOCKED, call=1), op(LOCKED, at=(12, 20), call=2)
    others = op(OPEN, 8, call=3), op(DUPLICATE, call=4)
    [remark] = Run(calls + others, state(7, {"a": 7})).audit().remarks
    assert [operation.call for operation in remark.operations] == [1]


def test_no_remark_on_a_failed_call_beside_the_one_that_applied() -> None:
    """Invoked at the same instant, of the same message."""
    assert Run((op(LOCKED), op(APPLIED)), state(7, {"a": 7})).audit() == Findings()


@pytest.mark.parametrize("qty", [0, -7, MAX_QTY])
def test_rows_of_before_the_run_may_have_any_quantity(qty: int) -> None:
    """They stay as they are, and everything delivered for them is a conflict."""
    was = state(7, {"a": qty})
    assert Run((op(CONFLICT, 5),), was, was).audit().counts == {}
    assert Run((op(DUPLICATE, 5),), was, was).audit().counts == {Kind.WRONG_ANSWER: 1}
    assert Run((op(APPLIED, 5),), state(12, {"a": qty}), was).audit().counts == {
        Kind.DOUBLE_APPLY: 1,
        Kind.WRONG_ANSWER: 1,
    }
    assert Run((), state(7, {"a": 5}), was).audit().counts == {Kind.RECORD_EFFECT_MISMATCH: 1}


def test_a_row_of_before_the_run_may_be_written_again() -> None:
    """Replaced by the same: those who were told before that knew it from the earlier one."""
    was, rewritten = state(7, {"a": 7}), state(7, {"a": 7}, recorded(2, at=50))
    calls = op(DUPLICATE, call=1), op(DUPLICATE, at=(40, 60), call=2)
    assert Run(calls, rewritten, was).audit().counts == {}
    assert Run(calls, rewritten).audit().counts[Kind.WRONG_ANSWER] == 1


def test_a_row_of_unknown_origin_accuses_nobody_of_knowing_it_early() -> None:
    """A connection of the receiver's own recorded it first, a known call rewrote it later."""
    calls = op(APPLIED, at=(1, 30), call=1), op(DUPLICATE, at=(2, 10), call=2)
    early = recorded(-1, at=0)
    assert Run(calls, state(7, {"a": 7}, early, recorded(1, at=20), effect(1, at=5))).audit().counts == {}
    counts = Run(calls, state(7, {"a": 7}, recorded(1, at=20), effect(1, at=5))).audit().counts
    assert counts == {Kind.WRONG_ANSWER: 1}


# Effects


@st.composite
def effects_by_call(draw: st.DrawFn) -> list[list[list[int]]]:
    """For each of a few ids, for each of its three calls, the changes it made to the total."""
    change = st.sampled_from([-7, -3, 3, 4, 7, 14])
    right = st.sampled_from([[[7], [], []], [[3, 4], [], []], [[], [14, -7], []]])
    wrong = st.lists(st.lists(change, max_size=2), min_size=3, max_size=3)
    return draw(st.lists(st.one_of(right, wrong), min_size=1, max_size=4))


def run_of(effects: list[list[list[int]]], watched: bool, foreign: int | None = None) -> Run:
    """Each id was applied by its first call and answered duplicate by two more.

    Who changed the total is a call of the history, or a foreign one.
    """
    calls, seen, total = [], [], 0
    for n, by_call in enumerate(effects):
        for m, changes in enumerate(by_call):
            call = 3 * n + m
            calls.append(op(DUPLICATE if m else APPLIED, at=(10 + m, 20 + m), id=f"{n}", call=call))
            seen += [effect(call if foreign is None else foreign, amount) for amount in changes]
            total += sum(changes)
        seen.append(recorded(3 * n, at=5, id=f"{n}"))
    inbox = {f"{n}": 7 for n in range(len(effects))}
    return Run(tuple(calls), state(total, inbox, *(seen if watched else ())))


@given(effects_by_call())
def test_every_id_whose_effects_differ_from_the_inbox_is_named(effects: list[list[list[int]]]) -> None:
    """Doubled, missing, lost or compensated by another id: by kind, and no id that is right."""
    sums = [[sum(changes) for changes in by_call] for by_call in effects]
    doubled = {f"{n}" for n, s in enumerate(sums) if sum(s) > 7 and sum(x != 0 for x in s) > 1}
    other = {f"{n}" for n, s in enumerate(sums) if sum(s) != 7} - doubled
    findings = run_of(effects, watched=True).audit()
    named = {kind: {v.id for v in findings.violations if v.kind is kind} for kind in Kind}
    assert named[Kind.DOUBLE_APPLY] == doubled
    assert named[Kind.RECORD_EFFECT_MISMATCH] == other
    assert sum(findings.counts.values()) == len(doubled) + len(other)


@pytest.mark.parametrize(("watched", "foreign"), [(False, -1), (True, -1), (True, 10**6)])
@given(effects=effects_by_call())
def test_without_attribution_the_total_alone_decides(
    watched: bool, foreign: int, effects: list[list[list[int]]]
) -> None:
    """No witness, or effects by a connection that is not the bench's, or by a call that is not recorded."""
    right = sum(sum(changes) for by_call in effects for changes in by_call) == 7 * len(effects)
    assume(any(changes for by_call in effects for changes in by_call))  # that of none is certain
    findings = run_of(effects, watched, foreign).audit()
    assert findings.counts == ({} if right else {Kind.RECORD_EFFECT_MISMATCH: 1})
    assert [v.id for v in findings.violations] == ([] if right else [""])


def test_errors_that_cancel_out_are_seen_by_the_witness_alone() -> None:
    """One id doubled, another without effect: the total looks right."""
    effects: list[list[list[int]]] = [[[7], [7], []], [[], [], []]]
    assert run_of(effects, watched=False).audit().counts == {}
    counts = run_of(effects, watched=True).audit().counts
    assert counts == {Kind.DOUBLE_APPLY: 1, Kind.RECORD_EFFECT_MISMATCH: 1}


# The edge of 64 bits


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("ids", [1, 2, 3])
def test_the_largest_quantities_are_summed_exactly(ids: int, watched: bool) -> None:
    """Any number of ids of 2**63-1; one off in the total is seen, one off in an effect too."""
    names = [f"{n}" for n in range(ids)]
    calls = tuple(op(APPLIED, MAX_QTY, id=id, call=n) for n, id in enumerate(names))
    seen = [recorded(n, MAX_QTY, id=id) for n, id in enumerate(names)]
    seen += [effect(n, MAX_QTY) for n in range(ids)]
    for off in (0, 1, -1):
        after = state(ids * MAX_QTY + off, dict.fromkeys(names, MAX_QTY), *(seen if watched else ()))
        counts = Run(calls, after).audit().counts
        assert counts == ({Kind.RECORD_EFFECT_MISMATCH: 1} if off else {})


@pytest.mark.parametrize("times", [2, 3, 5])
@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("qty", [MAX_QTY, 2**62])
def test_large_effects_do_not_wrap_around(times: int, watched: bool, qty: int) -> None:
    """Five times 2**62 is 2**62 again in 64 bits: still a double apply, with its true sum in the message."""
    calls = tuple(op(APPLIED, qty, call=n) for n in range(times))
    seen = [recorded(0, qty), *(effect(n, qty) for n in range(times))]
    findings = Run(calls, state(times * qty, {"a": qty}, *(seen if watched else ()))).audit()
    assert findings.counts == {Kind.DOUBLE_APPLY: 1}
    assert str(times * qty) in findings.violations[0].message


@pytest.mark.parametrize("total", [-(2**63), 2**63 - 1 - 7])
def test_totals_at_the_edge(total: int) -> None:
    """A store that starts at either end of the 64-bit integers."""
    assert Run((op(APPLIED),), state(total + 7, {"a": 7}), state(total)).audit().counts == {}
    counts = Run((op(APPLIED),), state(total + 6, {"a": 7}), state(total)).audit().counts
    assert counts == {Kind.RECORD_EFFECT_MISMATCH: 1}


# Form


def test_an_empty_history_is_sound_if_nothing_changed() -> None:
    """No operation at all; a total that moved nonetheless is seen."""
    for seen in ((), (recorded(-1),)):
        nothing = replace(NOTHING, witness=witness(*seen[:0]) if seen else None)
        assert Run((), nothing).audit() == Findings()
        assert Run((), replace(nothing, total=1)).audit().counts == {Kind.RECORD_EFFECT_MISMATCH: 1}
    assert overlapped(History.of([])).tolist() == []


@pytest.mark.parametrize("witnessed", ["not", "calls", "foreign"])
@given(rng=st.randoms(use_true_random=False))
def test_neither_row_order_nor_numbers_of_ids_matter(witnessed: str, rng: random.Random) -> None:
    """Rows shuffled, which renumbers ids too, with the calls' own numbers kept: the same findings."""
    case = (any_case if rng.random() < 0.5 else real_case)(rng)
    before, after = states(case, witnessed)
    shuffled = list(case.operations)
    rng.shuffle(shuffled)
    rows = replace(after, inbox=after.inbox[::-1])
    one = audit(History.of(case.operations), before, after)
    two = audit(History.of(shuffled), replace(before, inbox=before.inbox[::-1]), rows)
    assert one.counts == two.counts
    assert {(v.kind, v.id) for v in one.violations} == {(v.kind, v.id) for v in two.violations}
    assert {v.id for v in one.remarks} == {v.id for v in two.remarks}


@given(rng=st.randoms(use_true_random=False))
def test_overlaps_are_those_of_a_comparison_of_all_pairs(rng: random.Random) -> None:
    """Closed intervals that share an instant, within one id."""
    operations = any_case(rng).operations
    history = History.of(operations)
    pairs = [(x, y) for n, x in enumerate(operations) for y in operations[:n] if x.id == y.id]
    meeting = {x.id for x, y in pairs if x.invoked <= y.completed and y.invoked <= x.completed}
    assert {id for id, flag in zip(history.ids, overlapped(history), strict=True) if flag} == meeting


def test_the_worst_verdict_wins() -> None:
    """Broken before unknown before sound; nothing at all is unknown."""
    sound, unknown, broken = Verdict.SOUND, Verdict.UNKNOWN, Verdict.BROKEN
    assert Verdict.worst([]) is unknown
    assert Verdict.worst([sound, sound]) is sound
    assert Verdict.worst([sound, unknown]) is unknown
    assert Verdict.worst([unknown, broken, sound]) is broken


def test_two_audits_of_one_run_are_joined_without_counting_an_id_twice() -> None:
    """The second has the ids of the first again and one more."""

    def doubled(ids: str) -> Findings:
        calls = [op(APPLIED, id=id) for id in ids for _ in range(2)]
        return Run(tuple(calls), state(7 * len(calls), dict.fromkeys(ids, 7))).audit()

    assert doubled("ab").join(doubled("abc")).counts == {Kind.DOUBLE_APPLY: 3}
    joined = doubled("ab").join(doubled("cd"))
    assert joined.counts == {Kind.DOUBLE_APPLY: 4}
    assert [v.id for v in joined.violations] == list("abcd")
    assert Findings().join(Findings()) == Findings()


def lines_run(operations: int) -> int:
    """Lines of Python that one audit of so many operations takes."""
    n = np.arange(operations, dtype=np.int64)
    zeros = np.zeros(operations, dtype=np.int64)
    history = History(
        [f"{id}" for id in range(100)], [""], zeros, n % 100, zeros + 7, n, n + 5,
        np.where(n < 100, int(APPLIED), int(DUPLICATE)), zeros, zeros > 0, n, n,
    )  # fmt: skip
    first = n[:100]
    event = np.repeat([int(Event.EFFECT), int(Event.RECORDED)], 100)
    ids = [None] * 100 + [f"{id}" for id in range(100)]
    seen = Witness(event, np.full(200, 7), np.tile(first, 2), np.tile(first, 2), ids)
    run = encode(history, NOTHING, State(700, [(f"{id}", 7) for id in range(100)], seen))
    lines = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert audit_columns(run).counts == {}
    finally:
        sys.settrace(before)
    return lines


def test_no_python_runs_for_each_operation() -> None:
    """A hundred times as many operations of the same ids take the same lines of Python."""
    assert lines_run(100_000) == lines_run(1_000) > 0


# Work that a call did for another one


def test_call_may_finish_what_another_one_began() -> None:
    """A recovery: the effect is credited to the id whose row came with it, not to the caller's."""
    began = op(LOCKED, 7, id="a", call=0, at=(1, 5))
    finished = op(APPLIED, 5, id="b", call=1)
    seen = [recorded(1, 7, id="a"), effect(1, 7), recorded(1, 5, id="b"), effect(1, 5)]
    assert Run((began, finished), state(12, {"a": 7, "b": 5}, *seen)).audit().counts == {}
    lost = [recorded(1, 7, id="a"), recorded(1, 5, id="b"), effect(1, 5)]
    counts = Run((began, finished), state(5, {"a": 7, "b": 5}, *lost)).audit().counts
    assert counts[Kind.RECORD_EFFECT_MISMATCH] == 1
    twice = [*seen, effect(2, 7)]
    again = op(APPLIED, 7, id="a", call=2, at=(30, 40))
    counts = Run((began, finished, again), state(19, {"a": 7, "b": 5}, *twice)).audit().counts
    assert counts == {Kind.DOUBLE_APPLY: 1}


def test_effects_under_ids_that_nobody_delivers_are_the_callers() -> None:
    """A key made anew for each attempt: recorded and worked twice for one message."""
    calls = op(APPLIED, 7, call=0), op(APPLIED, 7, call=1, at=(30, 40))
    seen = [recorded(0, 7, id="x1"), effect(0, 7), recorded(1, 7, id="x2"), effect(1, 7)]
    findings = Run(calls, state(14, {"x1": 7, "x2": 7}, *seen)).audit()
    [violation] = [v for v in findings.violations if v.kind is Kind.DOUBLE_APPLY]
    assert violation.id == "a"
    assert len(violation.operations) == 2


def test_known_before_the_effect_is_a_wrong_answer() -> None:
    """A row is committed, a duplicate told so, and the effect comes later: a crash between would lose it."""
    calls = op(APPLIED, 7, call=0, at=(1, 40)), op(DUPLICATE, 7, call=1, at=(5, 12))
    for moment, kinds in ((10, {}), (30, {Kind.WRONG_ANSWER: 1})):
        seen = [recorded(0, 7, at=8), effect(0, 7, at=moment)]
        assert Run(calls, state(7, {"a": 7}, *seen)).audit().counts == kinds
