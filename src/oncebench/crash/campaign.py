"""All kill points of one receiver in one journal mode: rehearsals, then a death and a redelivery for each."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from oncebench.crash import points
from oncebench.crash.points import Point, Step
from oncebench.crash.worker import CrashJob
from oncebench.messages import NEVER, Delivery, History, Operation, Outcome, State
from oncebench.race import reading
from oncebench.race.crew import Crew, Member
from oncebench.receivers.loader import Receiver, load
from oncebench.stores import sqlite
from oncebench.stores.folder import Folder

SNACK = Delivery("snack-7", 7)
CHANGED = Delivery("snack-7", 8)
"""The conflicting message that comes at the end."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM)

_VICTIM, _HEIR, _VICTIMS_SERVER, _HEIRS_SERVER = range(4)  # numbers of the processes of one case
_TRIES = 5
_AT_ONCE = 8  # cases whose processes run at the same time


@dataclass
class Killed:
    """One death and what came after it.

    Attributes:
        point: Where.
        reached: Whether the process was killed there; it may not have come by again.
        answered: What the killed call answered all the same; None if it did not.
        before: The store before the first delivery.
        killed: After the death, read over a connection of its own, which recovers what a crash left.
        after: After the redelivery and the conflicting message.
        history: The operations until the death.
        drained: The same and those of the redelivery.
        redelivered: What the redelivery was told in the end; None if nothing.
        conflicting: The same of the conflicting message.
        stuck: Rows of `drained` whose deliveries were never answered.
        names: What the lesson calls this point.
        examples: The first message of each kind of failure.
        notes: What a reader must know.
    """

    point: Point
    reached: bool = False
    answered: Operation | None = None
    before: State | None = None
    killed: State | None = None
    after: State | None = None
    history: History = field(default_factory=lambda: History.of([]))
    drained: History = field(default_factory=lambda: History.of([]))
    redelivered: Operation | None = None
    conflicting: Operation | None = None
    stuck: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    examples: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class Crash:
    """All kill points of one receiver in one journal mode.

    Attributes:
        killed: One for each point, in order.
        statements: What the first delivery and a redelivery ran, in order, over all processes.
        notes: What a reader must know.
        interrupted: Whether Ctrl-C ended it.
    """

    receiver: str
    settings: sqlite.Settings
    killed: list[Killed] = field(default_factory=list)
    statements: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False


def crash(
    receiver: Receiver,
    settings: sqlite.Settings,
    *,
    seed: int = 0,
    deadline: float = 30.0,
    signals: Sequence[signal.Signals] = SIGNALS,
    successor: Receiver | None = None,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> Crash:
    """Kill it everywhere.

    Args:
        receiver: The code under test; processes load it by name. Of two versions the old one is killed.
        settings: How connections are opened.
        seed: For the waits before a refused redelivery is tried again; the points need no chance.
        deadline: Seconds that one call may take.
        signals: By what to kill.
        successor: Who takes the redelivery, on the same store; the same receiver if not given.
        progress: Called with points that are done, and points that there are.

    Raises:
        BadInput: A store cannot be made, or a process cannot begin.
    """
    if receiver.mixed:
        receiver, successor = map(load, receiver.mixed)
    with Folder() as folder, Crew(deadline, lambda done: None, "oncebench.crash.worker") as crew:
        return _Campaign(receiver, successor or receiver, settings, seed, folder, crew).run(signals, progress)


class _Campaign:
    def __init__(
        self,
        receiver: Receiver,
        successor: Receiver,
        settings: sqlite.Settings,
        seed: int,
        folder: Path,
        crew: Crew,
    ) -> None:
        self._receiver = receiver
        self._successor = successor
        self._settings = settings
        self._seed = seed
        self._snack = replace(SNACK, id=receiver.addressed(SNACK.id))
        self._changed = replace(CHANGED, id=receiver.addressed(CHANGED.id))
        self._folder = folder
        self._crew = crew
        self._crash = Crash(receiver.name, settings)
        self._cases = 0

    def run(self, signals: Sequence[signal.Signals], progress: Callable[[int, int], None]) -> Crash:
        try:
            found, names = self._rehearse(signals)
            for start in range(0, len(found), _AT_ONCE):
                progress(start, len(found))
                self._crash.killed += self._kill_all(found[start : start + _AT_ONCE])
            progress(len(found), len(found))
            self._name(names)
        except KeyboardInterrupt:
            self._crash.interrupted = True
            self._crash.notes.append("interrupted: what had been tried until then is kept")
        return self._crash

    def _rehearse(self, signals: Sequence[signal.Signals]) -> tuple[list[Point], dict[int, list[str]]]:
        """Let it run to its end, without and with a witness; nobody is killed."""
        cases = [self._store(watched=False), self._store(watched=True)]
        ran = self._deliver(cases, lambda folder: self._jobs(folder, [self._snack, self._snack], tells=True))
        heard = [[_steps(member) for member in members] for members in ran]
        histories = [
            reading.read(folder, members[:1], {_VICTIM: [self._snack, self._snack]})
            for folder, members in zip(cases, ran, strict=True)
        ]
        kinds: tuple[points.Delivery, ...] = ("first", "again")
        found: list[dict[points.Delivery, list[points.Statement]]] = []
        for process in range(len(ran[0])):
            of: dict[points.Delivery, list[points.Statement]] = {}
            for row, kind in enumerate(kinds):
                bare, watched = (
                    _during(history, row, steps[process])
                    for history, steps in zip(histories, heard, strict=True)
                )
                of[kind], fits = points.statements(bare, watched)
                if not fits:
                    self._crash.notes.append(
                        "it ran other statements on a store without a witness: triggers count as statements"
                    )
            found.append(of)
        worker, server = found[0], found[1] if len(found) > 1 else None
        working = server or worker
        for kind in kinds:
            self._crash.statements[kind] = [each.text for of in found for each in of[kind]]
            if any(len(of[kind]) > points.MOST_STATEMENTS for of in found):
                self._crash.notes.append(
                    f"a call runs {len(self._crash.statements[kind])} statements: "
                    f"only the first and last {points.MOST_STATEMENTS // 2} were killed after"
                )
        for member in ran[1]:
            if member.hung:
                self._crash.notes.append(f"in the rehearsal {member.end}")
        return points.points(worker, server, signals), points.effects(working["first"])

    def _kill_all(self, chosen: Sequence[Point]) -> list[Killed]:
        """A death at each of the points, all at once, each in a store of its own."""
        cases = {}
        for point in chosen:
            folder = self._store(watched=True)
            cases[folder] = case = Killed(point)
            case.before = self._observe(folder, case)
        plan = {
            folder: [self._snack] * (1 if case.point.delivery == "first" else 2)
            for folder, case in cases.items()
        }
        ran = self._deliver(list(cases), lambda f: self._jobs(f, plan[f], cases[f].point))
        for (folder, case), members in zip(cases.items(), ran, strict=True):
            case.reached = any(_died_at(case.point, member) for member in members)
            self._note(case, members)
            case.history = case.drained = reading.read(folder, members[:1], {_VICTIM: plan[folder]})
            last = len(plan[folder]) - 1
            if last < len(case.history) and case.history[last].completed != NEVER:
                case.answered = case.history[last]
            case.killed = self._observe(folder, case)
        open_ = [folder for folder, case in cases.items() if case.killed is not None]
        ran = self._deliver(open_, lambda f: self._jobs(f, [self._snack, self._changed], heir=True))
        for folder, members in zip(open_, ran, strict=True):
            case = cases[folder]
            self._note(case, members)
            redelivery = reading.read(folder, members[:1], {_HEIR: [self._snack, self._changed]})
            case.drained = reading.joined(case.history, redelivery)
            ends = {redelivery[row].delivery: row for row in reading.last_rows(redelivery)}
            case.redelivered = _answer(redelivery, ends.get(0))
            case.conflicting = _answer(redelivery, ends.get(1))
            case.stuck = [
                len(case.history) + row for row in ends.values() if redelivery.outcome[row] > Outcome.CONFLICT
            ]
            case.after = self._observe(folder, case)
            shutil.rmtree(folder, ignore_errors=True)
        return list(cases.values())

    def _name(self, by_effect: dict[int, list[str]]) -> None:
        """Say which points the lesson names: by what the statement did, and what outlived a kill."""
        first = [case for case in self._crash.killed if case.point.delivery == "first"]
        inside = [
            case for case in first
            if case.point.signal == signal.SIGKILL and case.point.place != "after ACK" and case.killed
        ]  # fmt: skip
        if not inside or inside[0].before is None:
            return
        commits = points.commits([_figures(case.killed) for case in inside], _figures(inside[0].before))
        worker = {case.point.process for case in inside if case.point.place == "after statement"}
        working = "server" if "server" in worker else "worker"
        names: dict[tuple[str, str, int], list[str]] = {}
        for position, case in enumerate(inside):
            point = case.point
            mine = list(by_effect.get(point.number, [])) if point.process == working else []
            mine += [name for at, name in commits.items() if at == position]
            names[point.place, point.process, point.number] = mine
        for case in first:
            case.names = list(names.get((case.point.place, case.point.process, case.point.number), []))

    def _store(self, *, watched: bool) -> Path:
        """A folder with a new store."""
        folder = self._folder / f"case-{self._cases}"
        self._cases += 1
        folder.mkdir()
        self._receiver.setup(folder / "store.db", self._settings, watched=watched)
        return folder

    def _observe(self, folder: Path, case: Killed) -> State | None:
        try:
            return self._receiver.observe(folder / "store.db")
        except sqlite.Unreadable as error:
            case.notes.append(f"no verdict can rest on this: {error}")
            return None

    def _deliver(self, folders: Sequence[Path], jobs: Callable[[Path], list[CrashJob]]) -> list[list[Member]]:
        """Run the processes of several cases until all who deliver have ended; the deliverer comes first."""
        asked = [jobs(folder) for folder in folders]
        started = iter(self._crew.start([job for group in asked for job in group]))
        members = [[next(started) for _ in group] for group in asked]
        self._crew.run([group[0] for group in members])
        self._crew.end([member for group in members for member in group])
        return members

    def _jobs(
        self,
        folder: Path,
        deliveries: list[Delivery],
        point: Point | None = None,
        *,
        tells: bool = False,
        heir: bool = False,
    ) -> list[CrashJob]:
        """One that delivers, and one that serves if the receiver needs it; one of them dies at the point."""
        worker = self._job(folder, _HEIR if heir else _VICTIM, deliveries, tells=tells)
        served = (self._successor if heir else self._receiver).serve is not None
        server = self._job(folder, _HEIRS_SERVER if heir else _VICTIMS_SERVER, [], serving=True, tells=tells)
        if heir:
            worker = replace(worker, max_tries=_TRIES, insist=1)
        if point is not None:
            worker, server = (
                replace(job, place=point.place, start=point.start, end=point.end, signal=int(point.signal))
                if process == point.process
                else job
                for process, job in (("worker", worker), ("server", server))
            )
            worker = replace(worker, dies_in=len(deliveries) - 1)
        return [worker, server] if served else [worker]

    def _job(
        self,
        folder: Path,
        number: int,
        deliveries: list[Delivery],
        *,
        serving: bool = False,
        tells: bool = False,
    ) -> CrashJob:
        return CrashJob(
            target=(self._successor if number in (_HEIR, _HEIRS_SERVER) else self._receiver).name,
            import_path=sys.path,
            folder=str(folder),
            store=str(folder / "store.db"),
            settings=asdict(self._settings),
            worker=number,
            seed=self._seed,
            phases=[[False, False, False, [[each.id, each.qty] for each in deliveries], []]],
            serving=serving,
            tells=tells,
        )

    @staticmethod
    def _note(case: Killed, members: Sequence[Member]) -> None:
        for member in members:
            case.examples = {**member.examples, **case.examples}
            if member.hung:
                case.notes.append(member.end)


def _steps(member: Member) -> list[Step]:
    """What a process said of SQLite's steps."""
    return [
        Step(said["index"], said["at"], said["text"], said["figures"] and tuple(said["figures"]))
        for said in member.said
        if said.get("said") == "step"
    ]


def _died_at(point: Point, member: Member) -> bool:
    """Whether it was killed, and after the statement that was meant."""
    came_by = [points.shape(said["text"]) for said in member.said if said.get("said") == "came by"]
    return member.doomed and came_by == [points.shape(point.statement)] * (point.place == "after statement")


def _during(history: History, row: int, steps: Sequence[Step]) -> list[Step]:
    """Those of a call; none if it never began."""
    if row >= len(history):
        return []
    call = history[row]
    return [step for step in steps if call.invoked <= step.at <= call.completed]


def _answer(history: History, row: int | None) -> Operation | None:
    return None if row is None else history[row]


def _figures(state: State | None) -> tuple[int, int]:
    assert state is not None
    return len(state.inbox), state.total
