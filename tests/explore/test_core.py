"""Workers that take turns share a core with their scheduler, and nobody else is kept there."""

from __future__ import annotations

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest

from oncebench.explore.core import one_core
from oncebench.explore.plan import Plan
from oncebench.explore.play import Play
from oncebench.explore.processes import Processes
from oncebench.explore.strategies import play_chosen, with_preemptions
from oncebench.explore.threads import _Thread
from oncebench.explore.views import Views
from oncebench.receivers import immediate, loader
from oncebench.testing.exploration import Crewed, Setting
from oncebench.testing.exploring import explore
from oncebench.testing.stage import stage

_pool = ThreadPoolExecutor(1)

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system does not keep threads on cores"
)


def cores_in_the_inbox(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """As the reference; the message that it records besides says on how many cores it may run."""
    immediate.receive(db, f"cores {len(os.sched_getaffinity(0))}", 1)
    return immediate.receive(db, id, qty)


@pytest.mark.parametrize("on", get_args(Crewed))
def test_workers_stay_on_one_core_and_the_caller_is_free_again(on: Crewed) -> None:
    before, plan = os.sched_getaffinity(0), Plan.of("distinct", 2)
    receiver = loader.load(f"{__name__}:{cores_in_the_inbox.__name__}")
    with stage(receiver, plan, Setting(on=on)) as (site, crew):
        run = play_chosen(Play(crew, site, plan, Views()), with_preemptions({}))
    assert os.sched_getaffinity(0) == before
    cores = len(before) if on == "greenlets" else 1
    assert [id for id, _ in run.after.inbox if id.startswith("cores")] == [f"cores {cores}"]


def leaves_a_thread(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """As the reference, after a thread has worked for it that stays, and calls no SQLite."""
    _pool.submit(len, id).result()
    return immediate.receive(db, id, qty)


def test_a_thread_that_stays_is_free_again() -> None:
    explore(leaves_a_thread, on="threads", plans=["same"], journals=["wal"], locks=["error"])
    assert _pool.submit(os.sched_getaffinity, 0).result() == os.sched_getaffinity(0)


def test_workers_that_cannot_start_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    before, connect = os.sched_getaffinity(0), sqlite3.connect
    monkeypatch.setattr(_Thread, "start", refuse)
    with pytest.raises(RuntimeError), stage(loader.load("naive"), Plan.of("same"), Setting(on="threads")):
        pass
    assert (os.sched_getaffinity(0), sqlite3.connect) == (before, connect)


def test_a_death_without_a_successor_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise OSError("no process to be had")

    before = os.sched_getaffinity(0)
    with (
        pytest.raises(OSError, match="no process to be had"),
        stage(loader.load("naive"), Plan.of("same"), Setting(on="processes")) as (_, crew),
    ):
        monkeypatch.setattr(Processes, "_new", refuse)
        crew.kill(0)
    assert os.sched_getaffinity(0) == before


def test_whoever_cannot_be_kept_on_a_core_is_left_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    before = os.sched_getaffinity(0)
    with one_core():
        assert len(os.sched_getaffinity(0)) == 1
    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    with one_core():
        assert os.sched_getaffinity(0) == before
