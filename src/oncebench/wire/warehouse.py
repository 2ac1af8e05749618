"""A receiver at work in a server: which connection takes which delivery, and what is written down of it."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oncebench.messages import CALL_BITS, BadInput, Outcome
from oncebench.race.failures import classify
from oncebench.receivers import awaiting
from oncebench.receivers.loader import Receiver
from oncebench.stores import sqlite, witness
from oncebench.wire.log import Log
from oncebench.wire.message import Message
from oncebench.wire.process import START, Death

_FAREWELL = 2.0  # seconds for a connection to finish what it does


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one delivery.

    Attributes:
        detail: The extended SQLite code or the exception's class, if it failed.
    """

    outcome: Outcome
    detail: str = ""


class _Last(threading.local):
    """The last statement of each thread's connection."""

    statement = ""


class Warehouse:
    """A receiver at work: threads with a connection each take deliveries from one queue."""

    def __init__(
        self,
        receiver: Receiver,
        store: Path,
        settings: sqlite.Settings,
        *,
        connections: int = 2,
        first_worker: int = 1,
        pause: float = 0.0,
        log: Log | None = None,
        death: Death | None = None,
    ) -> None:
        """Open the connections.

        Args:
            receiver: The code under test.
            store: Path of the store.
            settings: How connections are opened.
            connections: Deliveries that can be under way at once.
            first_worker: Number of the first connection, unique in the run.
            pause: Seconds before each statement, to widen what lies between two.
            log: Where each delivery is written down.
            death: Where to die.

        Raises:
            BadInput: The receiver cannot connect.
        """
        self._receiver = receiver
        self._store = store
        self._settings = settings
        self._pause = pause
        self._log = log or Log(None, "server")
        self._death = death or Death(None)
        self._last = _Last()
        self._closing = threading.Lock()
        self._queue: queue.SimpleQueue[tuple[Message, Future[Answer]] | None] = queue.SimpleQueue()
        opened: list[Future[None]] = []
        self._threads = []
        for worker in range(first_worker, first_worker + connections):
            opened.append(Future())
            thread = threading.Thread(target=self._work, args=(worker, opened[-1]), daemon=True)
            self._threads.append(thread)
            thread.start()
        for future in opened:
            try:
                future.result(START)
            except Exception as error:
                raise BadInput(
                    f"{receiver.name} cannot connect to the store: {type(error).__name__}: {error}: "
                    "mend its connect()"
                ) from error

    async def receive(self, message: Message) -> Answer:
        """Hand a message over and wait for the receiver's answer."""
        future: Future[Answer] = Future()
        self._queue.put((message, future))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Let every connection finish what it does and close; one that hangs is left behind."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(_FAREWELL)

    def _work(self, worker: int, opened: Future[None]) -> None:
        try:
            db = self._open()
        except BaseException as error:
            opened.set_exception(error)
            return
        opened.set_result(None)
        call = worker << CALL_BITS
        while True:
            job = self._queue.get()
            if job is None:
                with self._closing:  # of two that close at once neither is the last, and the WAL would stay
                    self._receiver.close(db)
                awaiting.end()
                return
            message, future = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                answer = self._call(db, message, call)
                if answer.outcome > Outcome.CONFLICT:
                    db = self._rolled_back(db)
                future.set_result(answer)
            except Exception as error:  # a log on a full disk, a connection that cannot be opened again
                future.set_exception(error)
            call += 1

    def _open(self) -> Any:
        db = self._receiver.connect(self._store, self._settings)
        if isinstance(db, witness.Witnessed) and witness.is_present(db):
            db.attribute_changes()
        if isinstance(db, sqlite3.Connection):
            db.set_trace_callback(self._before_statement)
        return db

    def _before_statement(self, statement: str) -> None:
        # SQLite says each trigger of a statement too, in the words of the statement itself.
        if statement == self._last.statement:
            return
        self._last.statement = statement
        self._death.at("in_receiver")
        if self._pause:
            time.sleep(self._pause)

    def _call(self, db: Any, message: Message, call: int) -> Answer:
        self._death.at("before_receiver")
        self._last.statement = ""
        if isinstance(db, witness.Witnessed):
            db.call = call
        invoked = time.perf_counter_ns()
        self._log.write("received", invoked, call=call, id=message.id, qty=message.qty)
        try:
            answered = self._receive(db, message)
            end = time.perf_counter_ns()
            if answered is True or answered is False:
                answer = Answer(Outcome.APPLIED if answered else Outcome.DUPLICATE)
            else:
                answer = Answer(Outcome.ERROR, f"returned {type(answered).__name__}")
        except self._receiver.conflict:
            end = time.perf_counter_ns()
            answer = Answer(Outcome.CONFLICT)
        except BaseException as error:  # a receiver that raises SystemExit does not stop the server
            end = time.perf_counter_ns()
            answer = Answer(*classify(error))
        open = _left_open(db)
        name = answer.outcome.name.lower()
        self._log.write("answered", end, call=call, outcome=name, detail=answer.detail, left_open=open)
        return answer

    def _receive(self, db: Any, message: Message) -> object:
        if message.schema is None or message.payload is None:
            return self._receiver.receive(db, message.id, message.qty)
        assert self._receiver.receive_payload is not None  # `application` lets no others through
        return self._receiver.receive_payload(db, message.id, message.qty, message.schema, message.payload)

    def _rolled_back(self, db: Any) -> Any:
        """What a pool does with a connection that comes back with its transaction open."""
        if not _left_open(db):
            return db
        try:
            awaiting.finished(db.rollback())
            return db
        except Exception:
            self._receiver.close(db)
            return self._open()


def _left_open(db: object) -> bool:
    if getattr(db, "autocommit", None) is False:  # the driver itself begins anew; that holds nothing yet
        return False
    return getattr(db, "in_transaction", False) is True
