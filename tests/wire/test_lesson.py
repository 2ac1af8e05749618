"""The table of the lesson, read from docs/lesson.md and run line by line."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from oncebench.messages import Conflict
from oncebench.receivers.loader import load
from oncebench.stores.sqlite import Settings
from oncebench.wire import proxy, publisher, server
from oncebench.wire.message import MAX_BODY, MAX_DEPTH, MAX_ID_BYTES

from .conftest import Make
from .test_ack import FALSE

LESSON = Path(__file__).parents[2] / "docs" / "lesson.md"
RIGHT = ("immediate", "exclusive", "upsert", "deferred", "structured", "low_water")


def table() -> list[list[str]]:
    """The cells of the first table in the lesson."""
    lines = LESSON.read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| message"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def message(text: str) -> tuple[str, int]:
    id, _, qty = text.partition("/")
    return id, int(qty)


def test_the_table_is_the_lesson() -> None:
    """The four lines that everybody must know."""
    assert [row[0] for row in table()] == ["snack-7/7", "snack-7/7", "snack-7/8", "snack-8/7"]
    assert [row[4] for row in table()] == ["7", "7", "7", "14"]


@pytest.mark.parametrize("name", RIGHT)
def test_in_one_process(name: str, tmp_path: Path) -> None:
    """What the receiver returns, and what another connection reads after each line."""
    receiver, store = load(name), tmp_path / "store.db"
    receiver.setup(store, Settings(), watched=True)
    db = receiver.connect(store, Settings())
    for text, returned, _, inbox, total in table():
        try:
            answer = str(receiver.receive(db, *message(text)))
        except Conflict:
            answer = "Conflict"
        state = receiver.observe(store)
        assert (answer, state.total) == (returned, int(total))
        assert [f"{id}/{qty}" for id, qty in state.inbox] == inbox.split(", ")
    db.close()


@pytest.mark.parametrize("name", ["immediate", "structured"])
def test_over_http(name: str, warehouse: Make) -> None:
    """The ACK of each line, and the same inbox and total behind it."""
    shop = warehouse(name)
    for text, _, ack, inbox, total in table():
        id, qty = message(text)
        answer = httpx.post(shop.url, json={"id": id, "qty": qty}, trust_env=False, timeout=30)
        accepted = "accepted" if answer.json()["accepted"] else "not accepted"
        assert f"{answer.status_code} {accepted}" == ack
        state = shop.state
        assert [f"{id}/{qty}" for id, qty in state.inbox] == inbox.split(", ")
        assert state.total == int(total)


def test_a_wrong_receiver_leaves_the_table(tmp_path: Path) -> None:
    """So that the test above can fail: `unique_only` doubles in the second line."""
    receiver, store = load("unique_only"), tmp_path / "store.db"
    receiver.setup(store, Settings(), watched=True)
    db = receiver.connect(store, Settings())
    for text, *_ in table()[:2]:
        receiver.receive(db, *message(text))
    assert receiver.observe(store).total == 14
    db.close()


def test_what_the_lesson_says_is_still_so() -> None:
    """Every fault, every point and every limit is in it, with its figure."""
    text = LESSON.read_text(encoding="utf-8")
    for name in (*proxy.FAULTS, *publisher.POINTS, *server.POINTS):
        assert f"`{name}`" in text
    for figure in (f"{MAX_ID_BYTES} bytes", f"{MAX_BODY:,} bytes", f"more than {MAX_DEPTH} objects"):
        assert figure in text
    assert f"has {len(FALSE)} such answers" in text
    assert f"within {server.BODY_DEADLINE:g} s" in text
