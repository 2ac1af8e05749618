"""Where a process can be killed: statements told from triggers, points in order, names by what was done."""

from itertools import pairwise
from signal import SIGKILL, SIGTERM

from hypothesis import given
from hypothesis import strategies as st

from oncebench.crash.points import (
    AFTER_COMMIT,
    AFTER_INSERT,
    AFTER_UPDATE,
    BEFORE_COMMIT,
    MOST_STATEMENTS,
    NEVER_COMES,
    Statement,
    Step,
    commits,
    effects,
    points,
    statements,
)


def steps(*texts: str) -> list[Step]:
    return [Step(n, n * 10, text) for n, text in enumerate(texts)]


def starts(bare: list[Step], watched: list[Step]) -> list[int]:
    found, fits = statements(bare, watched)
    assert fits
    return [each.start for each in found]


def test_without_triggers_each_step_is_a_statement() -> None:
    """Both runs are the same."""
    ran = steps("BEGIN", "INSERT", "COMMIT")
    assert starts(ran, ran) == [0, 1, 2]


def test_triggers_repeat_the_text_of_their_statement() -> None:
    """The steps that come on top with a witness belong to the statement before."""
    bare = steps("BEGIN", "INSERT", "UPDATE", "COMMIT")
    watched = steps("BEGIN", "INSERT", "INSERT", "INSERT", "UPDATE", "UPDATE", "COMMIT")
    found, _ = statements(bare, watched)
    assert [(each.start, each.end) for each in found] == [(0, 1), (1, 4), (4, 6), (6, NEVER_COMES)]


def test_a_statement_that_runs_many_times_in_a_row() -> None:
    """Each of them has its share of the triggers' steps."""
    bare = steps("BEGIN", "ADD", "ADD", "ADD", "COMMIT")
    watched = steps("BEGIN", *["ADD"] * 9, "COMMIT")
    assert starts(bare, watched) == [0, 1, 4, 7, 10]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.integers(1, 4)), max_size=6).filter(
        lambda runs: all(one[0] != two[0] for one, two in pairwise(runs))
    )
)
def test_statements_are_found_among_any_triggers(runs: list[tuple[str, int, int]]) -> None:
    """Runs of one text, each statement of a run with as many steps: exactly the first of each is found."""
    bare = steps(*[text for text, count, _ in runs for _ in range(count)])
    watched = steps(*[text for text, count, each in runs for _ in range(count * each)])
    expected: list[int] = []
    index = 0
    for _, count, each in runs:
        expected += range(index, index + count * each, each)
        index += count * each
    found, fits = statements(bare, watched)
    assert fits
    assert [one.start for one in found] == expected
    assert [one.end for one in found] == [*expected[1:], NEVER_COMES][: len(expected)]


def test_runs_that_do_not_fit_count_every_step() -> None:
    """More points than there need be, none too few."""
    for bare in (steps("BEGIN", "COMMIT"), steps("BEGIN", "SELECT", "COMMIT"), steps("BEGIN", *["ADD"] * 2)):
        watched = steps("BEGIN", "ADD", "ADD", "ADD", "COMMIT")
        found, fits = statements(bare, watched)
        assert not fits
        assert [each.start for each in found] == [0, 1, 2, 3, 4]


def test_no_statement_at_all() -> None:
    """A receiver without SQL."""
    assert statements([], []) == ([], True)
    assert statements([], [Step(NEVER_COMES, 5, "", (0, 0))]) == ([], True)


def test_what_a_statement_did_is_read_before_it_and_after_it() -> None:
    """The last one's effect is known from the end of the call."""
    ran = [Step(0, 1, "INSERT", (0, 0)), Step(1, 2, "UPDATE", (1, 0)), Step(NEVER_COMES, 3, "", (1, 7))]
    found, fits = statements(ran, ran)
    assert fits
    assert found == [
        Statement(0, 1, "INSERT", (0, 0), (1, 0)),
        Statement(1, NEVER_COMES, "UPDATE", (1, 0), (1, 7)),
    ]
    assert effects(found) == {1: [AFTER_INSERT], 2: [AFTER_UPDATE]}


def test_names_go_to_the_first_statement_that_did_it() -> None:
    """One statement may do both; one that changes nothing, or whose tables are unknown, has no name."""
    both = [Statement(0, 1, "both", (0, 0), (1, 7)), Statement(1, 2, "more", (1, 7), (1, 9))]
    assert effects(both) == {1: [AFTER_INSERT, AFTER_UPDATE]}
    assert effects([Statement(0, 1, "SELECT", (0, 0), (0, 0))]) == {}
    assert effects([Statement(0, 1, "INSERT", None, None)]) == {}


def test_a_commit_is_what_outlives_a_kill() -> None:
    """Before the first point whose state differs, and at it."""
    assert commits([(0, 0), (0, 0), (1, 7)], (0, 0)) == {1: BEFORE_COMMIT, 2: AFTER_COMMIT}
    assert commits([(0, 0), (0, 7), (1, 7)], (0, 0)) == {0: BEFORE_COMMIT, 1: AFTER_COMMIT}
    assert commits([(0, 0), (0, 0)], (0, 0)) == {}
    assert commits([(1, 7)], (0, 0)) == {0: AFTER_COMMIT}


def some(count: int) -> list[Statement]:
    return [Statement(n, n + 1, f"S{n}") for n in range(count)]


def test_points_come_in_the_order_of_the_call() -> None:
    """Before it, after each statement, after the answer; a redelivery after each statement only."""
    found = points({"first": some(2), "again": some(1)}, None, [SIGKILL])
    assert [(p.delivery, p.place, p.number, p.start) for p in found] == [
        ("first", "before call", 0, -1),
        ("first", "after statement", 1, 0),
        ("first", "after statement", 2, 1),
        ("first", "after ACK", 0, -1),
        ("again", "after statement", 1, 0),
    ]


def test_sigterm_comes_before_and_during_the_first_call() -> None:
    """Both signals, one after the other; before the call, and after each of its statements."""
    found = points({"first": some(2), "again": some(1)}, None, [SIGKILL, SIGTERM])
    assert [(p.delivery, p.number) for p in found if p.signal == SIGTERM] == [
        ("first", 0),
        ("first", 1),
        ("first", 2),
    ]


def test_a_server_dies_in_the_place_of_its_worker() -> None:
    """The worker has points of its own, before and after the call."""
    found = points({"first": [], "again": []}, {"first": some(1), "again": some(1)}, [SIGKILL])
    assert [(p.process, p.place) for p in found] == [
        ("worker", "before call"),
        ("server", "after statement"),
        ("worker", "before ACK"),
        ("worker", "after ACK"),
        ("server", "after statement"),
    ]


def test_of_a_long_call_both_ends_are_tried() -> None:
    """The numbers say which."""
    found = points({"first": some(MOST_STATEMENTS + 10), "again": []}, None, [SIGKILL])
    numbers = [p.number for p in found if p.place == "after statement"]
    half = MOST_STATEMENTS // 2
    assert numbers == [*range(1, half + 1), *range(half + 11, MOST_STATEMENTS + 11)]
