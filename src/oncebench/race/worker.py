"""One worker process: `python -m oncebench.race.worker LINE LIFE`, two inherited file descriptors.

LINE is a socket to the coordinator: a job comes in, then for each gate the moment it opens; lines of JSON
go out (`ready`, `failed`, `detail`, `phase`, `done`) and an "@" for each gate that is reached. LIFE is a
pipe that nobody writes to: when the coordinator dies, however it dies, it closes, and the worker kills
itself and all that the receiver started, and removes the run's folder.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oncebench.messages import CALL_BITS, Outcome
from oncebench.race.connections import Connections
from oncebench.race.kills import Death
from oncebench.race.line import Job, Line
from oncebench.race.recorder import DETAIL_SHIFT, LEFT_OPEN, OUTCOME_MASK, RETRY, ROWS, Recorder, recording
from oncebench.receivers.loader import Receiver, load
from oncebench.stores import sqlite, witness

LOCK_ERRORS = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
"""Primary codes of a refusal for contention; the extended code is what is tallied."""
PROVES_NOTHING = frozenset(
    {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
)
"""Primary codes after which the work may or may not have been done."""
BACKOFF = 0.001
"""Seconds before the first retry at most; doubled for each further one, up to `LONGEST_BACKOFF`."""
LONGEST_BACKOFF = 0.1
OBSTRUCTED = 0.25
"""Share of deliveries in an impatient phase before which a worker holds a lock that others need."""
LONGEST_OBSTRUCTION = 0.003
"""Seconds."""
_LONGEST_DETAIL = 300


class Details:
    """Short texts by number; the coordinator is told of each once, so that they outlive the worker."""

    def __init__(self, line: Line) -> None:
        self._numbers = {"": 0}
        self._line = line

    def number(self, kind: str, example: Callable[[], str]) -> int:
        """The number of a kind of failure; its first example is kept, as far as it can be written."""
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self._numbers)
            self._line.say(said="detail", kind=_written(kind), example=_written(example()))
        return number


def _written(text: str) -> str:
    """Cut to a readable length; what cannot be encoded, such as half a surrogate, is spelt out."""
    return text[:_LONGEST_DETAIL].encode("utf-8", "backslashreplace").decode()


def _told(error: BaseException) -> str:
    """Class and message of an exception, even of one that cannot say it."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:
        return f"{name}, whose message cannot be made"


def classify(error: BaseException) -> tuple[Outcome, str]:
    """What an exception of the receiver means, and under which name it is tallied.

    SQLite's own error counts even if the receiver, or a library between, wrapped it in another, or raised
    something else while it was handling it: the refusal is why the call failed.
    """
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        code = getattr(cause, "sqlite_errorcode", None)
        if isinstance(code, int):
            name = str(getattr(cause, "sqlite_errorname", code))
            if code & 0xFF in LOCK_ERRORS:
                return Outcome.LOCKED, name
            if code & 0xFF in PROVES_NOTHING:
                return Outcome.INDETERMINATE, name
            return Outcome.ERROR, name
        if cause.__cause__ is not None or cause.__suppress_context__:
            cause = cause.__cause__
        else:
            cause = cause.__context__
    if isinstance(error, EOFError | ConnectionError | TimeoutError):
        return Outcome.INDETERMINATE, type(error).__name__
    return Outcome.ERROR, type(error).__name__


class Worker:
    """The loop that hands deliveries to the receiver and writes down what became of them."""

    def __init__(
        self, job: Job, receiver: Receiver, line: Line, connections: Connections | None = None
    ) -> None:
        self._job = job
        self._receiver = receiver
        self._line = line
        self._details = Details(line)
        self._rng = random.Random(f"{job.seed} worker {job.worker}")
        self._settings = sqlite.Settings(**job.settings)
        self._recorder = Recorder(Path(job.folder) / recording(job.worker, job.life))
        self._columns = self._recorder.next_chunk()
        self._calls = 0
        self._number = job.worker << CALL_BITS | job.first_call  # of the first call
        self._unanswered = 0
        self._pausing = False
        self._obstacle: sqlite3.Connection | None = None
        self._last_statement = ""
        self._death: Death | None = None
        self._connections = connections or Connections(job.store)
        self._connections.before_statement = self._before_statement
        line.opened = job.gates
        self._open()

    def _open(self) -> None:
        """Open a connection and make it ready to be watched."""
        self._db: Any = self._receiver.connect(Path(self._job.store), self._settings)
        if isinstance(self._db, sqlite3.Connection):
            self._connections.leave(self._db)
        if isinstance(self._db, witness.Witnessed) and witness.is_present(self._db):
            self._db.attribute_changes()
        self._trace()

    def effective(self) -> dict[str, Any] | None:
        """The settings that the connection really has; None if it is not SQLite's."""
        if not isinstance(self._db, sqlite3.Connection):
            return None
        real = sqlite.effective(self._db)
        return {"journal": real.journal, "synchronous": real.synchronous, "busy_timeout": real.busy_timeout}

    def run(self) -> None:
        """Deliver all phases."""
        until_death = self._job.dies_in
        for gated, paused, impatient, deliveries in self._job.phases or ():
            self._line.gate()
            if self._time_is_up():
                return
            patience = self._set_patience(0) if impatient else None
            if impatient:
                self._connections.set_impatient(True)
            self._obstacle = self._second_connection() if impatient else None
            self._pausing = paused
            self._trace()
            if 0 <= until_death < len(deliveries):
                self._deliver(deliveries[:until_death], gated)
                if self._time_is_up():
                    return
                self._die_during(deliveries[until_death], gated)
                self._deliver(deliveries[until_death + 1 :], gated)
            else:
                self._deliver(deliveries, gated)
            until_death -= len(deliveries)
            self._connections.set_impatient(False)
            if patience is not None:
                self._set_patience(patience)
            if self._obstacle is not None:
                self._obstacle.close()
        if self._death is not None:  # it came to the end of its plan faster than its end came to it
            self._death.wait()

    def _time_is_up(self) -> bool:
        """Whether nothing more is to be handed over."""
        return time.perf_counter_ns() > self._job.until

    def _die_during(self, delivery: tuple[str, int], gated: bool) -> None:
        """Hand over the delivery in which, or soon after which, this process is to be killed."""
        self._death = Death(self._job, self._line)
        plain, self._receiver = self._receiver, self._death.around(self._receiver)
        try:
            self._deliver([delivery], gated)
        finally:
            self._receiver = plain

    def _set_patience(self, seconds: float) -> float | None:
        """Change the busy timeout of an SQLite connection; returns the one it had."""
        if not isinstance(self._db, sqlite3.Connection):
            return None
        before = sqlite.effective(self._db).busy_timeout
        sqlite.set_busy_timeout(self._db, seconds)
        return before

    def _second_connection(self) -> sqlite3.Connection | None:
        """Another connection to the store, to stand in the way; None if that is not an SQLite file."""
        try:
            obstacle = sqlite.connect(self._job.store, sqlite.Settings(busy_timeout=0))
            obstacle.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error:
            return None
        return obstacle

    def _obstruct(self, obstacle: sqlite3.Connection) -> None:
        """Hold a lock for a moment: a writer's stops all who write, a reader's COMMIT in rollback mode."""
        if self._rng.random() >= OBSTRUCTED:
            return
        writes = self._rng.random() < 0.5
        with contextlib.suppress(sqlite3.DatabaseError):  # somebody else is in the way already, or worse
            obstacle.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            obstacle.execute("SELECT count(*) FROM sqlite_master").fetchone()
        time.sleep(self._rng.random() * LONGEST_OBSTRUCTION)
        obstacle.rollback()

    def _trace(self) -> None:
        """Hear of statements only where something depends on it: it costs."""
        if isinstance(self._db, sqlite3.Connection):
            wanted = self._pausing or _opens_by_itself(self._db)
            self._db.set_trace_callback(self._before_statement if wanted else None)

    def _before_statement(self, statement: str) -> None:
        """Called by SQLite before each statement, those that the driver adds included."""
        if statement == self._last_statement:  # a trigger of it: the driver gives its text once more
            return
        self._last_statement = statement
        if self._pausing and self._rng.random() < self._job.pause_share:
            time.sleep(self._rng.random() * self._job.longest_pause)

    def _is_plain(self) -> bool:
        """Whether `in_transaction` alone tells that the receiver left a transaction open."""
        return isinstance(self._db, sqlite3.Connection) and not _opens_by_itself(self._db)

    def _left_open(self) -> bool:
        """The same for other connections; a BEGIN that `autocommit=False` sends ahead holds nothing yet."""
        in_transaction = getattr(self._db, "in_transaction", False) is True  # some drivers have a method
        return in_transaction and not self._last_statement.startswith("BEGIN")

    def _deliver(self, deliveries: list[tuple[str, int]], gated: bool) -> None:
        # The hot loop: all names local, one store per number. See bench/recording.py for its cost.
        now = time.perf_counter_ns
        receive = self._receiver.receive
        conflict = self._receiver.conflict
        max_tries, until = self._job.max_tries, self._job.until
        obstacle = self._obstacle
        hindered = gated or obstacle is not None
        db, plain, attributed = self._db, self._is_plain(), isinstance(self._db, witness.Witnessed)
        invoked, completed, answers = self._columns
        row = self._calls % ROWS
        first = self._number + self._calls - row  # number of the chunk's first call
        for id, qty in deliveries:
            if hindered:
                if gated:
                    self._line.gate()
                if obstacle is not None:
                    self._obstruct(obstacle)
            tries = 1
            while True:
                if attributed:
                    db.call = first + row
                invoked[row] = now()
                try:
                    answered = receive(db, id, qty)
                    end = now()
                    if answered is True:
                        answer = 1  # Outcome.APPLIED; an enum's attribute costs as much as the clock
                    elif answered is False:
                        answer = 2
                    else:
                        answer = self._not_a_bool(answered)
                except conflict:
                    end = now()
                    answer = 3
                except BaseException as error:
                    end = now()
                    answer = self._failed(error)
                try:
                    if db.in_transaction if plain else self._left_open():
                        answer |= LEFT_OPEN
                except sqlite3.ProgrammingError:  # it closed the connection, as it might its own
                    self._open()
                    db, plain = self._db, self._is_plain()
                answers[row] = answer if tries == 1 else answer | RETRY
                completed[row] = end  # last: a row that has it is whole
                row += 1
                if row == ROWS:
                    invoked, completed, answers = self._columns = self._recorder.next_chunk()
                    first += ROWS
                    row = 0
                if answer > 3:
                    if answer & LEFT_OPEN:
                        self._roll_back()
                        db, plain = self._db, self._is_plain()
                    if self._try_again(answer & OUTCOME_MASK, tries, max_tries):
                        answers[row] = RETRY
                        tries += 1
                        continue
                break
            if end > until or (answer > 3 and self._unanswered >= self._job.insist > 0):
                break
        self._calls = first - self._number + row

    def _not_a_bool(self, answered: object) -> int:
        kind = f"returned {type(answered).__name__}"
        example = f"{kind}: only True and False are answers"
        return Outcome.ERROR | self._details.number(kind, lambda: example) << DETAIL_SHIFT

    def _failed(self, error: BaseException) -> int:
        try:
            outcome, kind = classify(error)
        except Exception:  # an exception of the receiver's whose attributes raise
            outcome, kind = Outcome.ERROR, type(error).__name__
        return outcome | self._details.number(kind, lambda: _told(error)) << DETAIL_SHIFT

    def _try_again(self, outcome: int, tries: int, max_tries: int) -> bool:
        """Whether to, after a wait of random length (so that those refused together part)."""
        if outcome <= Outcome.CONFLICT:
            return False
        if tries >= max_tries or (outcome != Outcome.LOCKED and not self._job.insist):
            self._unanswered += 1
            return False
        time.sleep(self._rng.random() * min(LONGEST_BACKOFF, BACKOFF * 2**tries))
        return True

    def _roll_back(self) -> None:
        """What a pool does with a connection that comes back with its transaction open."""
        try:
            self._db.rollback()
        except Exception:
            try:
                self._db.close()
            finally:
                self._open()


def _opens_by_itself(db: sqlite3.Connection) -> bool:
    """Whether the driver begins a transaction as soon as one ends: `autocommit=False`, Python 3.12.

    Such a transaction holds nothing until a statement runs in it; only then did the receiver leave it open.
    """
    return getattr(db, "autocommit", None) is False


def main() -> None:
    """Do the job that comes over the line."""
    line, life = Line(int(sys.argv[1])), int(sys.argv[2])
    job = line.job(Job)
    threading.Thread(target=die_with, args=(life, job.folder), daemon=True).start()
    sys.path[:] = job.import_path
    os.register_at_fork(after_in_child=lambda: _forked(line))
    try:
        connections = Connections(job.store)
        connections.listen()  # before somebody's module takes `connect` for itself
        receiver = load(job.target)
        if job.serving:
            _serve(job, receiver, line)
        worker = Worker(job, receiver, line, connections)
        effective = worker.effective()
    except Exception as error:
        line.say(said="failed", why=_written(_told(error)))
        return
    line.say(said="ready", effective=effective)
    mute()
    try:
        worker.run()
        line.say(said="done")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        line.say(said="failed", why=_written(f"{_told(error)} ({Path(where.filename).name}:{where.lineno})"))
    os._exit(0)  # whatever threads or exit handlers the receiver left behind


def _forked(line: Line) -> None:
    """In a child: SQLite's connections must not be carried over (https://sqlite.org/howtocorrupt.html#_fork_)."""
    line.say(said="forked")


def _serve(job: Job, receiver: Receiver, line: Line) -> None:
    assert receiver.serve is not None
    db = sqlite.connect(job.store, sqlite.Settings(**job.settings))
    line.say(said="ready", effective=None)
    receiver.serve(db, Path(job.store))


def mute() -> None:
    """A receiver that prints does not reach the bench's terminal."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)


def die_with(life: int, folder: str) -> None:
    """Wait until the pipe closes, that is until the coordinator is gone; then leave nothing behind.

    Args:
        life: The end of the pipe that nobody writes to.
        folder: The run's folder, removed.
    """
    os.read(life, 1)
    import shutil  # brings three compressors along: only for this

    while os.path.isdir(folder):  # noqa: PTH112 another worker may be in the middle of a write there
        shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
