"""One race: a store, workers that deliver to it at once, the drain, and what was read before and after."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from oncebench.messages import NEVER, BadInput, History, Outcome, State
from oncebench.race import pace, reading, recorder
from oncebench.race.crew import Crew, Member
from oncebench.race.kills import plan_kills
from oncebench.race.line import Job
from oncebench.stores import sqlite
from oncebench.stores.folder import Folder
from oncebench.workload import Phase, Workload, plan, to_consumers

if TYPE_CHECKING:
    from oncebench.receivers.loader import Receiver

_DRAIN_TRIES = 5
_STUCK_ENOUGH = 3  # deliveries that stay without an answer before the drain gives up


@dataclass(frozen=True, slots=True)
class Policy:
    """How the publisher behaves.

    Attributes:
        max_tries: Calls for each delivery at most: only lock errors are tried again, after a random wait.
        deadline: Seconds that one call may take before its worker is killed.
        watched: Whether the store has a witness.
        kills: Workers that are killed in mid-race, and started again.
        threads: Workers that share a process, as threads of it.
        time_limit: Seconds after which nothing more is handed over; the drain has as many.
    """

    max_tries: int = 1
    deadline: float = 30.0
    watched: bool = True
    kills: int = 0
    threads: int = 1
    time_limit: float = 60.0

    def __post_init__(self) -> None:
        if not 1 <= self.max_tries <= 1000:
            raise BadInput(f"max-tries must be 1 to 1000, not {self.max_tries}")
        if not 0 <= self.kills <= 100_000:
            raise BadInput(f"kills must be 0 to 100000, not {self.kills}")
        if not 0 < self.deadline <= 86_400:
            raise BadInput(f"the deadline must be more than 0 s and at most a day, not {self.deadline:g} s")
        if not 1 <= self.threads <= 256:
            raise BadInput(f"threads must be 1 to 256, not {self.threads}")
        if self.threads > 1 and self.kills:
            raise BadInput("a kill would end all threads of its process: race with --threads or --kills")
        if not 0 < self.time_limit <= 86_400:
            raise BadInput(
                f"the time limit must be more than 0 s and at most a day, not {self.time_limit:g} s"
            )


@dataclass
class Race:
    """What one race left behind.

    Attributes:
        phases: What was planned, the warm-up first.
        history: The operations of the phases; of the warm-up only those that did not come back.
        drained: The same, then those of the drain.
        before: The store after the warm-up.
        between: After the phases, before the drain.
        after: After the drain.
        stuck: Rows of `drained` whose delivery the drain could not get answered.
        undrained: Deliveries that the drain gave up on before their turn.
        examples: The first message of each kind of failure.
        effective: The settings that each worker's connection really had.
        kills: Workers that were killed as planned.
        seconds: From the first gate to the last worker's end.
        notes: What a reader must know: workers that died, what could not be read.
        failures: Where the bench itself, not the receiver, did not come to its end.
        interrupted: Whether Ctrl-C ended it.
        threaded: Whether it opened connections for use by several threads.
        offered_since: The monotonic moment from which a phase with a rate counts; 0 if there is none.
        cut: Whether the time limit ended it before all was handed over.
        complete: Whether all planned deliveries were handed over and drained, and all states read.
    """

    receiver: str
    workload: Workload
    settings: sqlite.Settings
    policy: Policy
    phases: list[Phase] = field(default_factory=list)
    history: History = field(default_factory=lambda: History.of([]))
    drained: History = field(default_factory=lambda: History.of([]))
    before: State | None = None
    between: State | None = None
    after: State | None = None
    stuck: list[int] = field(default_factory=list)
    undrained: int = 0
    examples: dict[str, str] = field(default_factory=dict)
    effective: list[sqlite.Settings] = field(default_factory=list)
    kills: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    interrupted: bool = False
    offered_since: int = 0
    cut: bool = False
    threaded: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing is missing that a verdict needs."""
        return self.after is not None and not self.interrupted and not self.cut and not self.undrained


def race(
    receiver: Receiver,
    workload: Workload,
    settings: sqlite.Settings,
    policy: Policy,
    path: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> Race:
    """Run one.

    Args:
        receiver: The code under test; its workers load it by name.
        workload: What is delivered.
        settings: How connections are opened.
        policy: How the publisher behaves.
        path: Where the store goes; in a temporary folder if not given. It is kept.
        progress: Called a few times a second with calls that came back, and deliveries planned.

    Raises:
        BadInput: The store cannot be made, or a worker cannot begin.
    """
    if policy.deadline <= settings.busy_timeout:
        raise BadInput(
            f"the deadline of {policy.deadline:g} s must be longer than the busy timeout of "
            f"{settings.busy_timeout:g} s: a worker that still waits would be taken for one that hangs"
        )
    pace.refuse_slow(workload, policy.time_limit, policy.deadline)
    if policy.threads > 1 and any(phase.restarted for phase in plan(workload)):
        raise BadInput("threads are not started anew one by one: leave sequence out of the workload")
    if path is not None:
        path = (
            path.resolve()
        )  # a relative "file:x" would be a URI to SQLite, and a receiver may change folders
        sqlite.refuse_foreign(path)
        sqlite.remove(path)
    with Folder() as folder:
        store = path or folder / "store.db"
        receiver.setup(store, settings, watched=policy.watched)
        return _Coordinator(receiver, workload, settings, policy, folder, store, progress).run()


class _Coordinator:
    def __init__(
        self,
        receiver: Receiver,
        workload: Workload,
        settings: sqlite.Settings,
        policy: Policy,
        folder: Path,
        store: Path,
        progress: Callable[[int, int], None],
    ) -> None:
        self._receiver = receiver
        self._folder = folder
        self._store = store
        self._race = Race(receiver.name, workload, settings, policy)
        self._progress = progress
        self._gates = 0
        self._deaths: list[list[int]] = []
        self._seen = 0  # rows of the witness
        self._began = 0.0
        self._until = 0
        self._watched_at_first = False
        self._began_in: dict[int, int] = {}  # the phase in which the present life of a worker began

    def run(self) -> Race:
        race = self._race
        race.phases = plan(race.workload)
        if self._receiver.consumers:
            race.phases = to_consumers(race.phases, self._receiver.consumers)
        planned = sum(len(list_) for phase in race.phases for list_ in phase.deliveries)
        warm_up = len(race.phases[0].deliveries[0])
        counts = [sum(len(p.deliveries[w]) for p in race.phases[1:]) for w in range(race.workload.workers)]
        deaths = plan_kills(race.workload.seed, race.policy.kills, counts)
        self._deaths = [[warm_up + n for n in ones] for ones in deaths]
        workers: list[Member] = []
        self._until = time.perf_counter_ns() + int(race.policy.time_limit * 1e9)
        try:
            with Crew(race.policy.deadline, lambda done: self._progress(done, planned)) as crew:
                crew.marked = self._offered_gate()
                beside: list[Member] = []
                if self._receiver.serve is not None:
                    beside = crew.start([self._job(race.workload.workers + 1, [], serving=True)])
                workers = crew.start(
                    [self._job(w, race.phases) for w in range(race.workload.workers)], race.policy.threads
                )
                race.effective = [sqlite.Settings(**m.effective) for m in workers if m.effective]
                try:
                    crew.run(workers, self._at_gate, lambda member: self._successor(crew, member))
                finally:
                    race.offered_since = crew.marked_moment
                race.seconds = time.monotonic() - self._began
                late = time.perf_counter_ns() > self._until
                self._collect(workers)
                race.cut = late and reading.handed_over(race.history) < planned - warm_up * len(counts)
                race.between = self._observe()
                self._drain(crew)
                if self._watched_at_first and race.after is not None and race.after.witness is None:
                    race.notes.append("the receiver took away the witness's triggers: sums alone decide")
                for member in beside:
                    if member.process.poll() is not None:
                        race.notes.append("what runs beside the workers ended before them")
        except KeyboardInterrupt:
            race.interrupted = True
            race.notes.append("interrupted: what had been measured until then is kept")
            self._collect(workers)  # by now all of them are gone
        except sqlite.Unreadable as error:
            race.notes.append(f"no verdict can rest on this: {error}")
            if not len(race.history):
                self._collect(workers)
        return race

    def _offered_gate(self) -> int:
        """The number, from 1, of the gate that opens the phase with a rate; 0 if there is none."""
        number = 1
        for phase in self._race.phases:
            if phase.rate:
                return number
            number += 1 + len(phase.deliveries[0]) * phase.gated
        return 0

    def _at_gate(self) -> None:
        """All workers wait: the first time before the warm-up, the second before the race."""
        self._gates += 1
        if self._gates <= 2:
            self._race.before = before = self._observe()
            self._watched_at_first |= before.witness is not None
            self._seen += len(before.witness.event) if before.witness is not None else 0
            self._began = time.monotonic()

    def _observe(self) -> State:
        return self._receiver.observe(self._store, self._seen)

    def _successor(self, crew: Crew, member: Member) -> Job | None:
        """What is left to do of the plan of a worker that was killed, or came to a restart, as planned."""
        killed = member.doomed and bool(member.end)
        if member.hung or (member.end and not killed):
            return None
        self._race.kills += killed
        worker, job = member.job.worker, member.job
        _, _, answer = recorder.read(self._folder / recorder.recording(worker, job.life))
        begun = job.first_delivery + (int(reading.begun(answer)[-1]) + 1 if len(answer) else 0)
        phases, at = self._race.phases, self._began_in.get(worker, 0)
        lengths = [len(phase.deliveries[worker]) for phase in phases]
        skipped = sum(lengths[:at])  # on the way to the phase in which it goes on
        while at < len(phases) and skipped + lengths[at] <= begun:
            skipped += lengths[at]
            at += 1
            if skipped == begun if killed else at < len(phases) and phases[at].restarted:
                break  # phases in which it has nothing to do may follow, with gates of their own
        if at == len(phases) or time.perf_counter_ns() > self._until:
            return None
        self._began_in[worker] = at
        gates = sum(1 + length * phase.gated for phase, length in zip(phases[:at], lengths, strict=False))
        first = begun - skipped
        return replace(
            self._job(worker, phases[at:], first=first, begun=begun, life=job.life + 1),
            first_call=job.first_call + len(answer),
            gates=max(0, crew.gates - gates - first * phases[at].gated),
            offered_since=crew.marked_moment,
        )

    def _job(
        self,
        worker: int,
        phases: Sequence[Phase],
        *,
        serving: bool = False,
        drain: bool = False,
        first: int = 0,
        begun: int = 0,
        life: int = 0,
    ) -> Job:
        """What a process is to do: the phases until a restart, the first of them from `first` on."""
        race = self._race
        phases = [*phases[:1], *itertools.takewhile(lambda phase: not phase.restarted, phases[1:])]
        end = begun - first + sum(len(phase.deliveries[0 if drain else worker]) for phase in phases)
        deaths = (
            [] if serving or drain or min(self._deaths[worker], default=end) >= end else self._deaths[worker]
        )
        return Job(
            target=self._receiver.version(worker + life),
            import_path=sys.path,
            folder=str(self._folder),
            store=str(self._store),
            settings=asdict(race.settings),
            worker=worker,
            seed=race.workload.seed,
            max_tries=_DRAIN_TRIES if drain else race.policy.max_tries,
            insist=_STUCK_ENOUGH if drain else 0,
            phases=[
                [
                    phase.gated,
                    phase.paused,
                    phase.impatient,
                    [[d.id, d.qty] for d in phase.deliveries[0 if drain else worker][0 if n else first :]],
                    pace.offered(phase, worker, 0 if n else first),
                ]
                for n, phase in enumerate(phases)
            ],
            serving=serving,
            life=life,
            first_delivery=begun,
            until=self._until,
            # A kill by time may come late, after the next one's turn: that one is then due at once.
            dies_in=max(0, deaths.pop(0) - begun) if deaths else -1,
        )

    def _drain(self, crew: Crew) -> None:
        """Redeliver what was not answered, one after the other, until it is."""
        race = self._race
        unanswered = reading.unanswered(race.history)
        if not unanswered:
            race.after = race.between
            return
        self._until = time.perf_counter_ns() + int(race.policy.time_limit * 1e9)
        try:
            job = self._job(race.workload.workers, [Phase("drain", [unanswered])], drain=True)
            [drainer] = crew.start([job])
        except BadInput as error:  # it was possible before: what was measured until now is kept
            race.notes.append(f"the drain could not begin: {error}")
            race.undrained = len(unanswered)
            race.after = race.between
            return
        crew.run([drainer])
        self._note_end(drainer)
        race.examples = {**drainer.examples, **race.examples}
        ran = reading.read(self._folder, [drainer], {drainer.job.worker: unanswered})
        race.drained = reading.joined(race.history, ran)
        handed = int(ran.delivery.max()) + 1 if len(ran) else 0
        race.undrained = len(unanswered) - handed
        race.stuck = [
            row + len(race.history)
            for row in reading.last_rows(ran)
            if ran.outcome[row] > Outcome.CONFLICT and not (drainer.failed and ran.completed[row] == NEVER)
        ]
        race.after = self._observe()

    def _collect(self, workers: list[Member]) -> None:
        race = self._race
        for member in workers:
            self._note_end(member)
            race.examples = {**member.examples, **race.examples}
        deliveries = {
            w: [d for phase in race.phases for d in phase.deliveries[w]] for w in range(race.workload.workers)
        }
        warm_up = len(race.phases[0].deliveries[0])
        race.history = race.drained = reading.read(self._folder, workers, deliveries, warm_up)

    def _note_end(self, member: Member) -> None:
        self._race.threaded |= member.threaded
        if member.forked:
            self._race.failures.append(
                f"worker {member.job.worker} forks while it holds a connection, which SQLite forbids"
            )
        if member.end and (member.hung or not member.doomed):
            who = "the drain's worker" if member.job.insist else f"worker {member.job.worker}"
            self._race.notes.append(f"{who} {member.end}")
            if member.failed:
                self._race.failures.append(f"the bench itself failed in {who}: {member.end}")
