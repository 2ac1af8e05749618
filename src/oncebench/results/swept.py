"""A sweep: a short race for each cell of a grid, kept one by one, and the best setting that is sound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
from msgspec import Struct, field

from oncebench.audit import Verdict
from oncebench.messages import BadInput
from oncebench.results.schema import Amount, Count, RaceResult, VerdictWord

MOST_CELLS = 2000


class Grid(Struct):
    """What is varied; every combination is a cell, `MOST_CELLS` at the most. Times in seconds."""

    receivers: list[str]
    workers: list[Count]
    journal: list[str]
    synchronous: list[str]
    busy_timeout: list[Amount]

    def __post_init__(self) -> None:
        cells = math.prod(map(len, msgspec.structs.astuple(self)))
        if not 1 <= cells <= MOST_CELLS:
            raise BadInput(f"the grid has {cells:,} cells, not 1 to {MOST_CELLS:,}: leave some values out")


class Place(Struct, frozen=True):
    """Which cell."""

    receiver: str
    workers: Count
    journal: str
    synchronous: str
    busy_timeout: Amount


class Cell(Struct):
    """One cell and the race that was run in it, with one proof if it found some."""

    place: Place
    race: RaceResult


class Swept(Struct):
    """One receiver over all its cells.

    Attributes:
        verdict: The worst of its cells in which several workers raced.
        best: The cell that is sound and completes the most a second; None if none is sound.
    """

    name: str
    verdict: VerdictWord
    expected_verdict: VerdictWord
    best: Place | None = None


class SweepRun(Struct):
    """A grid of short races.

    Attributes:
        schema: `oncebench.results.schema.SCHEMA`.
        kind: "sweep".
        seed: From which all deliveries follow.
        command: The line that runs it again.
        created: UTC, ISO 8601.
        complete: Whether every cell has been raced.
        ids: Ids in each part of the workload.
        workload: Its parts.
        time_limit: Seconds for a race.
        expected: The verdict that each receiver declares.
        cells: Those that have been raced, in order.
    """

    schema: int
    kind: Literal["sweep"]
    seed: int
    command: str
    created: str
    complete: bool
    grid: Grid
    ids: Count
    workload: list[str]
    time_limit: Amount
    environment: dict[str, str | int | list[str]]
    expected: dict[str, VerdictWord]
    cells: list[Cell] = field(default_factory=list)
    variants: list[Swept] = field(default_factory=list)

    def __post_init__(self) -> None:
        known = set(places(self.grid))
        if set(self.expected) != set(self.grid.receivers) or any(c.place not in known for c in self.cells):
            raise BadInput("its cells are not those of its grid")


def places(grid: Grid) -> Iterator[Place]:
    """All cells; receivers take turns, so that a machine that gets slower is slower for all."""
    for workers, journal, synchronous, timeout, receiver in itertools.product(
        grid.workers, grid.journal, grid.synchronous, grid.busy_timeout, grid.receivers
    ):
        yield Place(receiver, workers, journal, synchronous, timeout)


def left(run: SweepRun) -> list[Place]:
    """The cells that have not been raced yet."""
    done = {cell.place for cell in run.cells}
    return [place for place in places(run.grid) if place not in done]


def add(run: SweepRun, place: Place, race: RaceResult) -> None:
    """Keep the race of a cell, and draw the conclusions anew."""
    run.cells.append(Cell(place, msgspec.structs.replace(race, violations=race.violations[:1])))
    run.variants = [_swept(run, name) for name in run.grid.receivers]
    run.complete = not left(run)


def refuse_other(
    run: SweepRun, name: str, given: Mapping[str, object], environment: Mapping[str, object]
) -> None:
    """Refuse to add cells of another grid, or of another machine, to a sweep.

    Args:
        run: The sweep that is to go on.
        name: Its folder.
        given: What was asked for, by the name it has in the grid or the run; None for nothing.
        environment: Where it would go on.

    Raises:
        BadInput: They differ.
    """
    begun = {
        **msgspec.structs.asdict(run.grid),
        "ids": run.ids,
        "seed": run.seed,
        "time_limit": run.time_limit,
    }
    for what, wanted in given.items():
        if wanted is not None and wanted != begun[what]:
            raise BadInput(
                f"{name} is a sweep with {what} {_text(begun[what])}, not {_text(wanted)}: leave that out to "
                "go on with it, or --resume to begin another"
            )
    for what in environment:
        if environment[what] != run.environment.get(what):
            raise BadInput(
                f"{name} was begun with another {what}: its cells cannot be compared with those of this "
                "machine, begin another without --resume"
            )


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _swept(run: SweepRun, name: str) -> Swept:
    mine = [cell for cell in run.cells if cell.place.receiver == name]
    raced = [cell for cell in mine if cell.place.workers > 1] or mine
    verdict = Verdict.worst(Verdict(cell.race.verdict) for cell in raced)
    sound = [cell for cell in mine if cell.race.verdict == Verdict.SOUND and cell.race.throughput > 0]
    best = max(sound, key=lambda cell: (cell.race.throughput, -cell.race.latency.p99), default=None)
    return Swept(name, verdict, run.expected[name], best.place if best is not None else None)
