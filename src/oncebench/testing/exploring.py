"""Explore a receiver and judge it: every schedule, or some, through the one audit."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oncebench.audit import Findings, Kind, Violation, audit, overlapped
from oncebench.explore.clocks import READ, SLEPT
from oncebench.explore.crew import Crew
from oncebench.explore.plan import Plan
from oncebench.explore.play import Play
from oncebench.explore.run import Diverged, NeedsOthers, Run, Unexplorable
from oncebench.explore.search import Search
from oncebench.explore.site import Site
from oncebench.explore.strategies import Sample, Strategy, play_chosen, play_told, with_preemptions
from oncebench.explore.views import Views
from oncebench.messages import BadInput, History, Outcome
from oncebench.receivers import loader
from oncebench.receivers.loader import Receiver
from oncebench.stores.sqlite import Journal, Unreadable, unreadable
from oncebench.testing.exploration import (
    JOURNALS,
    LOCKS,
    USUAL,
    Crewed,
    Exploration,
    Failure,
    Locks,
    Part,
    Setting,
    on_schedule,
)
from oncebench.testing.stage import here, stage

DEFAULT_SCENARIOS = ("same", "conflict", "distinct", "death")
MOST_SCHEDULES = 20_000
"""Schedules begun in each part at the most, if the caller does not say."""


def judge(run: Run) -> Findings:
    """What the audit finds: after the last move, and after the redeliveries."""
    findings = audit(run.history, run.before.state(), run.between.state(), run.endless)
    if len(run.drained) == len(run.operations):
        return findings
    drained = History.of(run.drained)
    later = audit(
        drained, run.before.state(), run.after.state(), (*run.endless, *run.stuck), len(run.operations)
    )
    return findings.join(later)


def explore(
    receiver: Any,
    *,
    workers: int = 2,
    plans: Sequence[Plan | str] = DEFAULT_SCENARIOS,
    journals: Sequence[Journal] = JOURNALS,
    locks: Sequence[Locks] = LOCKS,
    strategy: Strategy | None = None,
    preemptions: int | None = None,
    most: int | None = MOST_SCHEDULES,
    reduce: bool = True,
    on: Crewed = "greenlets",
    patience: float = 5.0,
    seed: int = 7,
    each: Callable[[Part], None] | None = None,
) -> Exploration:
    """Play schedules of a receiver and judge each.

    Args:
        receiver: A target as on the command line, a function, or an object with `receive` and perhaps
            `setup`, `connect`, `observe`.
        workers: In each scenario that is named.
        plans: What to deliver: names of scenarios, or plans.
        journals: Journal modes of the bench's own store; a receiver with its own `setup` decides itself.
        locks: `error`, `wait`, or both.
        strategy: None for all schedules, those with the fewest preemptions first.
        preemptions: At the most; None for any number.
        most: Schedules begun in each part at the most; None for no end.
        reduce: Whether each state is followed once only.
        on: What moves the workers.
        patience: Seconds after which a worker that does not come back to a step is given up.
        seed: For strategies that choose.
        each: Called with each part when it is done.

    Raises:
        BadInput: The receiver cannot be explored, or an argument makes no sense.
    """
    code = taken(receiver)
    result = Exploration(code.name, declared(code), seed)
    journals = journals if code.own_setup is None else journals[:1]
    whole = [Plan.of(plan, workers) if isinstance(plan, str) else plan for plan in plans]
    whole = [each for plan in whole for each in plan.to_consumers(code.consumers)]
    how = _How(strategy, preemptions, most, reduce, seed)
    on, clocked = here(code, on), False
    for journal, lock, plan in itertools.product(journals, locks, whole):
        part = Part(plan, Setting(journal, lock, on, patience), given_up=True)
        if code.mixed:
            part.because.append("two versions share the store, and explore steps one")
        elif code.serve is not None:
            part.because.append("its statements run in another process, which explore does not step")
        else:
            part = _explored(code, replace(plan, clocked=clocked), part.setting, how)
            if part.reads_the_clock and not clocked and part.setting.on != "processes":
                clocked = True
                part = _explored(code, replace(plan, clocked=True), part.setting, how)
        result.parts.append(part)
        if each is not None:
            each(part)
        if part.given_up:
            break
        on = part.setting.on  # threads or processes from now on, if they were needed
    if clocked and not part.given_up and on != "processes":
        plan = replace(whole[0], deaths=0, clocked=True, jumps=1, name=f"{whole[0].name} stalled".strip())
        for journal, lock in itertools.product(journals, locks):
            result.parts.append(_explored(code, plan, Setting(journal, lock, on, patience), how))
            if each is not None:
                each(result.parts[-1])
    return result


def play(
    receiver: Any,
    plan: Plan,
    pick: Callable[[Play], Run],
    setting: Setting = USUAL,
    recording: bool = False,
) -> tuple[Run, Findings]:
    """Play one schedule on a store of its own, and judge it.

    Args:
        receiver: As for `explore`.
        plan: What to deliver.
        pick: Plays it, such as `lambda play: play_told(play, moves)`.
        setting: With what.
        recording: Whether to keep the steps for a timeline.

    Raises:
        BadInput: The receiver cannot be explored, or the schedule is not one of it.
    """
    code = taken(receiver)
    if code.serve is not None:
        raise BadInput(f"{code.name} cannot be replayed: its statements run in another process")
    if code.mixed:
        raise BadInput(f"{code.name} cannot be replayed: give one of the two versions")
    try:
        with stage(code, plan, setting) as (site, crew):
            run = pick(Play(crew, site, plan, Views(), recording))
    except (Unexplorable, Unreadable) as stop:
        raise BadInput(f"{code.name} cannot be replayed: {stop}") from stop
    except sqlite3.Error as stop:
        raise BadInput(f"{code.name} cannot be replayed: {unreadable(stop)}") from stop
    except NeedsOthers as stop:
        return play(code, plan, pick, replace(setting, on=stop.on), recording)
    return run, judge(run)


def taken(receiver: Any) -> Receiver:
    """A receiver, however it is given."""
    if isinstance(receiver, Receiver):
        return receiver
    if isinstance(receiver, str):
        return loader.load(receiver)
    name = getattr(receiver, "__qualname__", type(receiver).__qualname__)
    return loader.receiver(receiver, f"{getattr(receiver, '__module__', '')}:{name}")


def declared(code: Receiver) -> str:
    """The verdict that exploring must come to."""
    return code.expected_in("explore")


@dataclass(frozen=True, slots=True)
class _How:
    strategy: Strategy | None
    preemptions: int | None
    most: int | None
    reduce: bool
    seed: int
    judged: dict[Hashable, tuple[Findings, bool]] = field(default_factory=dict)
    """For all that a judge saw: what he found, and whether deliveries of one message overlapped."""


def _explored(code: Receiver, plan: Plan, setting: Setting, how: _How) -> Part:
    """One part; on threads or processes if greenlets will not do.

    What a receiver keeps for each thread, or locks for each, is shared among greenlets of one thread: a
    fault is believed if threads show it too.
    """
    try:
        part = _searched(code, plan, setting, how)
        if setting.on != "greenlets" or not part.failures:
            return part
        setting = replace(setting, on="threads")
        with stage(code, plan, setting) as (site, crew):
            if _write_down(part, crew, site):
                return part
    except NeedsOthers as stop:
        setting = replace(setting, on=stop.on)
        if stop.on == "processes":
            try:
                return _searched(code, replace(plan, clocked=False, jumps=0), setting, how)
            except BadInput as refused:
                why = f"it locks a file at {stop.where}, which keeps out other processes only, but {refused}"
                return Part(plan, setting, because=[why], given_up=True)
    return _explored(code, plan, setting, how)


def _searched(code: Receiver, plan: Plan, setting: Setting, how: _How) -> Part:
    part = Part(plan, setting)
    try:
        with stage(code, plan, setting) as (site, crew):
            views = Views()
            first = _twice(crew, site, part, views)
            part.reads_the_clock = any(READ in text for step in first.steps for text in step.seen)
            if part.reads_the_clock and not plan.clocked and setting.on != "processes":
                return part  # its clock is to stand still
            if crew.shares and plan.deaths:
                part.unexplored.append("a worker's death: workers share a connection, and would die together")
                plan = part.plan = replace(plan, deaths=0)
            work: Search | Sample
            if how.strategy is not None:
                work = Sample(crew, site, plan, views, how.strategy, how.seed)
            else:
                work = Search(crew, site, plan, views, how.preemptions, how.reduce, how.most)
            for _ in work.runs():
                if views.hidden and how.reduce and isinstance(work, Search):
                    # What a worker does depends on more than it has seen: no state may be taken for another.
                    part.notes.append(
                        f"nothing is skipped, since the receiver remembers outside: {views.hidden}"
                    )
                    work = Search(crew, site, plan, views, how.preemptions, False, how.most)
                    for _ in work.runs():
                        pass
                    break
            _judge_all(part, work, how)
            if setting.on != "greenlets" and not _write_down(part, crew, site):
                part.notes.append("a smallest schedule did not show its fault when it was played again")
            if isinstance(work, Sample):
                part.notes.append(work.strategy.promise(plan, work.steps))
            elif not work.complete:
                part.because.append(
                    f"only {work.played + work.cut:,} schedules were begun, and there are more"
                )
            elif work.bounded:
                part.bound = how.preemptions
            if not any(step.statement for step in first.steps):
                part.because.append("no statement of it was seen: its connection is not one of sqlite3's")
            part.unexplored += _unexplored(part, first, work)
    except Unexplorable as stop:
        part.given_up = True
        part.because.append(f"{stop} (schedule {stop.schedule})" if stop.schedule else str(stop))
    except Diverged as stop:
        part.because.append(f"it does not do the same on the same schedule: {stop}")
    except Unreadable as stop:
        part.because.append(str(stop))
    except sqlite3.Error as stop:
        part.because.append(str(unreadable(stop)))
    return part


def _unexplored(part: Part, first: Run, work: Search | Sample) -> Iterator[str]:
    """What a receiver does outside SQLite, and how far that was explored."""
    lines = dict.fromkeys(where for found in work.found.values() for where in found.run.asleep)
    if part.setting.on == "processes":
        lines = {}
        if part.reads_the_clock:
            yield "time: it reads the clock, which nobody puts forward for processes"
    for where in lines:
        yield (
            f"several processes: it waits outside SQLite at {where}, and threads of one process were "
            "explored, where one waits there until another has moved"
        )
    for slept in dict.fromkeys(text for step in first.steps for text in step.seen if SLEPT in text):
        yield f"it sleeps ({slept.strip(chr(39))}), which nobody waited for"


def _write_down(part: Part, crew: Crew, site: Site) -> bool:
    """Play the smallest schedule of each kind again, for a timeline; whether each shows its kind again."""
    for failure in part.failures:
        try:
            told = failure.run.schedule
            again = play_told(Play(crew, site, part.plan, Views(), recording=True), told)
        except (BadInput, Unexplorable, Diverged, Unreadable, sqlite3.Error):
            return False
        if failure.kind not in judge(again).counts:
            return False
        failure.run.steps = again.steps
    return True


def _twice(crew: Crew, site: Site, part: Part, views: Views) -> Run:
    """Play one schedule two times: where they differ, the receiver is not deterministic."""
    once, again = (
        play_chosen(Play(crew, site, part.plan, views, recording=True), with_preemptions({2: 1}))
        for _ in range(2)
    )
    if [step.statement for step in once.steps] != [step.statement for step in again.steps]:
        difference = next(
            (
                n
                for n, (a, b) in enumerate(zip(once.steps, again.steps, strict=False))
                if a.statement != b.statement
            ),
            min(len(once.steps), len(again.steps)),
        )
        raise Diverged(f"played twice, {''.join(once.schedule)} differs at step {difference + 1}")
    if [op.outcome for op in once.drained] != [op.outcome for op in again.drained]:
        raise Diverged(f"played twice, {''.join(once.schedule)} was answered differently")
    return once


def _judge_all(part: Part, work: Search | Sample, how: _How) -> None:
    part.run, part.total, part.complete = work.played + work.cut, work.total, work.complete
    smallest: dict[Kind, tuple[Run, Violation]] = {}
    counts: Counter[Kind] = Counter()
    for found in work.found.values():
        run, weight = found.run, found.schedules or 1
        for operation in run.operations:
            part.outcomes[operation.outcome] += weight
            if operation.outcome is Outcome.LOCKED:
                part.locked[operation.detail] += weight
        known = dict(run.before.inbox)
        part.expected += weight * sum(qty for id, qty in dict(run.after.inbox).items() if id not in known)
        part.observed += weight * (run.after.total - run.before.total)
        part.deadlocks += weight if run.deadlocks else 0
        seen = run.operations, run.outcome
        if seen not in how.judged:  # other parts may come to the same
            meets = bool(run.operations) and bool(overlapped(run.history).any())
            how.judged[seen] = judge(run), meets
        findings, meets = how.judged[seen]
        part.overlapped += weight if meets else 0
        part.broken += weight if findings.violations else 0
        for violation in {v.kind: v for v in reversed(findings.violations)}.values():
            counts[violation.kind] += weight
            best = smallest.get(violation.kind)
            if best is None or run.size < best[0].size:
                smallest[violation.kind] = run, on_schedule(violation, run)
    part.failures = [
        Failure(violation, run, part.setting, counts[kind]) for kind, (run, violation) in smallest.items()
    ]
