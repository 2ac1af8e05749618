"""`oncebench run`: many processes at once, as fast as they can."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oncebench.cli.keeping import Kept
from oncebench.messages import BadInput

if TYPE_CHECKING:
    from oncebench.race import Policy, Race
    from oncebench.receivers.loader import Receiver
    from oncebench.receivers.registry import Mode
    from oncebench.results import RaceResult, RunResult
    from oncebench.stores.sqlite import Settings
    from oncebench.workload import Workload

SEED = 7
WORKERS = 4
IDS = 120
REDELIVERIES = 3
CONFLICTS = 0.1
MAX_QTY = 99
MOST_REPEATS = 1000
JOURNALS = ("wal", "delete")
SYNCHRONOUS = ("full", "normal", "off")
WORKLOADS = ("same", "distinct", "spread", "neighbours", "paused", "impatient")
FURTHER_WORKLOADS = ("sequence", "conflicting", "extremes", "overflow")


def run(
    variants: Annotated[
        list[str] | None, typer.Argument(help="Receivers to race; naive and immediate if none is given.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that deliver at once.")] = WORKERS,
    ids: Annotated[int, typer.Option(help="Ids in each part of the workload.")] = IDS,
    redeliveries: Annotated[
        int, typer.Option(help="Further deliveries of an id in spread and impatient.")
    ] = 3,
    conflicts: Annotated[float, typer.Option(help="Share of ids that come with two quantities.")] = CONFLICTS,
    max_qty: Annotated[int, typer.Option(help="Quantities are 1 to this.")] = MAX_QTY,
    workload: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(WORKLOADS)} (mix for these), {', '.join(FURTHER_WORKLOADS)}."),
    ] = None,
    journal: Annotated[list[str] | None, typer.Option(help="wal, delete; both if not given.")] = None,
    synchronous: Annotated[str, typer.Option(help="full, normal or off.")] = "full",
    busy_timeout: Annotated[str, typer.Option(help="How long SQLite waits for a lock, e.g. 100ms.")] = "5s",
    max_tries: Annotated[int, typer.Option(help="Calls for a delivery; only lock errors are retried.")] = 1,
    deadline: Annotated[str, typer.Option(help="A call that takes longer gets its worker killed.")] = "30s",
    threads: Annotated[int, typer.Option(help="Workers that share a process, as threads of it.")] = 1,
    time_limit: Annotated[
        str,
        typer.Option(help="Hand nothing more over after so long in a race; what is left counts as untried."),
    ] = "60s",
    kills: Annotated[
        int, typer.Option(help="Workers killed in mid-race and started again, half of them by SIGTERM.")
    ] = 0,
    rate: Annotated[
        float,
        typer.Option(help="Offer so many deliveries a second in spread, whatever becomes of those before."),
    ] = 0.0,
    repeat: Annotated[int, typer.Option(help="Races of each, in turns: A B A B, not A A B B.")] = 1,
    witness: Annotated[
        bool, typer.Option("--witness/--no-witness", help="Triggers that record each effect, or full speed.")
    ] = True,
    history: Annotated[
        bool, typer.Option("--history", help="Save all calls too, as history-RECEIVER-JOURNAL-REPEAT.npz.")
    ] = False,
    db: Annotated[
        Path | None, typer.Option(help="Keep the store at this path; each race makes it anew.")
    ] = None,
    seed: Annotated[int, typer.Option(help="From which all deliveries follow.")] = SEED,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    json: Annotated[bool, typer.Option("--json", help="Print the saved form instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, only the verdicts.")] = False,
) -> None:
    """Race receivers against themselves: real processes, one SQLite file, the same and different ids."""
    from oncebench.cli.telling import exit_code
    from oncebench.cli.values import one_of, seconds
    from oncebench.race import Policy
    from oncebench.receivers.loader import load
    from oncebench.stores.sqlite import Settings
    from oncebench.workload import Workload

    phases = one_of(workload or ["mix"], (*WORKLOADS, *FURTHER_WORKLOADS, "mix"), "--workload")
    journals = one_of(journal or list(JOURNALS), JOURNALS, "--journal")
    one_of([synchronous], SYNCHRONOUS, "--synchronous")
    chosen = WORKLOADS if "mix" in phases else tuple(phases)
    work = Workload(seed, workers, ids, redeliveries, conflicts, max_qty, chosen, rate)
    limit = seconds(time_limit, "--time-limit")
    policy = Policy(max_tries, seconds(deadline, "--deadline"), witness, kills, threads, limit)
    settings = [Settings(mode, synchronous, seconds(busy_timeout, "--busy-timeout")) for mode in journals]  # type: ignore[arg-type]
    if not 1 <= repeat <= MOST_REPEATS:
        raise BadInput(f"repeat must be 1 to {MOST_REPEATS}, not {repeat}")
    receivers = [load(target) for target in dict.fromkeys(variants or ["naive", "immediate"])]
    with Kept(out, [receiver.name for receiver in receivers]) as kept:
        result = empty_result(receivers, work, settings, policy, db, repeat)
        keep = kept.folder if history else None
        for _ in race_all(result, receivers, work, settings, policy, db, quiet, "", repeat, keep):
            kept.save(result)
    _print(result, kept.place, json, quiet)
    kept.complain()
    verdicts = [(variant.verdict, variant.expected_verdict) for variant in result.variants]
    interrupted = any(race.interrupted for variant in result.variants for race in variant.races)
    raise typer.Exit(exit_code(verdicts, interrupted))


def race_all(
    result: RunResult,
    receivers: Sequence[Receiver],
    workload: Workload,
    settings: Sequence[Settings],
    policy: Policy,
    db: Path | None,
    quiet: bool,
    label: str = "",
    repeats: int = 1,
    keep: Path | None = None,
) -> Iterator[None]:
    """Each receiver in each journal mode, added to the result; stops after each, so that it can be saved.

    Repeats take turns, so that a machine that gets slower meanwhile is slower for all of them. `keep` is
    a folder for whole histories.
    """
    from oncebench.race import race
    from oncebench.report.progress import Progress
    from oncebench.results import repeated, summary

    progress = Progress(not quiet)
    tried: Mode = "sequential" if workload.workers == 1 else "threads" if policy.threads > 1 else "race"
    races: list[list[list[RaceResult]]] = [[[] for _ in settings] for _ in receivers]
    for number in range(repeats):
        for receiver, of_receiver in zip(receivers, races, strict=True):
            for mode, so_far in zip(settings, of_receiver, strict=True):
                turn = f"{number + 1} of {repeats}: " if repeats > 1 else ""
                with progress.of(f"{label} {turn}{receiver.name}, {mode.journal}".lstrip()) as report:
                    ended = race(receiver, workload, mode, policy, db, report)
                so_far.append(summary.of_race(ended))
                if keep is not None:
                    _keep(keep, f"{receivers.index(receiver) + 1}-{mode.journal}-{number + 1}", ended)
                result.variants = [
                    summary.of_variant(
                        one.name,
                        one.expected_in(tried),
                        [repeated.together(same) for same in its_races if same],
                    )
                    for one, its_races in zip(receivers, races, strict=True)
                    if its_races[0]
                ]
                last = number == repeats - 1 and receiver is receivers[-1] and mode is settings[-1]
                result.complete = last and not ended.interrupted
                yield
                if ended.interrupted:
                    return


def _keep(folder: Path, name: str, race: Race) -> None:
    """Save a race's history, if the store could be read before and after it."""
    from oncebench.results.histories import save_history

    if race.before is not None and race.after is not None:
        save_history(folder / f"history-{name}.npz", race.drained, race.before, race.after)


def empty_result(
    receivers: Sequence[Receiver],
    workload: Workload,
    settings: Sequence[Settings],
    policy: Policy,
    db: Path | None,
    repeats: int = 1,
) -> RunResult:
    """What is known before the first race."""
    import tempfile
    from datetime import UTC, datetime

    from oncebench.results import schema
    from oncebench.results.environment import environment

    names = [receiver.name for receiver in receivers]
    journals = [mode.journal for mode in settings]
    return schema.RunResult(
        schema=schema.SCHEMA,
        kind="race",
        seed=workload.seed,
        command=_again(names, workload, settings, policy, repeats),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        complete=False,
        settings=schema.Settings(
            workers=workload.workers,
            ids=workload.ids,
            redeliveries=workload.redeliveries,
            conflicts=workload.conflicts,
            max_qty=workload.max_qty,
            workload=list(workload.phases),
            journal=list(journals),
            synchronous=settings[0].synchronous,
            busy_timeout=settings[0].busy_timeout,
            max_tries=policy.max_tries,
            deadline=policy.deadline,
            witness=policy.watched,
            kills=policy.kills,
            threads=policy.threads,
            time_limit=policy.time_limit,
            repeat=repeats,
            rate=workload.rate,
        ),
        environment=environment(db.parent if db is not None else Path(tempfile.gettempdir())),
    )


def _again(
    names: Sequence[str], workload: Workload, settings: Sequence[Settings], policy: Policy, repeats: int
) -> str:
    """The command that makes the same deliveries again: all options that are not the default's."""
    from oncebench.cli.values import written

    journals = tuple(mode.journal for mode in settings)
    options = {
        "--seed": (workload.seed, None),
        "--workers": (workload.workers, WORKERS),
        "--ids": (workload.ids, IDS),
        "--redeliveries": (workload.redeliveries, REDELIVERIES),
        "--conflicts": (workload.conflicts, CONFLICTS),
        "--max-qty": (workload.max_qty, MAX_QTY),
        "--workload": (workload.phases, WORKLOADS),
        "--journal": (journals, JOURNALS),
        "--synchronous": (settings[0].synchronous, "full"),
        "--busy-timeout": (settings[0].busy_timeout, 5.0),
        "--max-tries": (policy.max_tries, 1),
        "--deadline": (policy.deadline, 30.0),
        "--kills": (policy.kills, 0),
        "--threads": (policy.threads, 1),
        "--time-limit": (policy.time_limit, 60.0),
        "--rate": (workload.rate, 0.0),
        "--repeat": (repeats, 1),
    }
    words = ["oncebench", "run", *names]
    for option, (value, usual) in options.items():
        if value != usual:
            words += [option, written(value)]
    return shlex.join(words + ([] if policy.watched else ["--no-witness"]))


def _print(result: RunResult, folder: Path | None, json: bool, quiet: bool) -> None:
    from oncebench.cli.telling import tell
    from oncebench.report.terminal import render, surprises, verdicts

    tell(result, lambda: render(result), lambda: (surprises(result), verdicts(result)), folder, json, quiet)
