"""Recordings survive their worker and say exactly what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from oncebench.messages import Outcome
from oncebench.race.recorder import LEFT_OPEN, RETRY, ROWS, Recorder, Watch, read


def written(path: Path, calls: int, finished: int) -> Recorder:
    """Rows whose numbers can be told apart; the last may be a call that did not come back."""
    recorder = Recorder(path)
    columns = recorder.next_chunk()
    for n in range(calls):
        row = n % ROWS
        columns.invoked[row] = 1000 + n
        if n < finished:
            columns.answer[row] = Outcome.APPLIED | (RETRY if n % 3 else 0) | (LEFT_OPEN if n % 2 else 0)
            columns.completed[row] = 2000 + n
        if row == ROWS - 1:
            columns = recorder.next_chunk()
    return recorder


@pytest.mark.parametrize("calls", [0, 1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS + 7])
def test_read_back_as_written(calls: int, tmp_path: Path) -> None:
    """Within a chunk, at its edges, and over several."""
    recorder = written(tmp_path / "calls", calls, calls)
    invoked, completed, answer = read(tmp_path / "calls")
    assert invoked.tolist() == [1000 + n for n in range(calls)]
    assert completed.tolist() == [2000 + n for n in range(calls)]
    assert [bool(a & RETRY) for a in answer.tolist()] == [bool(n % 3) for n in range(calls)]
    assert [bool(a & LEFT_OPEN) for a in answer.tolist()] == [bool(n % 2) for n in range(calls)]
    recorder.close_chunk()


def test_call_under_way_is_seen_while_it_lasts(tmp_path: Path) -> None:
    """The coordinator's look: what came back, and since when the open call runs."""
    watch = Watch(tmp_path / "calls")
    assert watch.look() == (0, 0), "before the worker has begun"
    recorder = written(tmp_path / "calls", 5, 5)
    assert watch.look() == (5, 0)
    recorder = written(tmp_path / "calls", ROWS + 3, ROWS + 2)
    assert watch.look() == (ROWS + 2, 1000 + ROWS + 2)
    invoked, completed, _ = read(tmp_path / "calls")
    assert (len(invoked), completed[-1]) == (ROWS + 3, 0)
    recorder.close_chunk()


def test_missing_or_cut_recording_reads_as_far_as_it_is_whole(tmp_path: Path) -> None:
    """A worker that never began, and a chunk that was not reserved to its end."""
    assert read(tmp_path / "none").shape == (3, 0)
    written(tmp_path / "calls", 10, 10).close_chunk()
    with (tmp_path / "calls").open("ab") as file:
        file.write(b"half a chunk")
    assert read(tmp_path / "calls").shape == (3, 10)
