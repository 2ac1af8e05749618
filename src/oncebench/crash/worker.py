"""One process that is killed at a point, or that redelivers afterwards; started like a worker of a race.

Its connections are heard from the moment they are opened: `sqlite3.connect` is replaced in this process
before the receiver is imported, so that connections which the receiver opens itself are heard as well.

A kill after a statement comes when the call that ran it is over, seen through `sys.setprofile`, which runs
outside SQLite and in the receiver's frame. SIGTERM can be answered there as in any service: by default
it ends the process through SystemExit, past the receiver's `finally` and `with`; a receiver that brings its
own handler keeps it.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from oncebench.messages import BadInput
from oncebench.race.connections import when_opened
from oncebench.race.kills import leave, stop
from oncebench.race.life import die_with, mute
from oncebench.race.line import Job, Line
from oncebench.race.worker import Worker
from oncebench.receivers.loader import Receiver, load
from oncebench.stores import sqlite, witness

_LONGEST_TEXT = 200
_FIGURES = "SELECT (SELECT count(*) FROM inbox), (SELECT total FROM stock)"


@dataclass(frozen=True, slots=True)
class CrashJob(Job):
    """What one process is to do; `dies_in` says in which of its deliveries a worker dies.

    Attributes:
        tells: Say each step of SQLite.
        place: Where to die; empty for nowhere.
        start: The step after which to die.
        end: The step before which that is at the latest; -1 for the end of the call.
        signal: The number to die by.
    """

    tells: bool = False
    place: str = ""
    start: int = -1
    end: int = -1
    signal: int = signal.SIGKILL


class Watch:
    """Hears SQLite's steps and kills this process after the one that was chosen."""

    def __init__(self, job: CrashJob, line: Line) -> None:
        self.listening = False
        self.fired = False
        self.last = ""
        self._db: sqlite3.Connection | None = None
        self._job = job
        self._line = line
        self._index = -1
        self._frame: FrameType | None = None  # that ran the chosen statement, until the kill
        self._instruction = -1

    def hear_every_connection(self) -> None:
        """From now on, whoever opens it."""
        when_opened(lambda db, options: db.set_trace_callback(partial(self._step, db)))

    def _step(self, db: sqlite3.Connection, text: str) -> None:
        if not self.listening:
            return
        self._index += 1
        self.last = text
        self._db = db
        if self._job.tells:
            self._tell(self._index, _short(text))
        if self._index == self._job.start:
            self._line.say(said="came by", text=_short(text))
            self._frame = sys._getframe(1)  # a partial has no frame: this is who called SQLite
            self._instruction = self._frame.f_lasti
            sys.setprofile(self._profile)
        elif self._index == self._job.end and self._job.signal == signal.SIGKILL:
            self.fire()  # one call ran both. (SIGTERM is noticed after such a call, not within.)

    def end_call(self) -> None:
        """Stop to listen; a kill that is due comes now."""
        self.listening = False
        if self._job.tells:
            self._tell(-1, "")
        self.fire()

    def _tell(self, index: int, text: str) -> None:
        """Say a step, and what its own connection sees just before it, uncommitted work included."""
        at = time.perf_counter_ns()
        listening, self.listening = self.listening, False
        try:
            # A cursor made so has no row factory of the receiver's.
            figures = self._db and sqlite3.Cursor(self._db).execute(_FIGURES).fetchall()[0]
        except sqlite3.Error:  # it has other tables, or is closed
            figures = None
        self.listening = listening
        self._line.say(said="step", index=index, at=at, text=text, figures=figures)

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        """Called by Python; a function that SQLite calls within the statement is not yet the end of it."""
        outer = self._frame
        if frame is outer or (
            outer is not None and frame.f_back is outer and outer.f_lasti != self._instruction
        ):
            self.fire()

    def fire(self) -> None:
        """Die, if the chosen step was reached and nothing has happened yet."""
        if self._frame is not None and not self.fired:
            self.die()

    def die(self) -> None:
        """Die now; SIGTERM may be answered by an exception, or not at all."""
        sys.setprofile(None)
        self.fired = True
        self._line.say(said="doomed")
        os.kill(os.getpid(), self._job.signal)


class Caller(Worker):
    """Hands over one delivery after the other, and dies in one of them if it is told to."""

    def __init__(self, job: CrashJob, receiver: Receiver, line: Line, watch: Watch) -> None:
        self._watch = watch
        super().__init__(job, replace(receiver, receive=self._around(receiver.receive)), line)

    def _trace(self) -> None:
        """Every connection is heard already."""

    def _left_open(self) -> bool:
        self._last_statement = self._watch.last
        return super()._left_open()

    def run(self) -> None:
        """Deliver all of them, until one stays without an answer however often it is tried."""
        job = self._job
        assert isinstance(job, CrashJob)
        for _, _, _, deliveries, _ in job.phases or ():
            for number, delivery in enumerate(deliveries):
                doomed = number == job.dies_in
                if doomed and job.place == "before call":
                    try:
                        self._watch.die()
                    except BaseException:  # what a handler of SIGTERM raises; there is no call to undo
                        leave(self._db)
                self._deliver([delivery], gated=False)
                if doomed and job.place == "after ACK":
                    self._watch.die()
                if self._watch.fired:  # SIGTERM, and the call came to its end all the same
                    leave(self._db)
                if self._unanswered and job.insist:
                    return

    def _around(self, receive: Callable[[Any, str, int], object]) -> Callable[[Any, str, int], object]:
        """The receiver, heard and killed."""
        watch = self._watch

        def heard(db: Any, id: str, qty: int) -> object:
            watch.listening = True
            try:
                try:
                    return receive(db, id, qty)
                finally:
                    watch.end_call()
                    if self._is_doomed() and not watch.fired:
                        watch.die()
            except SystemExit:
                if watch.fired:
                    leave(db)
                raise

        return heard

    def _is_doomed(self) -> bool:
        """Whether the call under way ends where its process must."""
        job = self._job
        return isinstance(job, CrashJob) and job.place == "before ACK" and self._calls == job.dies_in


def _short(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_TEXT]


def main() -> None:
    """Do the job that comes over the line."""
    line, life = Line(int(sys.argv[1])), int(sys.argv[2])
    job = line.job(CrashJob)
    everything = str(Path(job.folder).parent)  # the job's own folder is that of one case
    threading.Thread(target=die_with, args=(life, everything), daemon=True).start()
    sys.path[:] = job.import_path
    signal.signal(signal.SIGTERM, stop)
    watch = Watch(job, line)
    watch.hear_every_connection()
    try:
        receiver = load(job.target)
        if job.serving:
            _serve(job, receiver, line, watch)
        caller = Caller(job, receiver, line, watch)
    except (BadInput, sqlite3.Error, OSError) as error:
        line.say(said="failed", why=f"{type(error).__name__}: {error}")
        return
    line.say(said="ready", effective=caller.effective())
    mute()
    caller.run()
    line.say(said="done")
    os._exit(0)


def _serve(job: CrashJob, receiver: Receiver, line: Line, watch: Watch) -> None:
    assert receiver.serve is not None
    db = sqlite.connect(job.store, sqlite.Settings(**job.settings), witness.Witnessed)
    if witness.is_present(db):
        db.attribute_changes()
    line.say(said="ready", effective=None)
    mute()
    watch.listening = True
    receiver.serve(db, Path(job.store))


if __name__ == "__main__":
    main()
