"""`oncebench crash`: kill a real process at each point of a call, and redeliver."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oncebench.cli.keeping import Kept
from oncebench.messages import BadInput

if TYPE_CHECKING:
    from signal import Signals

    from oncebench.receivers.loader import Receiver
    from oncebench.results import RunResult
    from oncebench.stores.sqlite import Settings

SEED = 7
JOURNALS = ("wal", "delete")
SYNCHRONOUS = ("full", "normal", "off")
SIGNALS = ("kill", "term")
USUAL = (
    "immediate", "exclusive", "upsert", "group", "deferred", "memory", "id_first", "stock_first", "ack_early",
)  # fmt: skip
"""The right ones, and those that only a death shows for what they are."""


def crash(
    variants: Annotated[
        list[str] | None,
        typer.Argument(help="Receivers to kill; the right ones and four wrong ones if none is given."),
    ] = None,
    journal: Annotated[list[str] | None, typer.Option(help="wal, delete; both if not given.")] = None,
    signal: Annotated[list[str] | None, typer.Option(help="kill, term; both if not given.")] = None,
    successor: Annotated[
        str | None,
        typer.Option(help="Who takes the redelivery, as in a rolling deploy; itself if not given."),
    ] = None,
    synchronous: Annotated[str, typer.Option(help="full, normal or off.")] = "full",
    busy_timeout: Annotated[str, typer.Option(help="How long SQLite waits for a lock, e.g. 100ms.")] = "5s",
    deadline: Annotated[str, typer.Option(help="A call that takes longer is given up.")] = "30s",
    seed: Annotated[
        int, typer.Option(help="For waits between the tries of a redelivery; the points need no chance.")
    ] = SEED,
    out: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    json: Annotated[bool, typer.Option("--json", help="Print the saved form instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, only the verdicts.")] = False,
) -> None:
    """Kill a real process before and after every statement, reopen, redeliver, and judge what is there."""
    from signal import SIGKILL, SIGTERM

    from oncebench.cli.telling import exit_code
    from oncebench.cli.values import one_of, seconds
    from oncebench.receivers.loader import load
    from oncebench.stores.sqlite import Settings

    journals = one_of(journal or list(JOURNALS), JOURNALS, "--journal")
    one_of([synchronous], SYNCHRONOUS, "--synchronous")
    numbers = {"kill": SIGKILL, "term": SIGTERM}
    signals = [numbers[name] for name in one_of(signal or list(SIGNALS), SIGNALS, "--signal")]
    settings = [Settings(mode, synchronous, seconds(busy_timeout, "--busy-timeout")) for mode in journals]  # type: ignore[arg-type]
    limit = seconds(deadline, "--deadline")
    if limit <= settings[0].busy_timeout:
        raise BadInput(
            f"--deadline {deadline} must be longer than --busy-timeout {busy_timeout}: "
            "a call that still waits would be taken for one that hangs"
        )
    if not 0 <= seed < 2**63:
        raise BadInput(f"--seed takes 0 to 2**63-1, not {seed}")
    receivers = [load(target) for target in dict.fromkeys(variants or USUAL)]
    heir = load(successor) if successor is not None else None
    if heir is not None and any(receiver.mixed for receiver in receivers):
        raise BadInput("old+new names the successor already: leave --successor out")
    with Kept(out, [receiver.name for receiver in receivers]) as kept:
        result = empty_result(receivers, heir, settings, limit, seed, signals)
        crash_all(result, receivers, heir, settings, limit, signals, quiet)
        kept.save(result)
    _print(result, kept.place, json, quiet)
    kept.complain()
    verdicts = [(variant.verdict, variant.expected_verdict) for variant in result.variants]
    interrupted = any(variant.interrupted for variant in result.variants)
    raise typer.Exit(exit_code(verdicts, interrupted))


def crash_all(
    result: RunResult,
    receivers: Sequence[Receiver],
    heir: Receiver | None,
    settings: Sequence[Settings],
    deadline: float,
    signals: Sequence[Signals],
    quiet: bool,
) -> None:
    """Each receiver in each journal mode, added to the result."""
    from oncebench.crash.campaign import crash as kill_all
    from oncebench.report.progress import Progress
    from oncebench.results.crashed import of_crashes

    progress = Progress(not quiet)
    for receiver in receivers:
        crashes = []
        name = receiver.name if heir is None else f"{receiver.name} then {heir.name}"
        expected = receiver.expected_in("crash") if heir is None else "sound"
        for mode in settings:
            with progress.of(f"{name}, {mode.journal}", "kills") as report:
                ended = kill_all(
                    receiver,
                    mode,
                    seed=result.seed,
                    deadline=deadline,
                    signals=signals,
                    successor=heir,
                    progress=report,
                )
            crashes.append(ended)
            if crashes[-1].interrupted:
                break
        result.variants.append(of_crashes(name, expected, crashes))
        if crashes[-1].interrupted:
            return
    result.complete = True


def empty_result(
    receivers: Sequence[Receiver],
    heir: Receiver | None,
    settings: Sequence[Settings],
    deadline: float,
    seed: int,
    signals: Sequence[Signals],
) -> RunResult:
    """What is known before the first kill."""
    import tempfile
    from datetime import UTC, datetime

    from oncebench.results import schema
    from oncebench.results.environment import environment

    words = ["oncebench", "crash", *(receiver.name for receiver in receivers)]
    options = (
        ("--seed", str(seed), str(SEED)),
        ("--journal", ",".join(mode.journal for mode in settings), ",".join(JOURNALS)),
        ("--signal", ",".join(each.name[3:].lower() for each in signals), ",".join(SIGNALS)),
        ("--successor", heir.name if heir is not None else "", ""),
        ("--synchronous", settings[0].synchronous, "full"),
        ("--busy-timeout", f"{settings[0].busy_timeout:g}", "5"),
        ("--deadline", f"{deadline:g}", "30"),
    )
    for option, value, usual in options:
        if value != usual:
            words += [option, value]
    return schema.RunResult(
        schema=schema.SCHEMA,
        kind="crash",
        seed=seed,
        command=shlex.join(words),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        complete=False,
        settings=schema.Settings(
            workers=1,
            ids=1,
            redeliveries=1,
            conflicts=1.0,
            max_qty=8,
            workload=["snack-7/7", "kill", "snack-7/7", "snack-7/8"],
            journal=[mode.journal for mode in settings],
            synchronous=settings[0].synchronous,
            busy_timeout=settings[0].busy_timeout,
            max_tries=1,
            deadline=deadline,
            witness=True,
        ),
        environment=environment(Path(tempfile.gettempdir())),
    )


def _print(result: RunResult, folder: Path | None, json: bool, quiet: bool) -> None:
    from oncebench.cli.telling import tell
    from oncebench.report.terminal import render, surprises, verdicts

    tell(result, lambda: render(result), lambda: (surprises(result), verdicts(result)), folder, json, quiet)
