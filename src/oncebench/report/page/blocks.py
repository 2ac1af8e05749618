"""What a page is made of: sections of tables, drawings, sentences and proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oncebench.report import charts, drawing
from oncebench.report.texts import answer, counted, short
from oncebench.results.forms import AnyRun
from oncebench.results.schema import Proof


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence.

    Attributes:
        role: "note", "reason" (why something is unknown), "found" (what is wrong) or "command".
        before: What stands before a command.
    """

    text: str
    role: str = "note"
    before: str = ""
    block: str = "line"


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table.

    Attributes:
        cells: The first is its heading.
        role: "", "part" (a heading over the lines that follow) or a verdict.
        indented: Whether it is part of the line above.
    """

    cells: Sequence[str]
    role: str = ""
    indented: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a heading for each column and each line.

    Attributes:
        caption: What it shows.
        numbers: Whether cells are figures, to be set under each other.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Row]
    numbers: bool = True
    block: str = "table"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart; `svg` is markup that `oncebench.report.drawing` made."""

    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Drawings:
    """Charts beside each other.

    Attributes:
        title: Whose they are.
    """

    title: str
    charts: Sequence[Drawing]
    block: str = "drawings"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One violation with its timeline, and the same as a table.

    Attributes:
        id: As a person can read it; empty if it is about none.
        svg: The timeline; empty if there are no operations.
        schedule: Replayable; empty where the operating system made it.
        command: That shows it again.
        steps: The schedule statement by statement, if it is known.
        open: Whether it is unfolded from the start.
    """

    kind: str
    id: str
    where: str
    message: str
    svg: str
    table: Table | None
    schedule: str = ""
    command: str = ""
    steps: Table | None = None
    open: bool = False
    block: str = "evidence"


@dataclass(frozen=True, slots=True)
class Folded:
    """What is there for those who want more."""

    title: str
    blocks: Sequence[Block]
    block: str = "folded"


Block = Line | Table | Drawings | Evidence | Folded


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page.

    Attributes:
        verdict: "" where there is none.
    """

    title: str
    blocks: Sequence[Block] = ()
    sections: Sequence[Section] = ()
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One receiver's verdict as the first thing on the page."""

    name: str
    word: str
    declared: str
    says: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One run.

    Attributes:
        heading: What ran.
        facts: Settings and environment, in words.
        command: The line that runs it again.
    """

    heading: str
    verdicts: Sequence[Verdict]
    sections: Sequence[Section]
    settings: Sequence[tuple[str, str]]
    environment: Sequence[tuple[str, str]]
    command: str
    created: str
    complete: bool = True
    notes: Sequence[str] = field(default_factory=tuple)


def drawn(title: str, data: Sequence[charts.Chart]) -> Drawings:
    """Charts as SVG."""
    return Drawings(title, [Drawing(one.title, drawing.chart(one)) for one in data])


def evidence(
    proof: Proof,
    command: str,
    ids: int = 0,
    open: bool = False,
    steps: Table | None = None,
    drawn: charts.Timeline | None = None,
) -> Evidence:
    """One violation, of so many ids; `command` shows it again, `steps` and `drawn` know its schedule."""
    shown = proof.operations[: charts.MOST_LANES]
    died = f", {proof.point}" if proof.point else ""
    table = Table(
        "The operations, in order of their calls",
        ["worker", "message", "quantity → answer", "called", "came back"],
        [
            Row(
                [
                    charts.lane(op.worker, proof),
                    short(op.id),
                    answer(op),
                    charts.moment(op.invoked, proof),
                    "never" if op.completed is None else charts.moment(op.completed, proof),
                ]
            )
            for op in sorted(shown, key=lambda op: op.invoked)
        ],
        numbers=False,
    )
    return Evidence(
        proof.kind,
        short(proof.id) if proof.id else "",
        f"{proof.journal} mode{died}" + (f" ({counted(ids, 'id')} of this kind)" if ids > 1 else ""),
        proof.message,
        drawing.timeline(drawn or charts.timeline(proof)) if shown else "",
        table if shown and steps is None else None,
        proof.schedule,
        command,
        steps,
        open,
    )


def of_run(
    run: AnyRun,
    heading: str,
    verdicts: Sequence[Verdict],
    sections: Sequence[Section],
    settings: Sequence[tuple[str, str]],
) -> Page:
    """A page, with what every kind of run says of itself."""
    environment = [
        (key.replace("_", " "), " ".join(value) if isinstance(value, list) else str(value))
        for key, value in run.environment.items()
    ]
    return Page(heading, verdicts, sections, settings, environment, run.command, run.created, run.complete)
