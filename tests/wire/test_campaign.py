"""Campaigns of real processes: whatever goes wrong, each message lands once, or the audit says it did not."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oncebench.audit import Findings, Kind, Verdict, audit
from oncebench.messages import BadInput, Delivery, Event, Outcome
from oncebench.receivers.loader import load
from oncebench.stores.sqlite import Settings
from oncebench.wire import publisher, server
from oncebench.wire.campaign import Campaign, Setting, campaign
from oncebench.wire.plan import Plan, draw
from oncebench.wire.proxy import FAULTS
from oncebench.wire.publisher import Patience

PATIENT = Setting(
    settings=Settings(busy_timeout=0.05),
    servers=1,
    pause=0.001,
    patience=Patience(timeout=0.25, first=0.002, longest=0.02, give_up=60.0),
)

UNHURRIED = replace(PATIENT, patience=replace(PATIENT.patience, timeout=30.0))
"""For plans without delays: nothing is sent again because a process takes long to come up."""


def judged(ran: Campaign) -> Findings:
    assert ran.before is not None
    assert ran.after is not None
    return audit(ran.history, ran.before, ran.after, ran.stuck)


def effects(ran: Campaign) -> Counter[str]:
    """Per id, how often the witness saw the total change."""
    assert ran.after is not None
    assert ran.after.witness is not None
    ids = {int(call): ran.history[row].id for row, call in enumerate(ran.history.call[: ran.calls])}
    seen = ran.after.witness
    return Counter(
        ids[call]
        for event, call in zip(seen.event.tolist(), seen.call.tolist(), strict=True)
        if event == Event.EFFECT
    )


def settled_as_planned(ran: Campaign) -> None:
    """Every row ends done, or aside where another quantity came first; each id has one effect."""
    first: dict[str, int] = {}
    for row in ran.plan.rows:
        first.setdefault(row.id, row.qty)
    expected = ["done" if first[row.id] == row.qty else "conflict" for row in ran.plan.rows]
    assert [row.state for row in ran.outbox] == expected, ran.notes
    assert ran.after is not None
    assert dict(ran.after.inbox) == first
    assert ran.after.total == sum(first.values())
    assert effects(ran) == Counter(first.keys())
    assert set(ran.requests) == set(first)
    findings = judged(ran)
    assert findings.verdict is Verdict.SOUND, findings.violations


plans = st.builds(
    Plan,
    seed=st.integers(0, 99),
    rows=st.lists(
        st.builds(Delivery, st.sampled_from(["order-0", "order-1", "order-2"]), st.integers(1, 2)),
        min_size=1,
        max_size=4,
    ).map(tuple),
    faults=st.lists(st.sampled_from(FAULTS), max_size=6).map(tuple),
    publisher_kills=st.lists(st.tuples(st.sampled_from(publisher.POINTS), st.integers(1, 3)), max_size=2).map(
        tuple
    ),
    server_kills=st.lists(st.tuples(st.sampled_from(server.POINTS), st.integers(1, 6)), max_size=2).map(
        tuple
    ),
)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(plans, st.sampled_from(["immediate", "upsert", "deferred", "structured"]))
def test_every_row_is_settled_and_applied_once(plan: Plan, name: str) -> None:
    """Whatever sequence of faults, and of deaths on both sides, hypothesis draws."""
    settled_as_planned(campaign(load(name), plan, PATIENT))


@pytest.mark.parametrize("point", publisher.POINTS)
def test_publisher_dies_at_each_of_its_points(point: str) -> None:
    """It comes back, resumes in order, and sends again only what it had not marked."""
    rows = tuple(Delivery(f"order-{n}", 1 + n) for n in range(3))
    ran = campaign(load("immediate"), Plan(rows=rows, publisher_kills=((point, 2),)), UNHURRIED)
    settled_as_planned(ran)
    assert [(dead.who, dead.point) for dead in ran.deaths] == [("publisher 1", (point, 2))]
    assert ran.deaths[0].recovery is not None
    again = 0 if point == "after_mark" else 1
    sent = {"before_send": 0}.get(point, again)  # it died before that request was written down
    assert ran.requests == Counter({"order-0": 1, "order-1": 1 + sent, "order-2": 1})


@pytest.mark.parametrize(
    ("point", "nth", "outcomes"),
    [
        ("before_receiver", 1, [Outcome.APPLIED]),
        ("in_receiver", 3, [Outcome.INDETERMINATE, Outcome.APPLIED]),
        ("in_receiver", 5, [Outcome.INDETERMINATE, Outcome.APPLIED]),  # before its COMMIT
        ("before_answer", 1, [Outcome.APPLIED, Outcome.DUPLICATE]),
        ("after_answer", 1, [Outcome.APPLIED]),
    ],
)
def test_server_dies_at_each_of_its_points(point: str, nth: int, outcomes: list[Outcome]) -> None:
    """Requests and effects apart: a call that nobody answered, or one that was done and not told."""
    plan = Plan(rows=(Delivery("a", 7),), server_kills=((point, nth),))
    ran = campaign(load("immediate"), plan, UNHURRIED)
    settled_as_planned(ran)
    assert [dead.point for dead in ran.deaths] in ([(point, nth)], [])
    assert bool(ran.deaths) or point == "after_answer"  # the campaign may be over before it dies
    assert [ran.history[row].outcome for row in range(ran.calls)] == outcomes


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_drawn_campaign(journal: str) -> None:
    """All faults and points of one seed, several servers, both journal modes."""
    setting = replace(PATIENT, servers=2, settings=Settings(journal, "full", 0.05))  # type: ignore[arg-type]
    ran = campaign(load("immediate"), draw(1, messages=10, faults=12, kills=4), setting)
    settled_as_planned(ran)
    assert set(ran.met) == set(FAULTS)
    assert ran.calls > len(ran.plan.rows)


@pytest.mark.parametrize(
    ("name", "kind", "plan"),
    [
        ("naive", Kind.DOUBLE_APPLY, {"faults": ("duplicate",) * 6}),
        ("unique_only", Kind.DOUBLE_APPLY, {"faults": ("cut_before_answer",)}),
        ("memory", Kind.DOUBLE_APPLY, {"server_kills": (("before_answer", 1),)}),
        ("stock_first", Kind.DOUBLE_APPLY, {"server_kills": (("in_receiver", 5),)}),
        ("id_first", Kind.RECORD_EFFECT_MISMATCH, {"server_kills": (("in_receiver", 4),)}),
        ("ack_early", Kind.ACKED_BUT_LOST, {"server_kills": (("after_answer", 1),)}),
    ],
)
def test_wrong_receivers_are_caught(name: str, kind: Kind, plan: dict[str, object]) -> None:
    """By the fault each is known for; `immediate` survives the same plan."""
    rows = tuple(Delivery(f"order-{n}", 2) for n in range(6))
    setting = replace(UNHURRIED, connections=1 if name == "ack_early" else 2, pause=0.005)
    ran = campaign(load(name), Plan(rows=rows, **plan), setting)  # type: ignore[arg-type]
    assert kind in judged(ran).ids, judged(ran).violations
    settled_as_planned(campaign(load("immediate"), Plan(rows=rows, **plan), setting))  # type: ignore[arg-type]


def test_message_that_was_marked_and_never_applied_is_found() -> None:
    """A forged ACK fools any publisher; the audit shows the id with 1 request and 0 effects."""
    plan = Plan(rows=(Delivery("a", 7), Delivery("b", 7)), faults=("forge",))
    ran = campaign(load("immediate"), plan, PATIENT)
    assert [row.state for row in ran.outbox] == ["done", "done"]
    assert (ran.requests["a"], effects(ran)["a"]) == (1, 0)
    findings = judged(ran)
    assert findings.ids == {Kind.ACKED_BUT_LOST: frozenset({"a"})}


def test_receiver_that_never_succeeds_is_stuck(tmp_path: Path) -> None:
    """The publisher gives up, says so, and the audit calls it stuck."""
    (tmp_path / "failing.py").write_text("def receive(db, id, qty): raise ValueError('no')\n")
    impatient = replace(PATIENT, patience=replace(PATIENT.patience, give_up=0.2))
    ran = campaign(load(f"{tmp_path / 'failing.py'}:receive"), Plan(rows=(Delivery("a", 7),)), impatient)
    assert "gave up after 0.2 s" in ran.notes[0]
    assert "status 500 proves nothing" in ran.notes[0]
    assert judged(ran).ids == {Kind.STUCK: frozenset({"a"})}


def test_store_that_another_program_holds_locked(tmp_path: Path) -> None:
    """For longer than the publisher's patience: said, and no verdict rests on it."""
    store = tmp_path / "store.db"
    held: list[sqlite3.Connection] = []

    def hold(done: int, planned: int) -> None:
        if not held:
            held.append(sqlite3.connect(store, isolation_level=None, timeout=10, check_same_thread=False))
            held[0].execute("BEGIN IMMEDIATE")

    setting = replace(PATIENT, pause=0.05, patience=replace(PATIENT.patience, give_up=0.5))
    rows = tuple(Delivery(f"order-{n}", 1) for n in range(30))
    ran = campaign(load("immediate"), Plan(rows=rows), setting, store=store, progress=hold)
    held[0].close()
    assert ran.foreign_lock
    assert not ran.complete
    assert ran.after is None
    assert any("store.db is locked by another program" in note for note in ran.notes)
    assert any(row.state == "pending" for row in ran.outbox)


def test_deadline_of_the_whole_campaign() -> None:
    """Ends with what it has, and says why."""
    rows = tuple(Delivery(f"order-{n}", 1) for n in range(60))
    ran = campaign(load("immediate"), Plan(rows=rows), replace(PATIENT, pause=0.05, deadline=0.3))
    assert ran.notes == ["ended after 0.3 s, its deadline"]
    assert ran.stuck


def test_port_that_is_taken() -> None:
    """One sentence, before anything is started."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        with pytest.raises(BadInput, match=f"port {port}: Address already in use"):
            campaign(load("immediate"), Plan(rows=(Delivery("a", 1),)), replace(PATIENT, port=port))


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise RuntimeError('out of order')", "does not import: RuntimeError: out of order"),
        (
            "import os, sys\nif 'oncebench.wire.process' in sys.modules: os._exit(7)",
            "could not begin: exit code 7",
        ),
    ],
)
def test_server_that_never_comes_up(tmp_path: Path, code: str, why: str) -> None:
    """Named, with its last words; nothing stays behind."""
    file = tmp_path / "broken.py"
    file.write_text("def receive(db, id, qty): return True\n")
    receiver = load(f"{file}:receive")
    file.write_text(f"{code}\ndef receive(db, id, qty): return True\n")
    threads = threading.active_count()
    with pytest.raises(BadInput, match=r"the server [12] ") as caught:
        campaign(receiver, Plan(rows=(Delivery("a", 1),)), PATIENT)
    assert why in str(caught.value)
    assert threading.active_count() == threads


def test_receiver_with_a_process_of_its_own_is_refused() -> None:
    """Until wire starts such processes, it says that it does not."""
    with pytest.raises(BadInput, match="oncebench run group"):
        campaign(load("group"), Plan(rows=(Delivery("a", 1),)), PATIENT)


def test_same_seed_same_plan() -> None:
    """On every machine and Python; another seed, another one."""
    assert draw(5) == draw(5)
    assert draw(5) != draw(6)
    plan = draw(7, messages=3, faults=2, kills=2)
    assert plan.rows[0] == Delivery("order-0", 33)
    assert (plan.faults, plan.publisher_kills) == (("refuse", "cut_request"), (("before_send", 2),))


@pytest.mark.parametrize(
    ("name", "value"),
    [("messages", 0), ("faults", -1), ("kills", 9999), ("redeliveries", 1.5), ("conflicts", -0.1)],
)
def test_plan_out_of_bounds(name: str, value: float) -> None:
    """Named with its bounds."""
    with pytest.raises(BadInput, match=f"{name} must be"):
        draw(7, **{name: value})  # type: ignore[arg-type]
