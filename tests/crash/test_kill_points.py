"""Real processes killed at every point: what each receiver is known for, and nothing else, is found."""

from __future__ import annotations

import signal
from functools import cache
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest

from oncebench.crash import points
from oncebench.crash.campaign import crash
from oncebench.crash.points import NAMES
from oncebench.receivers.loader import load
from oncebench.receivers.registry import LESSON, VARIANTS
from oncebench.results.crashed import label_of, of_crashes
from oncebench.results.schema import Point, VariantResult
from oncebench.stores.sqlite import Journal, Settings

HERE = Path(__file__).parent


@cache
def killed(
    target: str,
    journal: Journal = "wal",
    signals: tuple[signal.Signals, ...] = (SIGKILL,),
    deadline: float = 20,
    successor: str | None = None,
) -> VariantResult:
    """A receiver killed everywhere. A process dies, the machine does not: the disk need not be waited for."""
    ended = crash(
        load(target),
        Settings(journal=journal, synchronous="off", busy_timeout=0.5),
        deadline=deadline,
        signals=signals,
        successor=load(successor) if successor else None,
    )
    return of_crashes(target, "sound", [ended])


def dying(name: str) -> str:
    return f"{HERE / 'dying.py'}:{name}"


def own(name: str) -> str:
    return f"{HERE.parent / 'their_own.py'}:{name}"


def named(result: VariantResult, name: str) -> Point:
    """The point of that name, under SIGKILL."""
    [point] = [p for p in result.points if name in p.names and p.signal == "SIGKILL"]
    return point


def broken_at(result: VariantResult) -> set[tuple[str, str, int, str]]:
    return {(p.signal, p.delivery, p.number, p.statement) for p in result.points if p.verdict == "broken"}


IN_BOTH = ("group", "id_first", "ack_early")
"""Each kill costs an interpreter; `results/reference-crash` has all variants in both journal modes."""


KNOWN = {
    "memory": ("after commit before ACK", 1, 7, "applied", 14),
    "id_first": ("after inbox insert", 1, 0, "duplicate", 0),
    "stock_first": ("after commit before ACK", 0, 7, "applied", 14),
}
"""Where a loss or a double happens: inbox rows, total, what the redelivery is told, the total at the end."""


@pytest.mark.parametrize(
    ("name", "journal"), [*((name, "wal") for name in LESSON), *((name, "delete") for name in IN_BOTH)]
)
def test_variant_gets_its_declared_verdict(name: str, journal: Journal) -> None:
    """Every shipped variant with the kinds it is known for, killed where planned."""
    variant = VARIANTS[name]
    result = killed(name, journal)
    assert result.verdict == variant.expected_in("crash"), (result.violations, result.because)
    assert set(variant.crash_kinds) <= {violation.kind for violation in result.violations}
    assert all(point.reached for point in result.points)
    assert result.notes == []
    if name in KNOWN:
        where, *figures = KNOWN[name]
        at = named(result, where)
        assert [at.rows, at.total, at.redelivered, at.total_at_end] == figures
        assert len(broken_at(result)) == (1 if name.endswith("_first") else 2)  # sound everywhere else
    if name == "ack_early":
        [acked] = [p for p in result.points if p.place == "after ACK"]
        assert (acked.answered, acked.rows, acked.total) == ("applied", 0, 0)
        assert {"acked_but_lost", "left_open"} <= set(acked.violations)
    if not variant.crash_kinds:
        assert [(p.rows_at_end, p.total_at_end) for p in result.points] == [(1, 7)] * len(result.points)
        assert {(p.rows, p.total, p.redelivered) for p in result.points} <= {
            (0, 0, "applied"),
            (1, 7, "duplicate"),
        }


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_immediate_ends_at_seven_at_every_point(journal: Journal) -> None:
    """At all named points: nothing is there before the commit, all after it, one row at the end."""
    result = killed("immediate", journal, (SIGKILL, SIGTERM))
    assert [label_of(p) for p in result.points if p.signal == "SIGTERM"] == [
        label_of(p)
        for p in result.points
        if p.signal == "SIGKILL" and p.delivery == "first" and p.place != "after ACK"
    ]
    assert [(p.rows_at_end, p.total_at_end, p.verdict) for p in result.points] == [(1, 7, "sound")] * len(
        result.points
    )
    durable = {name: (named(result, name).rows, named(result, name).redelivered) for name in NAMES}
    assert durable == {
        "after inbox insert": (0, "applied"),
        "after total update": (0, "applied"),
        "before commit": (0, "applied"),
        "after commit before ACK": (1, "duplicate"),
    }
    assert named(result, "after inbox insert").statement.startswith("INSERT INTO inbox")
    assert named(result, "after total update").statement.startswith("UPDATE stock")
    assert named(result, "after commit before ACK").statement == "COMMIT"
    assert {p.conflicting for p in result.points} == {"conflict"}
    assert result.tallies.indeterminate == sum(
        p.place not in ("before call", "after ACK") for p in result.points
    )


def test_the_server_is_killed_at_its_own_statements() -> None:
    """`group`: the writer dies and a new one takes its place; the worker's call is without an answer."""
    result = killed("group")
    served = [p for p in result.points if p.process == "server"]
    assert [p.statement.split()[0] for p in served if p.delivery == "first"] == [
        "BEGIN", "SELECT", "INSERT", "UPDATE", "COMMIT",
    ]  # fmt: skip
    assert {p.answered for p in served} == {""}
    assert named(result, "after commit before ACK").process == "server"


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("LegacyTransactions", ["BEGIN", "INSERT", "UPDATE", "COMMIT"]),
        ("brings_a_second_connection", ["PRAGMA", "BEGIN", "SELECT", "INSERT", "UPDATE", "COMMIT"]),
        ("adds_one_by_one", ["BEGIN", "SELECT", "INSERT", *["UPDATE"] * 7, "COMMIT"]),
        ("in_a_script_and_savepoint", ["BEGIN", "SAVEPOINT", "INSERT", "UPDATE", "RELEASE", "COMMIT"]),
    ],
)
def test_every_statement_of_somebody_elses_receiver_is_a_point(name: str, first: list[str]) -> None:
    """The driver's own BEGIN and COMMIT, a second connection, executemany; all four names are found."""
    result = killed(own(name))
    inside = [p for p in result.points if p.delivery == "first" and p.place == "after statement"]
    assert [p.statement.split()[0] for p in inside] == first
    assert result.verdict == "sound", result.because
    for name in NAMES:
        assert named(result, name)
    assert named(result, "after commit before ACK").statement == "COMMIT"


def test_a_row_factory_of_its_own() -> None:
    """Does not come between the bench and what it reads over the receiver's connection."""
    result = killed(dying("LikesRows"))
    assert named(result, "after inbox insert").statement.startswith("INSERT")
    assert result.verdict == "sound"


def test_own_schema_and_exception() -> None:
    """What is committed is known from the state; the rest has no name, and is tried all the same."""
    result = killed(own("Ledger"))
    assert result.verdict == "sound"
    assert named(result, "after commit before ACK").statement == "COMMIT"
    assert {p.conflicting for p in result.points} == {"conflict"}


def test_a_function_within_a_statement_is_not_the_end_of_it() -> None:
    """SQLite calls Python back in the middle of INSERT and UPDATE; the kill waits for the statement."""
    result = killed(dying("runs_a_function_of_its_own"), signals=(SIGKILL, SIGTERM))
    assert result.verdict == "sound"
    assert named(result, "after inbox insert").statement.startswith("INSERT")
    assert not result.tallies.errors


def test_claims_that_outlive_their_owner() -> None:
    """Claim, work and mark in three commits are stuck after the first two; in one transaction, sound."""
    apart = killed(dying("ClaimsApart"))
    assert {kind for p in apart.points for kind in p.violations} == {"stuck"}
    assert [p.number for p in apart.points if p.verdict == "broken"] == [2, 3]
    assert killed(dying("Claims")).verdict == "sound"


def test_what_only_sigterm_shows() -> None:
    """What `finally`, `except BaseException` or a handler does then, before, within or after the work."""
    for name, kind in (
        ("commits_whatever_happens", "record_effect_mismatch"),
        ("answers_whatever_happens", "acked_but_lost"),
        ("gives_back_what_it_had_claimed", "double_apply"),
        ("Impolite", "acked_but_lost"),
    ):
        result = killed(dying(name), signals=(SIGKILL, SIGTERM))
        assert {p.signal for p in result.points if p.verdict == "broken"} == {"SIGTERM"}
        assert kind in {v.kind for v in result.violations}


def test_a_handler_of_its_own_may_let_the_call_end() -> None:
    """It answers, what it answered is there, and the process is gone after that."""
    result = killed(dying("Polite"), signals=(SIGTERM,))
    assert {(p.answered, p.rows, p.total, p.reached) for p in result.points} == {("applied", 1, 7, True)}
    assert result.points[0].place == "before call"
    assert result.verdict == "sound"


def test_another_version_may_take_the_redelivery() -> None:
    """As in a rolling deploy: two right ones share a store; one that only remembers doubles."""
    assert killed("immediate", signals=(SIGTERM,), successor="upsert").verdict == "sound"
    result = killed("immediate", signals=(SIGTERM,), successor="memory")
    assert broken_at(result) == {("SIGTERM", "first", 5, "COMMIT")}
    assert result.violations[0].kind == "double_apply"


def test_no_sql_is_said_to_be_so() -> None:
    """Killed before and after the call only: unknown with the reason, broken where even that is enough."""
    right = killed(dying("Notebook"))
    assert [p.place for p in right.points] == ["before call", "before ACK", "after ACK"]
    assert {p.verdict for p in right.points} == {"sound"}
    assert right.verdict == "unknown"
    assert "no statement of a sqlite3 connection was seen" in right.because[0]
    wrong = killed(dying("LosesNotes"))
    assert wrong.verdict == "broken"
    assert "acked_but_lost" in {violation.kind for violation in wrong.violations}


def test_a_call_that_runs_otherwise_the_next_time_is_unknown() -> None:
    """It was not killed where it should have been: never passed for sound."""
    result = killed(dying("looks_around_first"))
    assert result.verdict == "unknown"
    missed = [p for p in result.points if not p.reached]
    assert missed
    assert {p.verdict for p in missed} == {"unknown"}
    assert all("did not come by" in p.because[0] for p in missed)


def test_long_calls_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and the last statements are tried."""
    monkeypatch.setattr(points, "MOST_STATEMENTS", 6)
    result = killed(dying("runs_many_statements"))
    assert result.verdict == "sound"
    assert "only the first and last 3" in result.notes[0]
    assert named(result, "after commit before ACK").number == 65


def test_a_call_that_never_comes_back_is_stuck() -> None:
    """Within the deadline, as a verdict."""
    result = killed(f"{HERE.parent / 'misbehaving.py'}:never_answers", deadline=1)
    assert result.verdict == "broken"
    assert {v.kind for v in result.violations} == {"stuck"}
    assert any("did not come back within 1 s" in note for note in result.notes)


def test_a_store_that_cannot_be_read_is_unknown() -> None:
    """With the reason, at every point."""
    result = killed(dying("CannotBeRead"))
    assert result.verdict == "unknown"
    assert {(p.verdict, p.rows, p.total) for p in result.points} == {("unknown", None, None)}
    assert all("the warehouse is closed" in p.because[0] for p in result.points)


def test_nothing_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No store, no recording."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed.__wrapped__("memory")
    assert list(tmp_path.iterdir()) == []
