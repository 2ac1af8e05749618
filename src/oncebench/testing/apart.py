"""An exploration in a process of its own: a receiver that prints, exits or hangs there harms nobody else.

Exploring calls the receiver in the process that explores. Where other modes wait for their turn, that
process is a child, which says after each part what it has found so far.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from msgspec import convert, to_builtins

from oncebench.audit import Verdict
from oncebench.race.crew import Crew
from oncebench.race.life import die_with, mute
from oncebench.race.line import Job, Line
from oncebench.results.explored import ExploreVariant
from oncebench.stores.folder import Folder
from oncebench.stores.sqlite import Settings


@dataclass(frozen=True, slots=True)
class Explored:
    """What came of it.

    Attributes:
        verdict: Of what was explored; unknown at the best if that is not all.
        covered: How many schedules, in words.
        because: Why it is unknown; empty if it is not.
        variant: In its saved form; None if nothing was explored.
    """

    verdict: Verdict
    covered: str
    because: list[str]
    variant: ExploreVariant | None


@dataclass(frozen=True, slots=True)
class ExploreJob(Job):
    """What the child is to do.

    Attributes:
        most: Schedules begun in each part at the most.
        limit: Seconds after which no further part is begun.
    """

    most: int = 0
    limit: float = 0.0


def explore_apart(
    target: str, seed: int, most: int, limit: float, progress: Callable[[int, int], None]
) -> Explored:
    """Explore a receiver with all scenarios, lock modes and journal modes.

    Args:
        target: The receiver.
        seed: For strategies that choose.
        most: Schedules begun in each part at the most.
        limit: Seconds after which no further part is begun, and for which one part may last.
        progress: Called with parts that are done, and parts that there are.
    """
    with Folder() as folder, Crew(limit, lambda done: None, "oncebench.testing.apart") as crew:
        job = ExploreJob(
            target, sys.path, str(folder), "", asdict(Settings()), 0, seed, most=most, limit=limit
        )
        [member] = crew.start([job])
        shown = 0

        def tick(done: int) -> None:
            nonlocal shown
            if len(member.said) > shown:
                shown = len(member.said)
                progress(shown, member.said[-1]["planned"])

        crew.heard = tick
        crew.run([member])
        said = member.said[-1] if member.said else {}
    because = list(said.get("because", []))
    if member.end:  # it did not say that it was done
        parts = f"after {shown} parts" if shown else "before its first part was done"
        because = [f"the process that explored it ended {parts}: {member.end}", *because]
    variant = convert(said["variant"], ExploreVariant) if said else None
    verdict = Verdict.UNKNOWN if variant is None else Verdict(variant.verdict)
    if verdict is Verdict.SOUND and because:
        verdict = Verdict.UNKNOWN
    covered = "no schedules" if variant is None else variant.covered
    return Explored(verdict, covered, because if verdict is Verdict.UNKNOWN else [], variant)


class _Late(Exception):
    """The time is over."""


def main() -> None:
    """Be the child."""
    line, life = Line(int(sys.argv[1])), int(sys.argv[2])
    job = line.job(ExploreJob)
    threading.Thread(target=die_with, args=(life, job.folder), daemon=True).start()
    sys.path[:] = job.import_path
    line.say(said="ready", effective=None)
    mute()
    _explore(job, line)
    line.say(said="done")
    os._exit(0)  # whatever threads or exit handlers the receiver left behind


def _explore(job: ExploreJob, line: Line) -> None:
    from oncebench.explore.plan import Plan
    from oncebench.testing import exploring
    from oncebench.testing.exploration import JOURNALS, LOCKS, Exploration, Part
    from oncebench.testing.telling import in_saved_form

    receiver = exploring.taken(job.target)
    found = Exploration(receiver.name, exploring.declared(receiver), job.seed)
    plans = [
        p for name in exploring.DEFAULT_SCENARIOS for p in Plan.of(name).to_consumers(receiver.consumers)
    ]
    planned = len(plans) * len(LOCKS) * (len(JOURNALS) if receiver.own_setup is None else 1)
    began = time.monotonic()

    def say(*cut: str) -> None:
        """What was found so far; `cut` says why there will be no more."""
        line.say(
            said="explored",
            because=[*(f"{why}; {len(found.parts)} of {planned} parts" for why in cut), *found.because],
            variant=to_builtins(in_saved_form(found)),
            planned=planned,
        )

    def keep(part: Part) -> None:
        found.parts.append(part)
        say()
        if time.monotonic() - began > job.limit and len(found.parts) < planned:
            raise _Late

    try:
        exploring.explore(receiver, most=job.most, seed=job.seed, each=keep)
    except _Late:
        say(f"it was stopped after {job.limit:g} s")
    except BaseException as error:  # it was not made for such a receiver, or the receiver ends processes
        say(f"{type(error).__name__}: {error}".removeprefix("BadInput: "))
