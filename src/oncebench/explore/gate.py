"""A worker's side of the scheduler: where it parks, and what it tells."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

from oncebench.explore.clock import Clock

ONE_FILE = "explore watches one database file, the store it hands to the receiver"
BESIDE = "a thread of its own"
"""Where a worker is, in words, that runs statements beside the thread that calls `receive`."""
NOBODYS_THREAD = (
    "it runs statements on a thread that no worker started: start it in receive() or connect(), or call "
    "SQLite on the thread that calls receive()"
)
ONE_AT_A_TIME = (
    "one call of it runs statements on two threads at once: explore moves one statement of a worker at a time"
)
ONE_STORE = (
    "it goes on with a connection to a store that is gone: explore makes a new one for each part, so open "
    "connections in connect(path), or name a class as the target, of which each part gets an object"
)
ANOTHERS = (
    "it goes on with a connection that another worker opened for its own thread: open connections in "
    "connect(path), or name a class as the target, of which each part gets an object"
)
GO, TIME_OUT, DIE = "go", "time out", "die"
"""What the scheduler says to a parked worker; `TIME_OUT` ends a wait as the busy timeout does."""


class Event(NamedTuple):
    """Why a worker came back to the scheduler.

    Attributes:
        kind: "step" (parked before a statement), "wait" (refused where SQLite would wait), "answer" (a call
            ended), "refused" (the receiver cannot be explored), "overdue" (it did not come back in time),
            "needs" (it needs workers of the kind that `parameters` names), "asleep" (it has not come back,
            and waits for what is not SQLite's).
        what: The statement, the lock error's name, or a sentence; for an answer the outcome's detail; for
            one that has not come back, the receiver's line that it is at.
        parameters: The statement's, as text.
        seen: What the receiver could learn since it was moved, as text.
        holding: How many of its connections may hold a lock.
        outcome: Of an answer, an `oncebench.messages.Outcome`.
        left_open: Whether the call came back with a transaction open.
        over: Whether it was the last of the calls that the worker was given, which now waits for others.
    """

    kind: str
    what: str = ""
    parameters: str = ""
    seen: tuple[str, ...] = ()
    holding: int = 0
    outcome: int = 0
    left_open: bool = False
    over: bool = False


class Killed(BaseException):
    """The worker dies here; nothing it does afterwards reaches the database."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, and not what a receiver raised."""


class Gate:
    """Where one worker parks: its own thread, or one that it started, as an async driver does.

    Attributes:
        store: Real path of the one file it may open.
        waits: Whether a worker waits where SQLite's busy handler would.
        live: Whether statements are steps now; they are not while the bench itself calls.
        dead: Whether the worker was killed.
        connections: That it has opened, or used, in the order in which it first did.
        last: The last statement it was let through to.
        thread: The worker's own.
        alone: Whether no other thread may run its statements.
        handed: What its receiver is called with.
        clock: What its code takes for the time; None for the system's.
        has_process: Whether no other worker lives in its process.
        moment: The time that "now" means in its statement; None if nobody asked.
    """

    def __init__(
        self,
        store: str,
        waits: bool,
        park: Callable[[Event], str],
        clock: Clock | None = None,
        alone: bool = False,
        has_process: bool = False,
    ) -> None:
        self.store = store
        self.waits = waits
        self.live = False
        self.dead = False
        self.connections: list[weakref.ref[Any]] = []
        self.last = ""
        self.clock = clock
        self.thread = threading.get_ident()
        self.alone = alone
        self.handed: Any = None
        self._park = park
        self.has_process = has_process
        self.moment: float | None = None
        self._needs: Event | None = None
        self._parking = threading.Lock()
        self._seen: list[object] = []
        self._refusal = ""

    def begin(self, live: bool) -> None:
        """Calls are made from now on; their statements are steps if `live`."""
        self.live = live
        if self._parking.locked():  # since it answered the last call before
            self._parking.release()

    def step(self, statement: str, parameters: object) -> None:
        """Park before a statement until it is this worker's turn.

        Raises:
            Killed: The worker is to die.
        """
        if self.live:
            self.park(Event("step", statement, repr(parameters), self._told(), self._holding()))
        self.last, self.moment = statement, None

    def wait(self, code: str) -> bool:
        """Block until another has moved; False if the busy timeout passes first.

        Raises:
            Killed: The worker is to die.
        """
        if not self.live:
            return False
        return self.park(Event("wait", code, "", self._told(), self._holding())) != TIME_OUT

    def answer(self, outcome: int, detail: str, left_open: bool, over: bool) -> Event:
        """What to say of a call that has ended; if all are `over`, no thread of it may park after that.

        Raises:
            Killed: The worker died in it, or cannot be explored.
        """
        if self.dead:
            raise Killed
        if self.store in opened_by_strangers:
            self._refusal = NOBODYS_THREAD
        if over and not self.alone and not self._parking.acquire(blocking=False):
            self._refusal = ONE_AT_A_TIME
        if self.objection is not None:
            raise Killed
        return Event("answer", detail, "", self._told(), self._holding(), outcome, left_open, over)

    def park(self, event: Event) -> str:
        """Give the turn back, and hear what to do when it comes again.

        Raises:
            Killed: The worker is to die.
        """
        if self.dead:
            raise Killed
        if self.store in opened_by_strangers:
            self._refusal = NOBODYS_THREAD
        if self.alone:
            command = self._park(self.objection or event)
        elif self._parking.acquire(blocking=False):
            try:
                command = self._park(self.objection or event)
            finally:
                self._parking.release()
        else:
            self._refusal = ONE_AT_A_TIME
            raise Killed
        if command == DIE:
            self.dead = True
            raise Killed
        return command

    def go_on(self, on: str, where: str) -> None:
        """What is done needs workers that are `threads`, or `processes`: say so, and end the call.

        Raises:
            Killed: Always.
        """
        self._needs = Event("needs", where, on)
        raise Killed

    def saw(self, result: object) -> None:
        """What the receiver could learn from its last statement."""
        if self.live:
            self._seen.append(result)

    def refuse(self, sentence: str) -> None:
        """The receiver does something that cannot be explored: say so, and end the call.

        Raises:
            Killed: Always.
        """
        self._refusal = sentence
        if self.live:
            self.park(Event("refused", sentence))
        raise Killed

    @property
    def objection(self) -> Event | None:
        """Why the receiver cannot be explored, or not by such workers; None if it can."""
        return Event("refused", self._refusal) if self._refusal else self._needs

    def uses(self, db: Any) -> None:
        """It has opened a connection, or runs a statement on one that another has used."""
        db.user = self
        if not any(known() is db for known in self.connections):
            self.connections = [known for known in self.connections if known() is not None]
            self.connections.append(weakref.ref(db))

    def used_ones(self) -> list[Any]:
        """Connections that are there still, and that nobody else has used since."""
        return [db for known in self.connections if (db := known()) is not None and db.user is self]

    def _holding(self) -> int:
        held = 0
        for known in self.connections:
            db = known()
            if db is not None and db.user is self and db.holds:
                held += 1
        return held

    def _told(self) -> tuple[str, ...]:
        if not self._seen:
            return ()
        seen, self._seen = self._seen, []
        return tuple([_as_text(result) for result in seen])


def _as_text(result: object) -> str:
    if isinstance(result, sqlite3.Row):
        return repr(tuple(result))
    if isinstance(result, list):
        return "[" + ", ".join([_as_text(row) for row in result]) + "]"
    return repr(result)


explores: ContextVar[bool] = ContextVar("explores", default=False)
"""Whether the code that is running belongs to the bench, which explores."""
gate_of_caller: ContextVar[Gate | None] = ContextVar("gate_of_caller", default=None)
"""The gate of the worker whose code is running; None outside of any."""
opened_by_strangers: set[str] = set()
"""Stores under exploration that a thread opened which is neither a worker's nor the bench's."""
started_by: dict[int, list[threading.Thread]] = {}
"""Threads that a worker started, by its own thread's number."""
