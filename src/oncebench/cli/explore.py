"""`oncebench explore`: every interleaving of a receiver's statements, or some of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oncebench.messages import BadInput

if TYPE_CHECKING:
    from oncebench.explore.strategies import Strategy
    from oncebench.testing.exploration import Exploration

LOCKS = ("error", "wait")
JOURNALS = ("wal", "delete")
CREWS = ("greenlets", "threads", "processes")
STRATEGIES = ("exhaustive", "random", "pct")
SCENARIOS = ("same", "conflict", "distinct", "death")
SEED = 7


def explore(
    targets: Annotated[
        list[str] | None, typer.Argument(help="Receivers to explore; naive and immediate if none is given.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Workers in each scenario.")] = 2,
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
    strategy: Annotated[str, typer.Option(help="exhaustive, random or pct.")] = "exhaustive",
    preemptions: Annotated[
        int | None, typer.Option(help="Exhaustive: schedules with this many preemptions at the most.")
    ] = None,
    schedules: Annotated[int, typer.Option(help="Random and pct: how many to play in each part.")] = 1000,
    depth: Annotated[int, typer.Option(help="pct: the depth of fault to look for.")] = 3,
    most: Annotated[int, typer.Option(help="Exhaustive: schedules begun in each part at the most.")] = 20_000,
    reduce: Annotated[
        bool, typer.Option("--reduce/--no-reduce", help="Follow each state once only, or every schedule.")
    ] = True,
    on: Annotated[str, typer.Option(help="greenlets (fast), threads or processes (faithful).")] = "greenlets",
    patience: Annotated[str, typer.Option(help="A step that takes longer ends the exploration.")] = "5s",
    seed: Annotated[int, typer.Option(help="From which all random choices follow.")] = SEED,
    out: Annotated[Path | None, typer.Option(help="Save the JSON to this file too.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress, only the verdicts.")] = False,
) -> None:
    """Explore interleavings, one exactly after another: all schedules, the smallest that breaks, no luck."""
    from oncebench.cli.telling import exit_code
    from oncebench.cli.values import one_of, seconds
    from oncebench.explore.plan import Plan
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
    receivers = [exploring.taken(target) for target in dict.fromkeys(targets or ["naive", "immediate"])]
    found: list[Exploration] = []
    for receiver in receivers:
        found.append(
            exploring.explore(
                receiver,
                plans=plans,
                journals=one_of(journal or list(JOURNALS), JOURNALS, "--journal"),  # type: ignore[arg-type]
                locks=one_of(locks or list(LOCKS), LOCKS, "--locks"),  # type: ignore[arg-type]
                strategy=_strategy(strategy, schedules, depth),
                preemptions=preemptions,
                most=most,
                reduce=reduce,
                on=on,  # type: ignore[arg-type]
                patience=seconds(patience, "--patience"),
                seed=seed,
            )
        )
        if not json:
            _print(found[-1], quiet)
    if json or out is not None:
        _write(found, seed, json, out)
    verdicts = [(str(exploration.verdict), exploration.expected) for exploration in found]
    raise typer.Exit(exit_code(verdicts, interrupted=False))


def _strategy(name: str, schedules: int, depth: int) -> Strategy | None:
    from oncebench.explore.strategies import PCT, Random

    if name == "exhaustive":
        return None
    return Random(schedules) if name == "random" else PCT(schedules, depth)


def _print(exploration: Exploration, quiet: bool) -> None:
    from rich.console import Console

    from oncebench.testing.telling import told

    Console(highlight=False, soft_wrap=True).print(told(exploration, quiet))


def _write(found: Sequence[Exploration], seed: int, json: bool, out: Path | None) -> None:
    import shlex
    import tempfile
    from datetime import UTC, datetime

    import msgspec

    from oncebench.results.environment import environment
    from oncebench.results.schema import SCHEMA
    from oncebench.testing.telling import as_data

    whole = {
        "schema": SCHEMA,
        "kind": "explore",
        "seed": seed,
        "command": shlex.join(["oncebench", *sys.argv[1:]]),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": environment(Path(tempfile.gettempdir())),
        "variants": [as_data(exploration) for exploration in found],
    }
    encoded = msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"
    if out is not None:
        try:
            out.write_bytes(encoded)
        except OSError as error:
            raise BadInput(
                f"cannot write --out {out} ({error.strerror}): name a file that can be made"
            ) from error
    if json:
        sys.stdout.buffer.write(encoded)
