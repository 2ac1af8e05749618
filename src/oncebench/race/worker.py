"""One worker process: `python -m oncebench.race.worker LINE LIFE`, two inherited file descriptors.

LINE is a socket to the coordinator: a job comes in, then for each gate the moment it opens; lines of JSON
go out (`ready`, `failed`, `detail`, `phase`, `done`) and an "@" for each gate that is reached. LIFE is a
pipe that nobody writes to: when the coordinator dies, however it dies, it closes, and the worker kills
itself and all that the receiver started, and removes the run's folder.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from oncebench.messages import CALL_BITS, Outcome
from oncebench.race.connections import Connections
from oncebench.race.failures import Details, classify, told, written
from oncebench.race.kills import Death, stop
from oncebench.race.life import die_with, mute
from oncebench.race.line import Job, Line
from oncebench.race.obstacle import obstruct, second_connection
from oncebench.race.pace import moments, wait_for
from oncebench.race.recorder import DETAIL_SHIFT, LEFT_OPEN, OUTCOME_MASK, RETRY, ROWS, Recorder, recording
from oncebench.receivers import awaiting
from oncebench.receivers.loader import Receiver, load
from oncebench.stores import sqlite, witness

BACKOFF = 0.001
"""Seconds before the first retry at most; doubled for each further one, up to `LONGEST_BACKOFF`."""
LONGEST_BACKOFF = 0.1


class Worker:
    """The loop that hands deliveries to the receiver and writes down what became of them."""

    def __init__(
        self,
        job: Job,
        receiver: Receiver,
        line: Line,
        connections: Connections | None = None,
        hands: list[Any] | None = None,
    ) -> None:
        """Open the connection.

        Args:
            job: What to do.
            receiver: Whom to call.
            line: To the coordinator.
            connections: All that the process has.
            hands: Those that the threads of this process were handed; this one's is added.
        """
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
        self._due: Iterator[int] | None = None
        self._last_statement = ""
        self._death: Death | None = None
        self._hands = hands
        self._connections = connections or Connections(job.store)
        self._connections.before_statement = self._before_statement
        line.opened = job.gates
        self._open()

    def _open(self) -> None:
        """Open a connection and make it ready to be watched."""
        self._db: Any = self._receiver.connect(Path(self._job.store), self._settings)
        if isinstance(self._db, sqlite3.Connection):
            self._connections.leave(self._db)
        if self._hands is not None:
            self._hands.append(self._db)
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
        for gated, paused, impatient, deliveries, offered in self._job.phases or ():
            opened = self._line.gate() or self._job.offered_since
            if self._time_is_up():
                return
            patience = self._set_patience(0) if impatient and not self._is_shared() else None
            if impatient:
                self._connections.set_impatient(True)
            self._obstacle = second_connection(self._job.store) if impatient else None
            self._due = moments(opened, *offered) if offered else None
            self._connections.beside = int(self._obstacle is not None)
            self._pausing = paused
            self._trace()
            if (
                self._hands is not None
            ):  # a pause within SQLite would keep the others from a connection that is shared
                sys.setprofile(self._after_call if paused else None)
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
            self._death.end_delivery(self._db)
        finally:
            self._receiver = plain

    def _set_patience(self, seconds: float) -> float | None:
        """Change the busy timeout of an SQLite connection; returns the one it had."""
        if not isinstance(self._db, sqlite3.Connection):
            return None
        before = sqlite.effective(self._db).busy_timeout
        sqlite.set_busy_timeout(self._db, seconds)
        return before

    def _trace(self) -> None:
        """Hear of statements only where something depends on it: it costs."""
        if isinstance(self._db, sqlite3.Connection) and self._hands is None:
            wanted = self._pausing or _opens_by_itself(self._db)
            self._db.set_trace_callback(self._before_statement if wanted else None)

    def _before_statement(self, statement: str) -> None:
        """Called by SQLite before each statement, those that the driver adds included."""
        if statement == self._last_statement:  # a trigger of it: the driver gives its text once more
            return
        self._last_statement = statement
        if self._pausing and self._rng.random() < self._job.pause_share:
            time.sleep(self._rng.random() * self._job.longest_pause)

    def _after_call(self, frame: object, event: str, function: object) -> None:
        """Called by Python; a pause comes when a connection or cursor has come back."""
        of = getattr(function, "__self__", None) if event == "c_return" else None
        if isinstance(of, sqlite3.Connection | sqlite3.Cursor) and self._rng.random() < self._job.pause_share:
            time.sleep(self._rng.random() * self._job.longest_pause)

    def _is_plain(self) -> bool:
        """Whether `in_transaction` alone tells that the receiver left a transaction open."""
        usual = isinstance(self._db, sqlite3.Connection) and not _opens_by_itself(self._db)
        return usual and not self._is_shared()

    def _is_shared(self) -> bool:
        """Whether other threads were handed the same connection: a transaction on it may be one of theirs."""
        return self._hands is not None and sum(each is self._db for each in self._hands) > 1

    def _left_open(self) -> bool:
        """The same for other connections; a BEGIN that `autocommit=False` sends ahead holds nothing yet."""
        in_transaction = getattr(self._db, "in_transaction", False) is True  # some drivers have a method
        if self._hands is not None and (self._is_shared() or _opens_by_itself(self._db)):
            return False  # nobody hears of its statements
        return in_transaction and not self._last_statement.startswith("BEGIN")

    def _deliver(self, deliveries: list[tuple[str, int]], gated: bool) -> None:
        # The hot loop: all names local, one store per number. See bench/recording.py for its cost.
        now = time.perf_counter_ns
        receive = self._receiver.receive
        conflict = self._receiver.conflict
        max_tries, until = self._job.max_tries, self._job.until
        obstacle, due = self._obstacle, self._due
        hindered = gated or obstacle is not None or due is not None
        db, plain, attributed = self._db, self._is_plain(), isinstance(self._db, witness.Witnessed)
        invoked, completed, answers = self._columns
        row = self._calls % ROWS
        first = self._number + self._calls - row  # number of the chunk's first call
        for id, qty in deliveries:
            if hindered:
                if gated:
                    self._line.gate()
                if obstacle is not None:
                    obstruct(obstacle, self._rng)
                if due is not None and not wait_for(next(due), until):
                    break
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
        return outcome | self._details.number(kind, lambda: told(error)) << DETAIL_SHIFT

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
            awaiting.finished(self._db.rollback())
        except Exception:
            try:
                self._receiver.close(self._db)
            finally:
                self._open()


def _opens_by_itself(db: sqlite3.Connection) -> bool:
    """Whether the driver begins a transaction as soon as one ends: `autocommit=False`, Python 3.12.

    Such a transaction holds nothing until a statement runs in it; only then did the receiver leave it open.
    """
    return getattr(db, "autocommit", None) is False


def main() -> None:
    """Do the jobs that come over the lines, one in each thread if there are several."""
    lines, life = [Line(int(number)) for number in sys.argv[1:-1]], int(sys.argv[-1])
    jobs = [line.job(Job) for line in lines]
    threading.Thread(target=die_with, args=(life, jobs[0].folder), daemon=True).start()
    sys.path[:] = jobs[0].import_path
    if jobs[0].dies_in >= 0:
        signal.signal(signal.SIGTERM, stop)  # a receiver may bring its own handler
    connections = Connections(jobs[0].store)
    os.register_at_fork(after_in_child=lambda: _forked(lines[0], connections))
    try:
        connections.listen()  # before somebody's module takes `connect` for itself
        receiver = load(jobs[0].target)
        if jobs[0].serving:
            _serve(jobs[0], receiver, lines[0])
    except Exception as error:
        lines[0].say(said="failed", why=written(told(error)))
        return
    if len(jobs) == 1:
        _work(jobs[0], receiver, lines[0], connections)
    else:
        _share(jobs, receiver, lines, connections)
    os._exit(0)  # whatever threads or exit handlers the receiver left behind


def _work(
    job: Job, receiver: Receiver, line: Line, connections: Connections, hands: list[Any] | None = None
) -> None:
    """Be one worker."""
    try:
        worker = Worker(job, receiver, line, connections, hands)
        effective = worker.effective()
    except Exception as error:
        line.say(said="failed", why=written(told(error)))
        os._exit(1)
    line.say(said="ready", effective=effective)
    if hands is None:
        mute()
    try:
        worker.run()
        awaits = receiver.asynchronous and receiver.own_connect is not None
        line.say(said="done", threaded=connections.threaded or awaits)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        line.say(said="failed", why=written(f"{told(error)} ({Path(where.filename).name}:{where.lineno})"))
        os._exit(1)


def _share(jobs: Sequence[Job], receiver: Receiver, lines: Sequence[Line], connections: Connections) -> None:
    """Be several workers, a thread each; which of them runs changes as often as Python allows.

    What they await runs on one loop, as the coroutines of a service do.
    """
    sys.setswitchinterval(1e-6)
    mute()
    if receiver.asynchronous:
        awaiting.share()
        connections.for_any_thread = True
    connections.heard = False
    hands: list[Any] = []  # the connections that the threads were handed
    threads = [
        threading.Thread(target=_work, args=(job, receiver, line, connections, hands))
        for job, line in zip(jobs, lines, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _forked(line: Line, connections: Connections) -> None:
    """In a child: SQLite's connections must not be carried over (https://sqlite.org/howtocorrupt.html#_fork_)."""
    if connections.are_open():
        line.say(said="forked")


def _serve(job: Job, receiver: Receiver, line: Line) -> None:
    assert receiver.serve is not None
    db = sqlite.connect(job.store, sqlite.Settings(**job.settings))
    line.say(said="ready", effective=None)
    receiver.serve(db, Path(job.store))


if __name__ == "__main__":
    main()
