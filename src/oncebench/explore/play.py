"""Play a schedule move by move: what a move does."""

from __future__ import annotations

from collections.abc import Hashable

from oncebench.explore.clock import JUMP
from oncebench.explore.crew import Crew
from oncebench.explore.drain import drain
from oncebench.explore.draws import drawn
from oncebench.explore.gate import GO, TIME_OUT, Event
from oncebench.explore.log import Log
from oncebench.explore.plan import TICK, Plan, letter
from oncebench.explore.position import Position
from oncebench.explore.recorder import Recorder, refusal
from oncebench.explore.run import Diverged, Run, Step, Unexplorable
from oncebench.explore.seat import Seat, Status
from oncebench.explore.site import Site
from oncebench.explore.sql import first_word
from oncebench.explore.views import Views
from oncebench.messages import BadInput, Outcome

MOST_STATEMENTS = 200
"""Statements after which a call counts as one that never ends."""
KILLED = "killed"
_CHANGES_NOTHING = frozenset({"SELECT", "BEGIN"})


class Play:
    """One schedule in the making.

    Ask `enabled()`, pick one, call `move()`, until nothing is enabled; then `finish()`.

    Attributes:
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
        self._crew, self._site, self._plan, self._views = crew, site, plan, views
        self._recorder = Recorder(site) if recording else None
        self.steps: list[Step] = [] if self._recorder is None else self._recorder.steps
        self._keyed = keyed
        if crew.clock is not None:
            crew.clock.offset = 0.0
        self._before = site.renew(crew.disconnect)
        seats = [Seat(n, letter(n), -1, Status.DONE) for n in range(plan.workers)]
        self._at = Position(seats, Log(), views.number("content", "as new"))
        for seat in seats:
            self._hand_over(seat, anew=True)
        if plan.deaths:
            crew.stand_by()

    @property
    def schedule(self) -> tuple[str, ...]:
        """The moves so far."""
        return tuple(self._at.schedule)

    # Who may move.

    def enabled(self) -> list[str]:
        """The moves that can be made now, that of the worker moved last first; none when all is done."""
        while not self._at.able() and self._at.asleep():
            self._wait_for_a_sleeper()
        return self._at.moves(self._plan)

    def costs(self, move: str) -> int:
        """1 if the move leaves a worker that could go on, or kills one; else 0."""
        return self._at.costs(move)

    def why_not(self, move: str) -> str:
        """Why a move cannot be made now, in words."""
        if move == TICK:
            return "nobody is in a call, or the clock was put forward already"
        return self._site.plain(self._at.seat(move).why_not(move))

    def unfinished(self) -> str:
        """Who has not come to an end, in words."""
        left = " and ".join(str(seat) for seat in self._at.seats if seat.status is not Status.DONE)
        return self._site.plain(left)

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
        seat = self._at.seat(move)
        if seat.status in (Status.DONE, Status.ASLEEP) or (len(move) > 1 and not seat.is_in_a_call):
            raise Diverged(self.why_not(move))
        cost = self.costs(move)
        self._at.changes()
        if len(move) > 1:
            self._kill(seat)
        elif not self._go(seat):
            return False
        self._at.preemptions += cost
        self._at.schedule.append(move)
        for other in self._at.seats:
            if other is not seat:
                other.refusals = 0
                if other.status is Status.ASLEEP:
                    self._look_again(other, 0)
        return True

    def _jump(self) -> None:
        self._at.jumps += 1
        self._at.preemptions += 1
        self._at.schedule.append(TICK)
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
            self._at.log.begin(seat.call, seat.number, delivery.id, delivery.qty, seat.delivered)
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
        self._at.deadlocks += timed_out
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
        for text in drawn(event.seen):
            seat.draws += 1
            self._site.drawn.setdefault(text, f"random {seat.name}{seat.draws}")
        if event.kind == "refused":
            raise BadInput(f"{self._site.receiver.name} cannot be explored: {event.what}")
        if event.kind == "overdue":
            raise Unexplorable(
                f"worker {seat.name} did not come back to a step in time: it is at {event.what}",
                "".join([*self._at.schedule, seat.name]),
            )

    def _take(self, seat: Seat, event: Event) -> None:
        """Note why a worker came back, and what it has seen since it was moved."""
        if event.seen:
            seat.code = refusal(event.seen)
            seat.refusals = seat.refusals + 1 if seat.code else 0
        if self._keyed:
            self._view(seat, event)
        if event.kind == "wait":
            seat.status, seat.retry, seat.waiting_since = Status.WAITING, False, len(self._at.schedule)
        elif event.kind == "step":
            seat.status = Status.PARKED
            seat.statement, seat.parameters = event.what, event.parameters
        else:
            self._count_commits()
            self._at.log.end(seat.call, Outcome(event.outcome), event.what, event.left_open)
            seat.calls += 1
            seat.delivered += 1
            self._hand_over(seat)

    def _fall_asleep(self, seat: Seat, event: Event) -> None:
        """It waits outside SQLite, perhaps for another. Whether it holds a lock of SQLite's is not known."""
        seat.status, seat.where = Status.ASLEEP, event.what
        self._at.slept[event.what] = None
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
        asleep = self._at.asleep()
        self._at.changes()
        for seat in asleep:
            self._look_again(seat, self._crew.patience / len(asleep))
        if len(self._at.asleep()) == len(asleep):
            waits = " and ".join(f"{seat.name} at {seat.where}" for seat in asleep)
            raise Unexplorable(
                f"nobody came back to a step in time: outside SQLite waits {waits}",
                "".join(self._at.schedule),
            )

    def _view(self, seat: Seat, event: Event) -> None:
        views, plain = self._views, self._site.plain
        view = views.number(seat.view, tuple([views.text(plain(text), self._time) for text in event.seen]))
        what, parameters = plain(event.what), plain(event.parameters)
        if event.kind != "wait":  # whether one waits is SQLite's to say, not the receiver's
            answer = Outcome(event.outcome).name if event.outcome else ""
            views.follows(view, (event.kind, what, parameters, answer))
        seat.view = views.number(view, event.kind, what, parameters, event.outcome, event.left_open)

    def _hand_over(self, seat: Seat, anew: bool = False) -> None:
        """The next delivery is up; a worker that starts, or starts again, is told of all that are left."""
        row = self._plan.deliveries[seat.number][seat.delivered :]
        seat.status = Status.IDLE if row else Status.DONE
        if row and self._keyed:
            seat.view = self._views.number(seat.view, "call", row[0].id, row[0].qty)
        if row and anew:
            token = self._site.token
            calls = [(d.id + token, d.qty, seat.call + nth) for nth, d in enumerate(row)]
            self._crew.begin(seat.number, calls)

    def _kill(self, seat: Seat) -> None:
        """It dies, and starts again with a redelivery."""
        self._at.deaths += 1
        self._die(seat, KILLED)
        if self._recorder is not None:
            self._recorder.death(seat, KILLED)

    def _give_up(self, seat: Seat) -> None:
        """A call that does not end: its worker dies, and goes on with the next delivery."""
        self._at.log.endless.add(seat.call)
        seat.delivered += 1
        detail = f"no answer within {MOST_STATEMENTS} statements"
        if seat.refusals:
            detail += f", the last of them refused with {seat.code}: start the transaction again"
        self._die(seat, detail)

    def _die(self, seat: Seat, detail: str) -> None:
        self._at.log.cut_off(seat.call, detail)
        self._crew.kill(seat.number)
        if seat.holding:
            self._let_go(seat)
        seat.calls += 1
        seat.holding, seat.refusals, seat.marks = 0, 0, ()
        seat.view = self._views.number(seat.view, detail)
        self._hand_over(seat, anew=True)

    def _let_go(self, seat: Seat) -> None:
        """Somebody may have let go of a lock: those who wait may try again."""
        for other in self._at.seats:
            if other is not seat:
                other.retry = other.status is Status.WAITING

    # What distinguishes two prefixes.

    def _note_content(self, seat: Seat) -> None:
        if first_word(seat.statement) not in _CHANGES_NOTHING:
            if not self._keyed and self._site.is_wal:  # later will do, since nobody ever keeps readers out
                self._at.uncounted = True
            elif self._site.changed():
                self._at.commits += 1
                self._at.log.committed(self._site.witnessed())
                if self._keyed:
                    rows = [(name, self._site.plain(repr(rows))) for name, rows in self._site.content()]
                    self._at.content = self._views.number("content", tuple(rows), self._at.log.commits)
        seat.marks = (*seat.marks, (self._at.content, self._at.commits)) if seat.holding else ()

    def _count_commits(self) -> None:
        """Tell the log what is committed now. When, between two ends of calls, makes no difference to it."""
        if self._at.uncounted:
            self._at.uncounted = False
            self._at.log.committed(self._site.witnessed())

    def key(self) -> Hashable:
        """What distinguishes this prefix from others with other futures."""
        return self._at.key(self._time)

    @property
    def _time(self) -> float | None:
        return None if self._crew.clock is None else self._crew.clock.offset

    # The end.

    def finish(self) -> Run:
        """End what is open, read, redeliver what was not answered, read again."""
        self._count_commits()
        self._crew.settle()
        log, site = self._at.log, self._site
        between = after = log.timed(site.read())
        operations = log.operations()
        now = log.end_of_time + 2
        drained, stuck = drain(self._crew, site, self._plan, operations, now, self._at.schedule)
        if len(drained) > len(operations):
            after = log.timed(site.read())
        return Run(
            plan=self._plan,
            schedule=self.schedule,
            operations=operations,
            drained=drained,
            before=self._before,
            between=between,
            after=after,
            stuck=stuck,
            endless=tuple(
                n for n, operation in enumerate(operations) if operation.call in self._at.log.endless
            ),
            deadlocks=self._at.deadlocks,
            preemptions=self._at.preemptions,
            asleep=tuple(self._at.slept),
            steps=self.steps,
        )
