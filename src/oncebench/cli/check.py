"""`oncebench check`: everything that can be tried on one receiver, one verdict, one page."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oncebench.cli.keeping import Kept
from oncebench.messages import DEADLINE

if TYPE_CHECKING:
    from oncebench.receivers.loader import Receiver
    from oncebench.results.checked import CheckRun
    from oncebench.results.schema import RunResult, VariantResult
    from oncebench.workload import Workload

SEED = 7
LIMIT = 30.0
IDS = 120
KILLS = 8
DEADLINE_SECONDS = 15.0
AT_ONCE = ("same", "distinct", "spread", "neighbours", "paused", "impatient", "conflicting")
THREADED = ("same", "distinct", "spread", "conflicting", "paused")
MOST_SCHEDULES = 2000
"""Begun in each part of the exploration at the most: there are sixteen parts, and a minute for everything."""


def check(
    target: Annotated[str, typer.Argument(help="The receiver.")],
    time_limit: Annotated[
        str, typer.Option(help="A race or an exploration that takes longer is cut short, and says so.")
    ] = f"{LIMIT:g}s",
    seed: Annotated[int, typer.Option(help="From which all deliveries and random choices follow.")] = SEED,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    json: Annotated[bool, typer.Option("--json", help="Print the saved form instead of a page.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, only the verdict.")] = False,
) -> None:
    """Try one receiver in every way: one after the other, raced, explored, killed. About a minute at most."""
    from oncebench.cli.telling import exit_code, tell
    from oncebench.cli.values import seconds
    from oncebench.receivers.loader import load
    from oncebench.report import checked as page
    from oncebench.results.checked import conclude
    from oncebench.workload import Workload

    limit = seconds(time_limit, "--time-limit")
    Workload(seed)  # says what is wrong with it before anything is made
    receiver = load(target)
    run = _begun(receiver, seed, limit)
    with Kept(out, [receiver.name]) as kept:
        interrupted = _try_all(run, receiver, limit, quiet)
        conclude(run)
        kept.save(run)
    tell(run, lambda: page.render(run), lambda: [page.verdict(run)], kept.place, json, quiet)
    kept.complain()
    raise typer.Exit(exit_code([(run.verdict, run.expected_verdict)], interrupted))


def _begun(receiver: Receiver, seed: int, limit: float) -> CheckRun:
    import tempfile
    from datetime import UTC, datetime

    from oncebench.cli.values import written
    from oncebench.results.checked import CheckRun
    from oncebench.results.environment import environment
    from oncebench.results.schema import SCHEMA

    words = ["oncebench", "check", receiver.name, "--seed", str(seed)]
    return CheckRun(
        schema=SCHEMA,
        kind="check",
        seed=seed,
        command=shlex.join(words + ([] if limit == LIMIT else ["--time-limit", written(limit)])),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        complete=False,
        target=receiver.name,
        verdict="unknown",
        expected_verdict=receiver.expected,
        because=[],
        untried=[],
        modes=[],
        found=[],
        environment=environment(Path(tempfile.gettempdir())),
    )


def _try_all(run: CheckRun, receiver: Receiver, limit: float, quiet: bool) -> bool:
    """Each mode in turn, added to the run; returns whether Ctrl-C ended it."""
    from oncebench.workload import EXTREME, Workload

    alone = Workload(run.seed, workers=1, ids=IDS, phases=("sequence", "neighbours"))
    extreme = Workload(run.seed, workers=1, phases=EXTREME if receiver.own_setup is None else EXTREME[:1])
    at_once = Workload(run.seed, ids=IDS, phases=AT_ONCE)
    try:
        run.sequential = _race(run, "sequential", receiver, alone, limit, 0, quiet)
        if _hangs(run.sequential):  # every other mode would wait for it again and again
            run.complete = True
            return False
        run.extremes = _race(run, "extremes", receiver, extreme, limit, 0, quiet)
        run.race = _race(run, "race", receiver, at_once, limit, KILLS, quiet)
        if any(race.threaded for race in run.sequential.variants[0].races):
            threaded = Workload(run.seed, ids=IDS, phases=THREADED)
            run.threads = _race(run, "threads", receiver, threaded, limit, 0, quiet, threaded.workers)
        _explore(run, receiver, limit, quiet)
        _crash(run, receiver, quiet)
    except KeyboardInterrupt:
        return True
    run.complete = True
    return False


def _race(
    run: CheckRun,
    name: str,
    receiver: Receiver,
    workload: Workload,
    limit: float,
    kills: int,
    quiet: bool,
    threads: int = 1,
) -> RunResult:
    from oncebench.cli.run import empty_result, race_all
    from oncebench.race import Policy
    from oncebench.results.checked import Mode
    from oncebench.stores.sqlite import Settings
    from oncebench.testing.exploration import JOURNALS

    began = time.monotonic()
    policy = Policy(deadline=DEADLINE_SECONDS, kills=kills, threads=threads, time_limit=limit)
    settings = [Settings(journal) for journal in JOURNALS]
    result = empty_result([receiver], workload, settings, policy, None)
    for _ in race_all(result, [receiver], workload, settings, policy, None, quiet, name):
        if _hangs(result):
            break
    [variant] = result.variants
    because = [f"{race.journal}: {reason}" for race in variant.races for reason in race.because]
    mode = Mode(name, variant.verdict, _raced(receiver, result), time.monotonic() - began, because)
    run.modes.append(mode)
    setattr(run, name, result)
    if any(race.interrupted for race in variant.races):
        raise KeyboardInterrupt
    return result


def _raced(receiver: Receiver, result: RunResult) -> str:
    [variant] = result.variants
    races, workers = variant.races, result.settings.workers
    deliveries = f"{sum(race.tallies.deliveries for race in races):,} deliveries"
    if workers == 1:
        how = "quantities up to 2^63-1" if "extremes" in result.settings.workload else "with a restart"
        return f"{deliveries} one after the other, {how}"
    ids, raced = sum(race.ids for race in races), sum(race.overlapped_ids for race in races)
    killed = sum(race.kills for race in races)
    beside = "coroutines" if receiver.asynchronous else "threads"
    who = f"{workers} {beside if result.settings.threads > 1 else 'processes'}"
    died = f", {killed} killed by SIGKILL or SIGTERM" if killed else ""
    return f"{deliveries} by {who}, {raced:,} of {ids:,} ids raced{died}"


def _hangs(result: RunResult) -> bool:
    """Whether a call did not come back although nobody else was there."""
    return any(DEADLINE in variant.tallies.indeterminates for variant in result.variants)


def _explore(run: CheckRun, receiver: Receiver, limit: float, quiet: bool) -> None:
    from oncebench.report.progress import Progress
    from oncebench.results.checked import Mode
    from oncebench.testing.apart import explore_apart

    began = time.monotonic()
    with Progress(not quiet).of(f"explore {receiver.name}", "parts") as report:
        found = explore_apart(receiver.name, run.seed, MOST_SCHEDULES, limit, report)
    run.explore = found.variant
    took = time.monotonic() - began
    run.modes.append(Mode("explore", found.verdict, found.covered, took, found.because))


def _crash(run: CheckRun, receiver: Receiver, quiet: bool) -> None:
    from signal import SIGKILL, SIGTERM

    from oncebench.cli.crash import crash_all, empty_result
    from oncebench.results.checked import Mode
    from oncebench.stores.sqlite import Settings
    from oncebench.testing.exploration import JOURNALS

    began = time.monotonic()
    settings = [Settings(journal) for journal in JOURNALS]
    signals = [SIGKILL, SIGTERM]
    result = empty_result([receiver], None, settings, DEADLINE_SECONDS, run.seed, signals)
    crash_all(result, [receiver], None, settings, DEADLINE_SECONDS, signals, quiet)
    [variant] = result.variants
    by = " and ".join(sorted({point.signal for point in variant.points}))
    tried = f"{len(variant.points)} points of a call, {by}"
    run.modes.append(Mode("crash", variant.verdict, tried, time.monotonic() - began, _why(variant)))
    run.crash = result
    if variant.interrupted:
        raise KeyboardInterrupt


def _why(variant: VariantResult) -> list[str]:
    """Why the kills leave it unknown."""
    from oncebench.results.crashed import label_of

    points = [f"{label_of(point)}: {reason}" for point in variant.points for reason in point.because]
    return list(dict.fromkeys([*variant.because, *points]))
