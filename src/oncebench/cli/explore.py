"""`oncebench explore`: every interleaving of a receiver's statements, or some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oncebench.cli.keeping import Kept
from oncebench.messages import BadInput

if TYPE_CHECKING:
    from oncebench.explore.plan import Plan
    from oncebench.explore.strategies import Strategy
    from oncebench.receivers.loader import Receiver
    from oncebench.results.explored import ExploreRun, ExploreSettings
    from oncebench.testing.exploration import Exploration, Part

LOCKS = ("error", "wait")
JOURNALS = ("wal", "delete")
CREWS = ("greenlets", "threads", "processes")
STRATEGIES = ("exhaustive", "random", "pct")
SCENARIOS = ("same", "conflict", "distinct", "death")
WORKERS = 2
SCHEDULES = 1000
DEPTH = 3
MOST = 20_000
PATIENCE = 5.0
SEED = 7


def explore(
    targets: Annotated[
        list[str] | None, typer.Argument(help="Receivers to explore; naive and immediate if none is given.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Workers in each scenario.")] = WORKERS,
    scenario: Annotated[
        list[str] | None,
        typer.Option(help="same, conflict, distinct, death: what is delivered at once; all if not given."),
    ] = None,
    deliveries: Annotated[
        str | None, typer.Option(help="Instead of scenarios: what A, B, ... are handed, as m1:3,m2:5/m1:3.")
    ] = None,
    locks: Annotated[
        list[str] | None,
        typer.Option(
            help="error: a refused lock is an answer; wait: as with a busy timeout. Both by default."
        ),
    ] = None,
    journal: Annotated[list[str] | None, typer.Option(help="wal, delete; both if not given.")] = None,
    strategy: Annotated[str, typer.Option(help="exhaustive, random or pct.")] = STRATEGIES[0],
    preemptions: Annotated[
        int | None, typer.Option(help="Exhaustive: schedules with this many preemptions at the most.")
    ] = None,
    schedules: Annotated[
        int, typer.Option(help="Random and pct: how many to play in each part.")
    ] = SCHEDULES,
    depth: Annotated[int, typer.Option(help="pct: the depth of fault to look for.")] = DEPTH,
    most: Annotated[int, typer.Option(help="Exhaustive: schedules begun in each part at the most.")] = MOST,
    reduce: Annotated[
        bool, typer.Option("--reduce/--no-reduce", help="Follow each state once only, or every schedule.")
    ] = True,
    on: Annotated[str, typer.Option(help="greenlets (fast), threads or processes (faithful).")] = CREWS[0],
    patience: Annotated[
        str, typer.Option(help="A step that takes longer ends the exploration.")
    ] = f"{PATIENCE:g}s",
    seed: Annotated[int, typer.Option(help="From which all random choices follow.")] = SEED,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    json: Annotated[bool, typer.Option("--json", help="Print the saved form instead of text.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, only the verdicts.")] = False,
) -> None:
    """Explore interleavings, one exactly after another: all schedules, the smallest that breaks, no luck."""
    from oncebench.cli.telling import exit_code, tell
    from oncebench.cli.values import one_of, seconds
    from oncebench.explore.plan import Plan
    from oncebench.report import explored
    from oncebench.results.explored import ExploreSettings
    from oncebench.testing import exploring

    if deliveries is not None and scenario:
        raise BadInput("--deliveries and --scenario both say what is delivered: give one of them")
    for option, number, least in (
        ("--schedules", schedules, 1),
        ("--most", most, 1),
        ("--depth", depth, 1),
        ("--preemptions", preemptions or 0, 0),
    ):
        if number < least:
            raise BadInput(f"{option} takes a number from {least}, not {number}")
    one_of([strategy], STRATEGIES, "--strategy")
    one_of([on], CREWS, "--on")
    names = one_of(scenario or list(SCENARIOS), SCENARIOS, "--scenario")
    plans = [Plan.of(name, workers) for name in names] if deliveries is None else [Plan.parse(deliveries)]
    settings = ExploreSettings(
        workers=plans[0].workers,
        plans=[plan.name or str(plan) for plan in plans],
        journal=one_of(journal or list(JOURNALS), JOURNALS, "--journal"),
        locks=one_of(locks or list(LOCKS), LOCKS, "--locks"),
        strategy=strategy,
        preemptions=preemptions,
        schedules=schedules,
        depth=depth,
        most=most,
        reduce=reduce,
        on=on,
        patience=seconds(patience, "--patience"),
    )
    receivers = [exploring.taken(target) for target in dict.fromkeys(targets or ["naive", "immediate"])]
    run = _begun(receivers, settings, seed)
    with Kept(out, [receiver.name for receiver in receivers]) as kept:
        interrupted = _explore_all(run, receivers, plans, quiet)
        kept.save(run)
    tell(run, lambda: explored.render(run), lambda: [explored.verdicts(run)], kept.place, json, quiet)
    kept.complain()
    verdicts = [(variant.verdict, variant.expected_verdict) for variant in run.variants]
    raise typer.Exit(exit_code(verdicts, interrupted))


def _explore_all(run: ExploreRun, receivers: Sequence[Receiver], plans: Sequence[Plan], quiet: bool) -> bool:
    """Each receiver in turn, added to the run; returns whether Ctrl-C ended it."""
    from oncebench.explore.terminal import unheard
    from oncebench.report.progress import Progress
    from oncebench.testing.exploration import Exploration
    from oncebench.testing.exploring import declared
    from oncebench.testing.telling import in_saved_form

    for receiver in receivers:
        found = Exploration(receiver.name, declared(receiver), run.seed)
        try:
            with unheard(), Progress(not quiet).of(f"explore {receiver.name}", "parts") as report:
                _explore(run.settings, receiver, plans, found, report)
        except KeyboardInterrupt:
            cut = in_saved_form(found)
            if cut.verdict == "sound":
                cut.verdict, cut.because = "unknown", ["it was interrupted"]
            run.variants.append(cut)
            return True
        run.variants.append(in_saved_form(found))
    run.complete = True
    return False


def _explore(
    settings: ExploreSettings,
    receiver: Receiver,
    plans: Sequence[Plan],
    found: Exploration,
    report: Callable[[int, int], None],
) -> None:
    from oncebench.testing import exploring

    planned = len(plans) * len(settings.locks) * len(settings.journal)

    def keep(part: Part) -> None:
        found.parts.append(part)
        report(len(found.parts), planned)

    exploring.explore(
        receiver,
        plans=plans,
        journals=settings.journal,  # type: ignore[arg-type]
        locks=settings.locks,  # type: ignore[arg-type]
        strategy=_strategy(settings),
        preemptions=settings.preemptions,
        most=settings.most,
        reduce=settings.reduce,
        on=settings.on,  # type: ignore[arg-type]
        patience=settings.patience,
        seed=found.seed,
        each=keep,
    )


def _strategy(settings: ExploreSettings) -> Strategy | None:
    from oncebench.explore.strategies import PCT, Random

    if settings.strategy == "exhaustive":
        return None
    if settings.strategy == "random":
        return Random(settings.schedules)
    return PCT(settings.schedules, settings.depth)


def _begun(receivers: Sequence[Receiver], settings: ExploreSettings, seed: int) -> ExploreRun:
    """What is known before the first schedule."""
    import tempfile
    from datetime import UTC, datetime

    from oncebench.results.environment import environment
    from oncebench.results.explored import ExploreRun
    from oncebench.results.schema import SCHEMA

    return ExploreRun(
        schema=SCHEMA,
        kind="explore",
        seed=seed,
        command=_again([receiver.name for receiver in receivers], settings, seed),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        complete=False,
        settings=settings,
        environment=environment(Path(tempfile.gettempdir())),
    )


def _again(names: Sequence[str], settings: ExploreSettings, seed: int) -> str:
    """The command that explores the same again: all options that are not the default's."""
    import shlex

    from oncebench.cli.values import written

    given = [name for name in settings.plans if name not in SCENARIOS]
    options = {
        "--workers": (settings.workers, settings.workers if given else WORKERS),
        "--deliveries": ("".join(given), ""),
        "--scenario": (tuple(settings.plans), tuple(given or SCENARIOS)),
        "--locks": (tuple(settings.locks), LOCKS),
        "--journal": (tuple(settings.journal), JOURNALS),
        "--strategy": (settings.strategy, STRATEGIES[0]),
        "--preemptions": (settings.preemptions, None),
        "--schedules": (settings.schedules, SCHEDULES),
        "--depth": (settings.depth, DEPTH),
        "--most": (settings.most, MOST),
        "--on": (settings.on, CREWS[0]),
        "--patience": (settings.patience, PATIENCE),
        "--seed": (seed, SEED),
    }
    words = ["oncebench", "explore", *names]
    for option, (value, usual) in options.items():
        if value != usual:
            words += [option, written(value)]
    return shlex.join(words + ([] if settings.reduce else ["--no-reduce"]))
