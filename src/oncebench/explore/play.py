"""Play a schedule move by move: who may move, and what a move does."""

from __future__ import annotations

from collections.abc import Hashable

from oncebench.explore.clock import JUMP
from oncebench.explore.crew import Crew
from oncebench.explore.drain import drain
from oncebench.explore.gate import GO, TIME_OUT, Event
from oncebench.explore.log import Log
from oncebench.explore.plan import TICK, Plan, letter
from oncebench.explore.recorder import Recorder, refusal
from oncebench.explore.run import Diverged, Run, Step, Unexplorable
from oncebench.explore.seat import Seat, Status
from oncebench.explore.site import Site
from oncebench.explore.sql import first_word
from oncebench.explore.views import Views
from oncebench.messages import BadInput, Outcome

MOST_STATEMENTS = 200
"""Statements after which a call counts as one that never ends."""
MOST_REFUSALS = 3
"""Refusals in a row after which a worker must let another move first, as time would: else it only spins."""
KILLED = "killed"
_CHANGES_NOTHING = frozenset({"SELECT", "BEGIN"})


class Play:
    """One schedule in the making.

    Ask `enabled()`, pick one, call `move()`, until nothing is enabled; then `finish()`.

    Attributes:
        schedule: The moves so far.
        preemptions: How many of them left a worker that could have gone on, or killed one.
        deadlocks: How often everybody waited for everybody.
        steps: For a timeline; none if they are not recorded.
    """

    def __init__(
        self, crew: Crew, site: Site, plan: Plan, views: Views, recording: bool = False, keyed: bool = False
    ) -> None:
        """Make the store new and hand out the deliveries.

        Args:
            crew: Moves the workers.
            site: The store.
            plan: What is delivered to whom.
            views: Numbers for what workers see.
            recording: Whether to keep the steps for a timeline.
            keyed: Whether `key()` will be asked for.
        """
        self.schedule: list[str] = []
        self.preemptions = 0
        self.deadlocks = 0
        self._crew, self._site, self._plan, self._views = crew, site, plan, views
        self._recorder = Recorder(site) if recording else None
        self.steps: list[Step] = [] if self._recorder is None else self._recorder.steps
        self._keyed = keyed
        self._log = Log()
        self._slept: dict[str, None] = {}
        self._deaths = self._jumps = 0
        if crew.clock is not None:
            crew.clock.offset = 0.0
        self._commits = 0
        self._uncounted = False
        self._found_able: list[Seat] | None = None
        self._content = views.number("content", "as new")
        self._before = site.renew(crew.disconnect)
        self._seats = [Seat(n, letter(n), -1, Status.DONE) for n in range(plan.workers)]
        for seat in self._seats:
            self._hand_over(seat, anew=True)
        if plan.deaths:
            crew.stand_by()

    # Who may move.

    def enabled(self) -> list[str]:
        """The moves that can be made now, that of the worker moved last first; none when all is done."""
        able = self._able()
        while not able and self._asleep():
            self._wait_for_a_sleeper()
            able = self._able()
        names = [seat.name for seat in able]
        last = self.schedule[-1][0] if self.schedule else ""
        if last in names[1:]:
            names.remove(last)
            names.insert(0, last)
        if not names:
            return []
        if self._deaths < self._plan.deaths:
            names += [f"{seat.name}!" for seat in self._seats if seat.is_in_a_call]
        if self._jumps < self._plan.jumps and any(seat.is_in_a_call for seat in self._seats):
            names.append(TICK)
        return names

    def costs(self, move: str) -> int:
        """1 if the move leaves a worker that could go on, or kills one; else 0."""
        if len(move) > 1 or move == TICK:
            return 1
        if not self.schedule or len(self.schedule[-1]) > 1 or move == self.schedule[-1]:
            return 0
        return int(any(seat.name == self.schedule[-1] for seat in self._able()))

    def why_not(self, move: str) -> str:
        """Why a move cannot be made now, in words."""
        if move == TICK:
            return "nobody is in a call, or the clock was put forward already"
        return self._site.plain(self._seat(move).why_not(move))

    def unfinished(self) -> str:
        """Who has not come to an end, in words."""
        left = " and ".join(str(seat) for seat in self._seats if seat.status is not Status.DONE)
        return self._site.plain(left)

    def _able(self) -> list[Seat]:
        """Asked twice between two moves: before one is picked, and for what it costs."""
        if self._found_able is None:
            able = [seat for seat in self._seats if seat.can_go_on]
            able = [seat for seat in able if seat.refusals < MOST_REFUSALS] or able
            # If everybody waits, a timeout passes.
            self._found_able = able or [self._seats[number] for number in self._queue()[:1]]
        return self._found_able

    def _asleep(self) -> list[Seat]:
        return [seat for seat in self._seats if seat.status is Status.ASLEEP]

    def _queue(self) -> tuple[int, ...]:
        """Those who wait, the longest first."""
        waiting = [(seat.waiting_since, seat.number) for seat in self._seats if seat.status is Status.WAITING]
        return tuple([number for _, number in sorted(waiting)])

    def _seat(self, move: str) -> Seat:
        return self._seats[ord(move[0]) - ord("A")]

    # Moving.

    def move(self, move: str) -> bool:
        """Make a move; False if nothing moved, since the worker still waits.

        Raises:
            BadInput: The receiver does what cannot be explored.
            Unexplorable: It did not come back.
            Diverged: There is no such move.
        """
        if move == TICK:
            self._jump()
            return True
        seat = self._seat(move)
        if seat.status in (Status.DONE, Status.ASLEEP) or (len(move) > 1 and not seat.is_in_a_call):
            raise Diverged(self.why_not(move))
        cost = self.costs(move)
        self._found_able = None
        if len(move) > 1:
            self._kill(seat)
        elif not self._go(seat):
            return False
        self.preemptions += cost
        self.schedule.append(move)
        for other in self._seats:
            if other is not seat:
                other.refusals = 0
                if other.status is Status.ASLEEP:
                    self._look_again(other, 0)
        return True

    def _jump(self) -> None:
        self._jumps += 1
        self.preemptions += 1
        self.schedule.append(TICK)
        if self._crew.clock is not None:
            self._crew.clock.offset += JUMP
        if self._recorder is not None:
            self._recorder.jump()

    def _go(self, seat: Seat) -> bool:
        waited = seat.status is Status.WAITING
        timed_out = waited and not seat.retry
        held = seat.holding
        if seat.status is Status.IDLE:
            delivery = self._plan.deliveries[seat.number][seat.delivered]
            self._log.begin(seat.call, seat.number, delivery.id, delivery.qty, seat.delivered)
            seat.statements, seat.statement, seat.parameters = 0, "", ""
            event = self._resume(seat, GO)
            if event.kind == "step":
                if self._recorder is not None:
                    self._recorder.early = event.seen
                self._take(seat, event)
                event = self._resume(seat, GO)
        else:
            event = self._resume(seat, TIME_OUT if timed_out else GO)
        if waited and event.kind == "wait":
            seat.retry = False
            return False
        self.deadlocks += timed_out
        seat.statements += 1
        seat.holding = event.holding
        self._note_content(seat)
        statement = seat.statement, seat.parameters
        if event.kind == "asleep":
            self._fall_asleep(seat, event)
        else:
            self._take(seat, event)
        if held and (event.holding < held or event.holding > 1):
            self._let_go(seat)
        if self._recorder is not None:
            self._recorder.step(seat, *statement, event, timed_out)
        if event.kind == "step" and seat.statements >= MOST_STATEMENTS:
            self._give_up(seat)
        return True

    def _resume(self, seat: Seat, command: str) -> Event:
        event = self._crew.resume(seat.number, command)
        self._check(seat, event)
        return event

    def _check(self, seat: Seat, event: Event) -> None:
        if event.kind == "refused":
            raise BadInput(f"{self._site.receiver.name} cannot be explored: {event.what}")
        if event.kind == "overdue":
            raise Unexplorable(
                f"worker {seat.name} did not come back to a step in time: it is at {event.what}",
                "".join([*self.schedule, seat.name]),
            )

    def _take(self, seat: Seat, event: Event) -> None:
        """Note why a worker came back, and what it has seen since it was moved."""
        if event.seen:
            seat.code = refusal(event.seen)
            seat.refusals = seat.refusals + 1 if seat.code else 0
        if self._keyed:
            self._view(seat, event)
        if event.kind == "wait":
            seat.status, seat.retry, seat.waiting_since = Status.WAITING, False, len(self.schedule)
        elif event.kind == "step":
            seat.status = Status.PARKED
            seat.statement, seat.parameters = event.what, event.parameters
        else:
            self._count_commits()
            self._log.end(seat.call, Outcome(event.outcome), event.what, event.left_open)
            seat.calls += 1
            seat.delivered += 1
            self._hand_over(seat, anew=False)

    def _fall_asleep(self, seat: Seat, event: Event) -> None:
        """It waits outside SQLite, perhaps for another. Whether it holds a lock of SQLite's is not known."""
        seat.status, seat.where = Status.ASLEEP, event.what
        self._slept[event.what] = None
        self._let_go(seat)

    def _look_again(self, seat: Seat, seconds: float) -> None:
        """See whether a worker that waits outside SQLite has come back since."""
        event = self._crew.look_again(seat.number, seconds)
        if event is None:
            return
        self._check(seat, event)
        seat.holding = event.holding
        self._take(seat, event)
        if self._recorder is not None:
            self._recorder.woke(seat, event)

    def _wait_for_a_sleeper(self) -> None:
        """Nobody else can move."""
        asleep, self._found_able = self._asleep(), None
        for seat in asleep:
            self._look_again(seat, self._crew.patience / len(asleep))
        if len(self._asleep()) == len(asleep):
            waits = " and ".join(f"{seat.name} at {seat.where}" for seat in asleep)
            raise Unexplorable(
                f"nobody came back to a step in time: outside SQLite waits {waits}", "".join(self.schedule)
            )

    def _view(self, seat: Seat, event: Event) -> None:
        views, plain = self._views, self._site.plain
        view = views.number(seat.view, tuple([views.text(plain(text)) for text in event.seen]))
        what, parameters = plain(event.what), plain(event.parameters)
        if event.kind != "wait":  # whether one waits is SQLite's to say, not the receiver's
            answer = Outcome(event.outcome).name if event.outcome else ""
            views.follows(view, (event.kind, what, parameters, answer))
        seat.view = views.number(view, event.kind, what, parameters, event.outcome, event.left_open)

    def _hand_over(self, seat: Seat, anew: bool) -> None:
        """The next delivery is up; a worker that starts, or starts again, is told of all that are left."""
        row = self._plan.deliveries[seat.number][seat.delivered :]
        seat.status = Status.IDLE if row else Status.DONE
        if row:
            if self._keyed:
                seat.view = self._views.number(seat.view, "call", row[0].id, row[0].qty)
            if anew:
                token = self._site.token
                calls = [(d.id + token, d.qty, seat.call + nth) for nth, d in enumerate(row)]
                self._crew.begin(seat.number, calls)

    def _kill(self, seat: Seat) -> None:
        """It dies, and starts again with a redelivery."""
        self._deaths += 1
        self._die(seat, KILLED)
        if self._recorder is not None:
            self._recorder.death(seat, KILLED)

    def _give_up(self, seat: Seat) -> None:
        """A call that does not end: its worker dies, and goes on with the next delivery."""
        self._log.endless.add(seat.call)
        seat.delivered += 1
        detail = f"no answer within {MOST_STATEMENTS} statements"
        if seat.refusals:
            detail += f", the last of them refused with {seat.code}: start the transaction again"
        self._die(seat, detail)

    def _die(self, seat: Seat, detail: str) -> None:
        self._log.cut_off(seat.call, detail)
        self._crew.kill(seat.number)
        if seat.holding:
            self._let_go(seat)
        seat.calls += 1
        seat.holding, seat.refusals, seat.marks = 0, 0, ()
        seat.view = self._views.number(seat.view, detail)
        self._hand_over(seat, anew=True)

    def _let_go(self, seat: Seat) -> None:
        """Somebody may have let go of a lock: those who wait may try again."""
        for other in self._seats:
            if other is not seat:
                other.retry = other.status is Status.WAITING

    # What distinguishes two prefixes.

    def _note_content(self, seat: Seat) -> None:
        if first_word(seat.statement) not in _CHANGES_NOTHING:
            if not self._keyed and self._site.is_wal:  # later will do, since nobody ever keeps readers out
                self._uncounted = True
            elif self._site.changed():
                self._commits += 1
                self._log.committed(self._site.witnessed())
                if self._keyed:
                    rows = [(name, self._site.plain(repr(rows))) for name, rows in self._site.content()]
                    self._content = self._views.number("content", tuple(rows), self._log.commits)
        seat.marks = (*seat.marks, (self._content, self._commits)) if seat.holding else ()

    def _count_commits(self) -> None:
        """Tell the log what is committed now. When, between two ends of calls, makes no difference to it."""
        if self._uncounted:
            self._uncounted = False
            self._log.committed(self._site.witnessed())

    def key(self) -> Hashable:
        """All that the future depends on: what is committed, and for each worker what it has seen and holds.

        What a worker has written and not committed follows from what it has seen and what was committed when
        it did; whether its snapshot is out of date, from whether anybody has committed since. The order of
        ends and beginnings of calls belongs to it because a judge sees it.
        """
        seats = [
            (
                seat.view,
                seat.status,
                seat.retry,
                seat.refusals,
                seat.delivered,
                tuple([(content, commits == self._commits) for content, commits in seat.marks]),
            )
            for seat in self._seats
        ]
        if self._slept:  # what waits outside SQLite depends on more than can be seen here
            return tuple(self.schedule)
        counts = self._deaths, self.deadlocks, self._jumps, self._crew.clock and self._crew.clock.offset
        return self._content, tuple(seats), self._queue(), self._log.order, counts, *self.schedule[-1:]

    # The end.

    def finish(self) -> Run:
        """End what is open, read, redeliver what was not answered, read again."""
        self._count_commits()
        self._crew.settle()
        log, site = self._log, self._site
        between = after = log.timed(site.read())
        operations = log.operations()
        now = log.end_of_time + 2
        drained, stuck = drain(self._crew, site, self._plan, operations, now, self.schedule)
        if len(drained) > len(operations):
            after = log.timed(site.read())
        return Run(
            plan=self._plan,
            schedule=tuple(self.schedule),
            operations=operations,
            drained=drained,
            before=self._before,
            between=between,
            after=after,
            stuck=stuck,
            endless=tuple(n for n, operation in enumerate(operations) if operation.call in self._log.endless),
            deadlocks=self.deadlocks,
            preemptions=self.preemptions,
            asleep=tuple(self._slept),
            steps=self.steps,
        )
