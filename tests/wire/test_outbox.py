"""The outbox: in order, durable, strict about what goes in, and clear about what is in its way."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from oncebench.messages import BadInput
from oncebench.wire import outbox
from oncebench.wire.outbox import Outbox, Row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "outbox.db"


def test_rows_are_sent_in_order_until_marked(path: Path) -> None:
    """Pending ones only, the oldest first, the same id as often as it was put."""
    box = Outbox(path)
    for id, qty in (("b", 1), ("a", 2), ("b", 1), ("b", 3)):
        box.put(id, qty)
    assert box.pending(2) == [Row(1, "b", 1), Row(2, "a", 2)]
    box.mark(1, "done")
    box.mark(3, "conflict")
    assert [row.seq for row in box.pending(9)] == [2, 4]
    box.close()
    again = Outbox(path)  # what a new process finds
    assert [row.state for row in again.rows()] == ["done", "pending", "conflict", "pending"]
    again.close()


def test_payload_is_kept_as_it_is_spelled(path: Path) -> None:
    """Redelivery sends the same bytes."""
    box = Outbox(path)
    box.put("a", 1, 2, '{"price": 1.50}')
    assert box.pending(1) == [Row(1, "a", 1, "pending", 2, '{"price": 1.50}')]
    box.close()


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (("", 1), "id must not be empty"),
        (("a\0", 1), "NUL"),
        (("a", 0), "1 to 2"),
        (("a", True), "qty must be an integer"),
        (("a", 1, 0, "{}"), "schema must be"),
        (("a", 1, 1, "{"), "not JSON"),
        (("a", 1, 1, '{"x":1,"x":2}'), "comes twice"),
        (("a", 1, 1, '{}, "id": "b"'), "comes twice"),
        (("a", 1, 1, '{"x": "' + "x" * 70_000 + '"}'), "at most 65536 bytes"),
    ],
)
def test_what_no_warehouse_would_take_does_not_go_in(path: Path, message: tuple[str, int], why: str) -> None:
    """It would be sent for ever and hold up the rest."""
    box = Outbox(path)
    with pytest.raises(BadInput, match=why):
        box.put(*message)
    assert box.rows() == []
    box.close()


def test_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    """A database of somebody else, a text, a folder: named, and left alone."""
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE orders(id)")
    other.close()
    (tmp_path / "note.txt").write_text("no database, but long enough to be looked at as one. " * 30)
    for name, why in (("other.db", "no outbox"), ("note.txt", "no outbox"), ("no/outbox", "cannot be used")):
        with pytest.raises(BadInput, match=why):
            Outbox(tmp_path / name)
    assert (tmp_path / "note.txt").read_text().startswith("no database")


def test_locked_by_another_program(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said with what to do."""
    monkeypatch.setattr(outbox, "LOCK_PATIENCE", 0.05)
    Outbox(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BadInput, match=r"locked by another program for more than 0.05 s: end that program"):
        Outbox(path)
    other.close()
    box = Outbox(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BadInput, match="locked by another program"):
        box.put("a", 1)
    other.close()
    box.close()
