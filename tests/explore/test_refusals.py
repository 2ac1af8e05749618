"""What cannot be explored is said in one sentence, and nothing hangs."""

import os
import re
import sqlite3
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oncebench.audit import Kind, Verdict
from oncebench.explore.plan import Plan, moves
from oncebench.explore.site import FOLDER
from oncebench.explore.strategies import play_told
from oncebench.messages import BadInput, Outcome
from oncebench.testing import explore
from oncebench.testing.exploration import Crewed, Exploration, Locks
from oncebench.testing.exploring import play

from . import locks
from . import receivers_that_cannot as cannot

QUICK: dict[str, Any] = {"plans": ["same"], "journals": ["wal"], "locks": ["error"], "patience": 30}
IMPATIENT = {**QUICK, "patience": 0.3}
"""For receivers that never come back."""


@pytest.mark.parametrize("receive", [cannot.loops, cannot.waits_for_ever])
def test_a_worker_that_does_not_come_back_ends_the_exploration(receive: Any) -> None:
    """And it is said where it is."""
    result = explore(receive, **IMPATIENT)
    assert result.verdict is Verdict.UNKNOWN
    assert "came back" in result.because[0] or "did not come back" in result.because[0]
    assert re.search(
        r"receivers_that_cannot\.py:\d+ \((while True:|qty \+= 1|.*\.wait\(\))\)", result.because[0]
    )


def test_off_the_main_thread_a_loop_ends_too() -> None:
    found: list[Exploration] = []
    thread = threading.Thread(target=lambda: found.append(explore(cannot.loops, **IMPATIENT)))
    thread.start()
    thread.join()
    assert "did not come back" in found[0].because[0]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody knows that a thread is asleep")
@pytest.mark.parametrize(
    ("receive", "line"),
    [
        (cannot.locks_the_process, "with _lock:"),
        (cannot.locks_the_thread, "with _own_lock:"),
    ],
)
def test_one_that_waits_outside_sqlite_lets_others_move(receive: Any, line: str) -> None:
    """Sound among threads; that processes were not explored is said, with the line."""
    result = explore(receive, **QUICK)
    assert (result.verdict, result.complete) == (Verdict.SOUND, True)
    [what] = result.unexplored
    assert what.startswith("several processes: ")
    assert line in what


LOCKS = Path(__file__).with_name("locks.py")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody knows that a process is asleep")
@pytest.mark.parametrize("name", ["by_record", "by_name", "by_command", "by_one_handle"])
def test_a_lock_on_a_file_is_tried_on_processes(name: str) -> None:
    """Threads of one process share such a lock, or the file that it is on: they would show a fault."""
    result = explore(f"{LOCKS}:{name}", **QUICK)
    assert (result.verdict, result.complete) == (Verdict.SOUND, True)
    assert result.parts[0].setting.on == "processes"
    assert result.parts[0].overlapped
    assert not result.unexplored


def test_a_lock_on_a_file_that_covers_too_little_is_found_out() -> None:
    failure = explore(f"{LOCKS}:too_late", **QUICK).failures[Kind.DOUBLE_APPLY]
    assert failure.command("mine").endswith("--on processes")


def test_a_lock_on_a_file_in_a_receiver_that_no_process_can_import_is_unknown() -> None:
    result = explore(lambda db, id, qty: locks.by_record(db, id, qty), **QUICK)
    assert result.verdict is Verdict.UNKNOWN
    assert re.search(r"locks a file at .*locks\.py:\d+ .* cannot be imported", result.because[0])


def test_without_the_lock_the_same_work_is_broken() -> None:
    assert explore(cannot._work_that_needs_a_lock, **QUICK).verdict is Verdict.BROKEN


@pytest.mark.parametrize("receive", [cannot.runs_a_loop, cannot.keeps_a_connection_for_each_thread])
def test_what_a_thread_has_is_not_shared_among_workers(receive: Any) -> None:
    """Workers on one thread would find each other's loop, and each other's connection."""
    result = explore(receive, **QUICK)
    assert (result.verdict, result.parts[0].setting.on) == (Verdict.SOUND, "threads")
    assert result.parts[0].outcomes[Outcome.ERROR] == 0


def test_a_sleep_takes_no_time_and_is_named() -> None:
    result = explore(cannot.sleeps, **QUICK)
    assert result.verdict is Verdict.SOUND
    assert result.unexplored == ["it sleeps (slept 3600 s), which nobody waited for"]


def test_how_long_a_sleep_was_makes_no_state_another() -> None:
    part = explore(cannot.sleeps_at_random, **QUICK).parts[0]
    assert part.complete
    assert part.run < (part.total or 0)


def test_a_lock_of_the_process_is_found_out_on_processes() -> None:
    """Sound within one process, broken with two: the processes say so."""
    target = f"{Path(cannot.__file__)}:locks_the_process"
    result = explore(target, **{**QUICK, "on": "processes"})
    assert Kind.DOUBLE_APPLY in result.failures or Kind.RECORD_EFFECT_MISMATCH in result.failures


def test_a_process_that_does_not_come_back_is_killed() -> None:
    result = explore(f"{Path(cannot.__file__)}:loops", **{**IMPATIENT, "on": "processes"})
    assert "did not come back" in result.because[0]


def test_a_statement_that_is_retried_for_ever_is_stuck() -> None:
    result = explore(cannot.retries_the_statement, **QUICK)
    failure = result.failures[Kind.STUCK]
    assert "no answer within" in failure.violation.message
    assert "SQLITE_BUSY" in failure.violation.message


def test_a_transaction_that_is_retried_is_not_stuck() -> None:
    """Whoever only spins lets others move first, as time would."""
    result = explore(cannot.spins_until_free, **QUICK)
    assert result.verdict is Verdict.SOUND
    assert result.complete


@pytest.mark.parametrize(
    ("receive", "says"),
    [
        (cannot.works_on_two_threads, "on two threads at once"),
        (cannot.ThreadOfNobody(), "on a thread that no worker started"),
        (cannot.forks, "it forks"),
        (cannot.opens_another, "one database file"),
        (cannot.attaches_another, "one database file"),
    ],
)
def test_what_is_not_supported_is_refused_with_what_is(receive: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        explore(receive, **QUICK)


@pytest.mark.parametrize("receive", [cannot.starts_a_thread, cannot.starts_a_thread_in_its_context])
def test_threads_that_a_worker_starts_are_explored_on_threads(receive: Any) -> None:
    """Their statements are the worker's steps."""
    result = explore(receive, **{**QUICK, "patience": 20})
    assert result.verdict is Verdict.SOUND
    assert result.complete
    assert result.parts[0].setting.on == "threads"


def test_a_connection_made_past_sqlite3_connect_is_noticed() -> None:
    result = explore(cannot.BypassesConnect(), **QUICK)
    assert result.verdict is Verdict.UNKNOWN
    assert "no statement of it was seen" in result.because[0]


def test_a_receiver_that_is_not_deterministic_is_reported_as_such() -> None:
    result = explore(cannot.tosses_a_coin, **QUICK)
    assert result.verdict is Verdict.UNKNOWN
    assert "does not do the same on the same schedule" in result.because[0]


def test_random_parameters_only_cost_the_reduction() -> None:
    result = explore(cannot.notes_a_random_number, **QUICK)
    assert result.verdict is Verdict.SOUND
    assert "nothing is skipped" in result.parts[0].notes[0]
    assert explore(cannot.key_of_the_attempt, **QUICK).verdict is Verdict.BROKEN


def test_a_shared_connection_is_explored() -> None:
    """Statements of one worker fall into the other's transaction; on threads as on one."""
    result = explore(cannot.SharesAConnection(), **{**QUICK, "plans": ["same", "distinct", "death"]})
    assert result.verdict is Verdict.BROKEN


@pytest.mark.parametrize("lock", ["error", "wait"])
def test_a_connection_is_of_whoever_used_it_last(lock: Locks) -> None:
    """What one worker has open on it is not laid at the door of one that had borrowed it before."""
    plan = replace(Plan.parse("m1:3,m2:5/m1:3"), deaths=0)
    settings: dict[str, Any] = {**QUICK, "plans": [plan], "locks": [lock], "on": "threads"}
    result = explore(cannot.SharesAPool, **settings)
    assert (result.verdict, result.failures) == (Verdict.SOUND, {})
    broken = explore(cannot.SharesAPoolAndDoesNotLookAgain, **settings)
    assert set(broken.failures) == {Kind.DOUBLE_APPLY}


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_a_thread_that_outlives_its_call_is_refused(on: Crewed) -> None:
    """Its statements would be steps of a worker that has answered."""
    target = f"{Path(cannot.__file__)}:leaves_a_thread_behind"
    with pytest.raises(BadInput, match="runs statements on two threads at once"):
        explore(target, **{**QUICK, "on": on})


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ("ABC", r"step 3 of the schedule moves worker C, but there are 2: A to B"),
        ("A?B", r"step 2 of the schedule is '\?'"),
        ("AABB", r"ends after step 4, but these have not come to an end: A \(before a statement INSERT"),
        ("AAABBBA", r"has 3 steps left at step 5 \(B\), but all is delivered: end it after AAAB"),
        ("AAAA", r"diverges at step 4 \(A\): A has delivered all"),
        ("A!", r"diverges at step 1 \(A!\): A is in no call"),
        ("", r"ends after step 0"),
    ],
)
def test_a_schedule_that_is_not_one(schedule: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        play("naive", Plan.parse("m1:3/m1:3"), lambda at: play_told(at, moves(schedule, 2)))


def test_a_schedule_that_moves_one_who_waits() -> None:
    with pytest.raises(BadInput, match=r"diverges at step 3 \(B\): B waits for a lock with BEGIN IMMEDIATE"):
        from oncebench.testing import Setting

        play(
            "immediate",
            Plan.of("same", 2),
            lambda at: play_told(at, moves("ABBAAAAB", 2)),
            Setting(locks="wait"),
        )


@pytest.mark.parametrize("text", ["m1", "m1:0", "m1:x/m1:3", "m1:3," * 2 + "x", f"m1:{2**63}"])
def test_deliveries_that_are_none(text: str) -> None:
    with pytest.raises(BadInput, match=r"deliveries are written|quantities are"):
        Plan.parse(text)


def test_a_local_function_cannot_go_to_another_process() -> None:
    def local(db: Any, id: str, qty: int) -> bool:
        return True

    with pytest.raises(BadInput, match="cannot be imported by another process"):
        explore(local, **{**QUICK, "on": "processes"})


def test_nothing_is_left_behind() -> None:
    """No thread, descriptor, folder or patched function, whichever way it ended."""

    def held() -> tuple[int, int, Any, set[Path]]:
        folders = [folder for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())) if folder.is_dir()]
        mine = {place for folder in folders for place in folder.glob(f"{FOLDER}{os.getpid()}-*")}
        descriptors = len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0
        return threading.active_count(), descriptors, sqlite3.connect, mine

    explore("naive", **QUICK)  # whatever is made once and kept
    before = held()
    assert not before[3]
    for on in ("greenlets", "threads", "processes"):
        explore("naive", **{**QUICK, "on": on})
        explore(f"{Path(cannot.__file__)}:loops", **{**IMPATIENT, "on": on})
        with pytest.raises(BadInput):
            explore(f"{Path(cannot.__file__)}:opens_another", **{**QUICK, "on": on})
        if on != "greenlets":
            with pytest.raises(BadInput):
                explore(f"{Path(cannot.__file__)}:leaves_a_thread_behind", **{**QUICK, "on": on})
    until = time.monotonic() + 20
    while held() != before and time.monotonic() < until:  # an exception ends a loop when it gets its turn
        time.sleep(0.01)
    assert held() == before


THREADED = Path(__file__).parents[1] / "threaded.py"


def test_one_connection_for_all_workers_is_explored() -> None:
    """Each part has an object of its own; nobody dies alone; each fault has its schedule."""
    result = explore(f"{THREADED}:OneForAll", **{**QUICK, "plans": ["same", "death"]})
    assert {Kind.DOUBLE_APPLY, Kind.ACKED_BUT_LOST} <= result.failures.keys()
    assert all(failure.run.steps for failure in result.failures.values())
    assert not any("!" in failure.violation.schedule for failure in result.failures.values())
    assert result.unexplored == ["a worker's death: workers share a connection, and would die together"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody knows that a thread is asleep")
def test_one_connection_that_is_taken_for_a_whole_transaction_is_right() -> None:
    result = explore(f"{THREADED}:Taken", **QUICK)
    assert (result.verdict, result.complete) == (Verdict.SOUND, True)
    assert result.parts[0].overlapped


def test_a_connection_to_an_earlier_store_is_refused() -> None:
    """What it writes there nobody reads: it would look lost."""
    with pytest.raises(BadInput, match="it goes on with a connection"):
        explore(cannot.keeps_its_first_connection, **{**QUICK, "plans": ["same", "conflict"]})
