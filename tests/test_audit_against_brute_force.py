import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from linearizability import Case, any_case, linearizable, real_case, states
from oncebench.audit import Verdict, audit
from oncebench.messages import NEVER, History, Operation, Outcome

WITNESSES = ("not", "calls", "foreign")
Maker = Callable[[random.Random], Case]


def agree(case: Case) -> bool:
    """Hold the audit against the brute force, with each kind of witness; whether the case is sound."""
    sound = linearizable(case.operations, case.before, case.after)
    for witnessed in WITNESSES:
        findings = audit(History.of(case.operations), *states(case, witnessed))
        assert (findings.verdict is Verdict.SOUND) == sound, (case, witnessed, findings)
    return sound


@pytest.mark.parametrize("make", [any_case, real_case])
@given(rng=st.randoms(use_true_random=False))
def test_hypothesis_finds_no_history_on_which_they_differ(make: Maker, rng: random.Random) -> None:
    """Sound exactly if some order of the operations explains everything."""
    event("sound" if agree(make(rng)) else "broken")


@pytest.mark.parametrize(("make", "least"), [(any_case, 100), (real_case, 1000)])
def test_thousands_of_seeded_histories_with_both_verdicts(make: Maker, least: int) -> None:
    """The same, on a fixed set in which neither verdict is rare."""
    rng = random.Random(2)
    sound = [agree(make(rng)) for _ in range(4000)]
    assert sound.count(True) >= least
    assert sound.count(False) >= least


def test_any_single_operation_with_any_inbox() -> None:
    """All histories of one operation, each before and after."""
    inboxes: tuple[dict[str, int], ...] = ({}, {"a": 1}, {"a": 2})
    sound = [
        agree(Case((Operation(0, "a", 1, 1, 2, outcome, call=0),), before, after))
        for outcome in Outcome
        for before in inboxes
        for after in inboxes
    ]
    # An answer is right between two inboxes only; saying nothing is right wherever nothing changed (3) and
    # where it may have been the one that applied (1).
    assert sound.count(True) == 3 * 1 + 3 * 4


APPLIED = Operation(0, "a", 1, 10, 20, Outcome.APPLIED)


def duplicate(invoked: int, completed: int) -> Operation:
    return replace(APPLIED, worker=1, invoked=invoked, completed=completed, outcome=Outcome.DUPLICATE)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ((), False),
        ((APPLIED,), True),
        ((APPLIED, APPLIED), False),
        ((APPLIED, duplicate(30, 40)), True),
        ((APPLIED, duplicate(5, 10)), True),
        ((APPLIED, duplicate(5, 9)), False),
        ((APPLIED, replace(APPLIED, qty=2, outcome=Outcome.CONFLICT)), True),
        ((APPLIED, replace(APPLIED, outcome=Outcome.CONFLICT)), False),
        ((duplicate(1, 2),), False),
        ((replace(APPLIED, outcome=Outcome.INDETERMINATE, completed=NEVER),), True),
        ((replace(APPLIED, outcome=Outcome.INDETERMINATE), duplicate(5, 9)), False),
        ((replace(APPLIED, outcome=Outcome.INDETERMINATE), duplicate(30, 40)), True),
        ((replace(APPLIED, outcome=Outcome.LOCKED),), True),
        ((replace(APPLIED, qty=2, outcome=Outcome.LOCKED),), False),
    ],
)
def test_the_brute_force_itself_on_histories_judged_by_hand(
    operations: tuple[Operation, ...], expected: bool
) -> None:
    """Nothing before, `a` with quantity 1 afterwards."""
    assert linearizable(operations, {}, {"a": 1}) is expected
