"""A saved history is the one that was, and nothing else is taken for one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oncebench.audit import audit
from oncebench.messages import BadInput, Event, History, Operation, Outcome, State, Witness
from oncebench.results.histories import load_history, save_history

IDS = ["a", "", "x" * 10_000, "שלום😀\x00", "\ud800"]


def made() -> tuple[History, State]:
    """Each id applied once, with a witness."""
    history = History.of(Operation(0, id, 3, 10 * n, 10 * n + 5, Outcome.APPLIED) for n, id in enumerate(IDS))
    calls = np.arange(len(IDS))
    seen = Witness(
        np.full(2 * len(IDS), [Event.RECORDED, Event.EFFECT] * len(IDS)),
        np.full(2 * len(IDS), 3),
        np.repeat(calls, 2),
        np.repeat(calls * 10 + 2, 2),
        [id for name in IDS for id in (name, None)],
    )
    return history, State(3 * len(IDS), [(id, 3) for id in IDS], seen)


def test_what_comes_back_is_what_was_saved(tmp_path: Path) -> None:
    """Long, empty and strange ids; the audit says the same of both, and something of a damaged one."""
    history, after = made()
    save_history(tmp_path / "history.npz", history, State(0), after)
    loaded, before, state = load_history(tmp_path / "history.npz")
    assert [loaded[row] for row in range(len(loaded))] == [history[row] for row in range(len(history))]
    assert (before, state.total, state.inbox) == (State(0, []), after.total, after.inbox)
    assert state.witness is not None
    assert after.witness is not None
    assert state.witness.id == after.witness.id
    assert audit(loaded, before, state).counts == audit(history, State(0), after).counts == {}
    wrong = State(after.total + 3, after.inbox, after.witness)
    save_history(tmp_path / "history.npz", history, State(0), wrong)
    assert audit(*load_history(tmp_path / "history.npz")).counts
    assert [path.name for path in tmp_path.iterdir()] == ["history.npz"]


def test_what_is_none_is_one_sentence(tmp_path: Path) -> None:
    """Missing, cut, of other columns, of objects that would be unpickled."""
    history, after = made()
    path = tmp_path / "history.npz"
    save_history(path, history, State(0), after)
    whole = path.read_bytes()
    for name, content in {"cut": whole[:-100], "empty": b"", "text": b"hello"}.items():
        (tmp_path / name).write_bytes(content)
    np.savez(tmp_path / "other.npz", worker=np.arange(3))
    np.savez(tmp_path / "objects.npz", worker=np.array([object()], dtype=object))
    for name in ("cut", "empty", "text", "other.npz", "objects.npz", "gone"):
        with pytest.raises(BadInput):
            load_history(tmp_path / name)


def test_a_run_keeps_its_histories_when_asked(tmp_path: Path) -> None:
    """One file for each race, in which the audit finds what the run says."""
    words = ["run", "immediate", "--ids", "5", "--workload", "same", "--journal", "wal", "--history", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "oncebench", *words, "--out", str(tmp_path)], timeout=110, check=False
    )
    assert done.returncode in (0, 3)
    [folder] = tmp_path.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["history-1-wal-1.npz", "run.json"]
    history, before, after = load_history(folder / "history-1-wal-1.npz")
    assert len(history) >= 20
    assert audit(history, before, after).counts == {}
