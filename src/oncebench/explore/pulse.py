"""Whether a worker that does not come back is asleep, and where: what no statement of SQLite's explains."""

from __future__ import annotations

import linecache
import os
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

TICK = 0.005
"""Seconds between two looks at a worker that has not come back."""
STILL = 5
"""Looks in a row that find it asleep, and not a nanosecond of work done since, before that is believed."""

NOT_THEIRS: tuple[str, ...] = (
    "<frozen",
    sysconfig.get_paths()["stdlib"],
    *(str(Path(__file__).parents[1] / room) for room in ("explore", "testing", "stores", "cli")),
)
"""How the names of files begin that are Python's, or ours."""


class Pulse:
    """Feels whether threads are all asleep; on systems without `/proc` that is never said."""

    def __init__(self, process: int, threads: Callable[[], Iterable[int]]) -> None:
        """Prepare.

        Args:
            process: Its number.
            threads: Their numbers for the system (`threading.Thread.native_id`), as they are when it asks.
        """
        self._tasks, self._threads = Path(f"/proc/{process}/task"), threads
        self._last: list[str] = []
        self._count = 0

    def is_still(self) -> bool:
        """Whether they have been asleep at each of the last looks; to be asked once each tick."""
        beat = self._beat()
        self._count = self._count + 1 if beat and all(beat) and beat == self._last else 0
        self._last = beat
        return self._count >= STILL

    def _beat(self) -> list[str]:
        """Nanoseconds of work that each has done, if it sleeps; nothing if it runs, or waits to."""
        return [self._work(self._tasks / str(thread)) for thread in self._threads()]

    def _work(self, task: Path) -> str:
        try:
            state = (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            return (task / "schedstat").read_text().split()[0] if state == "S" else ""
        except (OSError, IndexError):
            return ""


def threads_of(process: int) -> list[int]:
    """All threads of a process; none if it is gone, or where there is no `/proc`."""
    try:
        return [int(task.name) for task in Path(f"/proc/{process}/task").iterdir()]
    except OSError:
        return []


def frames(frame: FrameType | None) -> Iterable[tuple[str, int]]:
    """File and line of a frame and of those that called it."""
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


def place(stack: Iterable[tuple[str, int]]) -> str:
    """The receiver's own line among these, the innermost first: `mine.py:12 (with lock:)`."""
    theirs = next(((file, line) for file, line in stack if not file.startswith(NOT_THEIRS)), None)
    if theirs is None:
        return "a place that is not known"
    file, line = theirs
    here = f"{Path.cwd()}{os.sep}"
    source = linecache.getline(file, line).strip()
    return f"{file.removeprefix(here)}:{line}" + (f" ({source})" if source else "")
