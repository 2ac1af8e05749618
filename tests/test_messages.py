import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

import oncebench
from oncebench.messages import MAX_QTY, NEVER, BadInput, History, Operation, Outcome

times = st.integers(0, NEVER)
operations = st.builds(
    Operation,
    worker=st.integers(0, 255),
    id=st.text(min_size=1),
    qty=st.integers(1, MAX_QTY),
    invoked=times,
    completed=times,
    outcome=st.sampled_from(Outcome),
    detail=st.text(),
    left_open=st.booleans(),
    delivery=st.integers(0, MAX_QTY),
    call=st.integers(0, MAX_QTY),
)


@given(st.lists(operations))
def test_operations_come_out_of_the_columns_as_they_went_in(rows: list[Operation]) -> None:
    """Every field, up to the largest values."""
    history = History.of(rows)
    assert len(history) == len(rows)
    assert [history[n] for n in range(len(history))] == rows
    assert len(set(history.ids)) == len(history.ids)
    assert len(set(history.details)) == len(history.details)


@given(st.lists(st.integers(-1, 6), max_size=8))
def test_calls_without_a_number_are_given_one_that_is_free(calls: list[int]) -> None:
    """Numbers that were there stay."""
    taken = {call for call in calls if call >= 0}
    made = History.of(
        [Operation(0, "a", 7, 1, 2, Outcome.APPLIED, call=call) for call in calls]
    ).call.tolist()
    assert [new for new, old in zip(made, calls, strict=True) if old >= 0] == [c for c in calls if c >= 0]
    given_ = [new for new, old in zip(made, calls, strict=True) if old < 0]
    assert len(set(given_)) == len(given_)
    assert taken.isdisjoint(given_)


def test_three_outcomes_are_completions() -> None:
    """Applied, duplicate and conflict; a lock error is not one."""
    complete = {outcome for outcome in Outcome if outcome.is_completion}
    assert complete == {Outcome.APPLIED, Outcome.DUPLICATE, Outcome.CONFLICT}


def test_a_receiver_pays_for_no_library() -> None:
    """Importing the package, or Conflict from it, loads neither numpy nor the command line."""
    code = "import sys; from oncebench import Conflict; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "oncebench.messages" in loaded.split()
    assert not {"numpy", "typer", "rich", "msgspec"} & set(loaded.split())


def test_the_public_names_are_there() -> None:
    """`__all__` is kept, and bad input is a ValueError to those who catch one."""
    assert all(hasattr(oncebench, name) for name in oncebench.__all__)
    assert issubclass(BadInput, ValueError)
