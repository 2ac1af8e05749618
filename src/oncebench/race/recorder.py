"""What a worker writes down of each call, so that it survives the worker.

A file in chunks of `ROWS` rows, each chunk three columns of 64-bit integers, mapped into the worker's
memory: writing is one store per number, memory stays one chunk, and a killed worker leaves all but
nothing unwritten. A row that was begun and has no completion is a call that did not come back.

    invoked    monotonic nanoseconds before the call (0: the row is unused)
    completed  the same after it (0: not yet)
    answer     outcome | RETRY | LEFT_OPEN | detail << DETAIL_SHIFT, the detail a position in the
               worker's list; RETRY is there before the call

Deliveries need no column: each row that is no retry belongs to the worker's next delivery.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ROWS = 1024
RETRY = 1 << 6
LEFT_OPEN = 1 << 7
OUTCOME_MASK = RETRY - 1
DETAIL_SHIFT = 8
_COLUMN = ROWS * 8
_COLUMNS = 3
_CHUNK = _COLUMNS * _COLUMN


def recording(worker: int, life: int = 0) -> str:
    """Name of a worker's recording in the run's folder."""
    return f"worker-{worker}.calls" if life == 0 else f"worker-{worker}-{life}.calls"


class Columns(NamedTuple):
    """The chunk that is being written."""

    invoked: memoryview
    completed: memoryview
    answer: memoryview


class Recorder:
    """The writing side, one a worker."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._chunks = 0
        self._views: list[memoryview] = []
        self._map: mmap.mmap | None = None

    def next_chunk(self) -> Columns:
        """Room for `ROWS` more rows.

        Raises:
            OSError: There is no room on the disk. (Reserved in full: a sparse file would kill the worker
                with SIGBUS on a full disk.)
        """
        start = self._chunks * _CHUNK
        _reserve(self._file, start, _CHUNK)
        self.close_chunk()
        self._map = mmap.mmap(self._file, _CHUNK, offset=start)
        self._chunks += 1
        whole = memoryview(self._map)
        self._views = [whole[n * _COLUMN : (n + 1) * _COLUMN].cast("q") for n in range(_COLUMNS)]
        whole.release()
        return Columns(*self._views)

    def close_chunk(self) -> None:
        """Let go of the chunk that was being written."""
        for view in self._views:
            view.release()
        if self._map is not None:
            self._map.close()


class Watch:
    """The coordinator's look at a recording that is still being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._done = 0

    def look(self) -> tuple[int, int]:
        """Calls that came back so far, and when the call under way was invoked (0: none is)."""
        try:
            with self._path.open("rb") as file:
                while True:
                    chunk, row = divmod(self._done, ROWS)
                    file.seek(chunk * _CHUNK)
                    data = file.read(_CHUNK)
                    if len(data) < _CHUNK:
                        return self._done, 0
                    invoked, completed = (
                        memoryview(data)[n * _COLUMN : (n + 1) * _COLUMN].cast("q") for n in range(2)
                    )
                    while row < ROWS and completed[row]:
                        row += 1
                    self._done = chunk * ROWS + row
                    if row < ROWS:
                        return self._done, invoked[row]
        except FileNotFoundError:
            return 0, 0


def read(path: Path) -> npt.NDArray[np.int64]:
    """A finished recording: the three columns above, a row of the array each, as long as there are calls."""
    import numpy as np

    try:
        data = np.fromfile(path, dtype=np.int64)
    except FileNotFoundError:
        data = np.empty(0, dtype=np.int64)
    whole = data[: len(data) // (_COLUMNS * ROWS) * (_COLUMNS * ROWS)]
    columns = whole.reshape(-1, _COLUMNS, ROWS).transpose(1, 0, 2).reshape(_COLUMNS, -1)
    return columns[:, : np.count_nonzero(columns[0])]


def _allocate(file: int, start: int, length: int) -> None:
    os.pwrite(file, bytes(length), start)


_reserve: Callable[[int, int, int], None] = getattr(os, "posix_fallocate", _allocate)
