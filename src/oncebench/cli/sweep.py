"""`oncebench sweep`: a short race for each cell of a grid of settings."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oncebench.cli.keeping import Kept
from oncebench.messages import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oncebench.receivers.loader import Receiver
    from oncebench.results.swept import Grid, Place, SweepRun
    from oncebench.workload import Workload

SEED = 7
IDS = 60
TIME_LIMIT = 20.0
PARTS = ("same", "distinct", "spread", "paused")
_DEADLINE = 15.0  # seconds for a call, beyond the longest busy timeout


def sweep(
    variants: Annotated[
        list[str] | None, typer.Argument(help="Receivers; immediate if none is given.")
    ] = None,
    workers: Annotated[list[str] | None, typer.Option(help="Numbers of processes. [default: 1,2,4]")] = None,
    journal: Annotated[list[str] | None, typer.Option(help="Of wal, delete. [default: both]")] = None,
    synchronous: Annotated[
        list[str] | None, typer.Option(help="Of full, normal, off. [default: full,normal]")
    ] = None,
    busy_timeout: Annotated[list[str] | None, typer.Option(help="Times. [default: 0,100ms,5s]")] = None,
    ids: Annotated[int | None, typer.Option(help=f"Ids in each part of a race. [default: {IDS}]")] = None,
    time_limit: Annotated[
        str | None, typer.Option(help=f"For the race of a cell. [default: {TIME_LIMIT:g}s]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help=f"From which all deliveries follow. [default: {SEED}]")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="Go on with the sweep in this folder.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    json: Annotated[bool, typer.Option("--json", help="Print the saved form instead of tables.")] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="No progress, only the best settings.")
    ] = False,
) -> None:
    """Race receivers under every combination of settings; Ctrl-C keeps the cells that are done."""
    from oncebench.cli.run import JOURNALS, SYNCHRONOUS
    from oncebench.cli.telling import exit_code, tell
    from oncebench.cli.values import one_of, seconds, whole_numbers
    from oncebench.receivers.loader import load
    from oncebench.report.swept import conclusions, render
    from oncebench.results.environment import environment
    from oncebench.results.files import file_of, load_as
    from oncebench.results.swept import Grid, SweepRun, refuse_other

    timeouts = [part for text in busy_timeout or () for part in text.split(",")]
    given: dict[str, object] = {
        "receivers": [load(target).name for target in dict.fromkeys(variants)] if variants else None,
        "workers": whole_numbers(workers, "--workers") if workers else None,
        "journal": one_of(journal, JOURNALS, "--journal") if journal else None,
        "synchronous": one_of(synchronous, SYNCHRONOUS, "--synchronous") if synchronous else None,
        "busy_timeout": list(dict.fromkeys(seconds(part, "--busy-timeout") for part in timeouts)) or None,
        "ids": ids,
        "seed": seed,
        "time_limit": seconds(time_limit, "--time-limit") if time_limit else None,
    }
    here = environment(_temporary())
    if resume is not None:
        run, folder = load_as(resume, SweepRun), file_of(resume).parent
        if run.kind != "sweep":
            raise BadInput(f"{resume} was made by oncebench {run.kind}: --resume takes the folder of a sweep")
        refuse_other(run, str(resume), given, here)
        receivers = {name: load(name) for name in run.grid.receivers}
    else:
        chosen = {name: value for name, value in given.items() if value is not None}
        grid = Grid(**{name: chosen.pop(name, usual) for name, usual in _usual().items()})  # type: ignore[arg-type]
        receivers = {name: load(name) for name in grid.receivers}
        run = _begun(grid, receivers, chosen, here)
    works = {
        count: _workload(run, count) for count in run.grid.workers
    }  # says what is wrong before anything is made
    with contextlib.ExitStack() as stack:
        if resume is None:
            folder = stack.enter_context(Kept(out, ["sweep", *run.grid.receivers])).folder
        interrupted = _race_all(run, receivers, works, folder, quiet)
    tell(run, lambda: render(run), lambda: (conclusions(run),), folder if run.cells else None, json, quiet)
    if interrupted and run.cells and not json:
        print(f"go on: {shlex.join(['oncebench', 'sweep', '--resume', str(folder)])}")
    raise typer.Exit(exit_code([(v.verdict, v.expected_verdict) for v in run.variants], interrupted))


def _usual() -> dict[str, object]:
    return {
        "receivers": ["immediate"],
        "workers": [1, 2, 4],
        "journal": ["wal", "delete"],
        "synchronous": ["full", "normal"],
        "busy_timeout": [0.0, 0.1, 5.0],
    }


def _temporary() -> Path:
    import tempfile

    return Path(tempfile.gettempdir())


def _begun(
    grid: Grid,
    receivers: Mapping[str, Receiver],
    chosen: Mapping[str, object],
    here: dict[str, str | int | list[str]],
) -> SweepRun:
    from datetime import UTC, datetime

    import msgspec

    from oncebench.cli.values import written
    from oncebench.results.schema import SCHEMA
    from oncebench.results.swept import SweepRun

    words = ["oncebench", "sweep", *grid.receivers]
    for name, values in msgspec.structs.asdict(grid).items():
        if name != "receivers":
            words += [f"--{name.replace('_', '-')}", ",".join(written(value) for value in values)]
    settings = {"ids": IDS, "seed": SEED, "time_limit": TIME_LIMIT, **chosen}
    for name, value in settings.items():
        words += [f"--{name.replace('_', '-')}", written(value)]
    return SweepRun(
        schema=SCHEMA,
        kind="sweep",
        command=shlex.join(words),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        complete=False,
        grid=grid,
        workload=list(PARTS),
        environment=here,
        expected={name: receiver.expected for name, receiver in receivers.items()},
        **settings,  # type: ignore[arg-type]
    )


def _workload(run: SweepRun, workers: int) -> Workload:
    from oncebench.workload import Workload

    return Workload(run.seed, workers, run.ids, phases=tuple(run.workload))


def _race_all(
    run: SweepRun, receivers: Mapping[str, Receiver], works: Mapping[int, Workload], folder: Path, quiet: bool
) -> bool:
    """Each cell that is left, saved as soon as it is done; returns whether Ctrl-C ended it."""
    from oncebench.race import Policy, race
    from oncebench.report.progress import Bar
    from oncebench.results import summary
    from oncebench.results.files import save
    from oncebench.results.swept import add, left
    from oncebench.stores.sqlite import Settings

    deadline = _DEADLINE + max(run.grid.busy_timeout)
    policy = Policy(deadline=deadline, time_limit=run.time_limit)
    cells = left(run)
    try:
        with Bar(not quiet, len(run.cells), len(run.cells) + len(cells)) as bar:
            for place in cells:
                settings = Settings(place.journal, place.synchronous, place.busy_timeout)  # type: ignore[arg-type]
                report = bar.begin(_name(place))
                ended = race(receivers[place.receiver], works[place.workers], settings, policy, None, report)
                if ended.interrupted:
                    return True
                add(run, place, summary.of_race(ended))
                save(run, folder)
    except KeyboardInterrupt:
        return True
    return False


def _name(place: Place) -> str:
    from oncebench.cli.values import written

    return (
        f"{place.receiver} {place.workers} {place.journal} {place.synchronous} {written(place.busy_timeout)}s"
    )
