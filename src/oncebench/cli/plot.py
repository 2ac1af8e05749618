"""`oncebench plot`: one kind of plot of saved runs, as PNG or SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from oncebench.messages import BadInput

if TYPE_CHECKING:
    from oncebench.report.charts import Chart, Timeline
    from oncebench.results.forms import AnyRun

KINDS = ("latency", "time", "fairness", "throughput", "timeline")


def plot(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    kind: Annotated[str, typer.Option(help=f"{', '.join(KINDS)}.")] = "latency",
    out: Annotated[Path, typer.Option(help="The file to write, .png or .svg.")] = Path("plot.png"),
) -> None:
    """Plot saved runs: latency, calls over time, fairness, throughput against workers, or the proofs."""
    from oncebench.cli.values import one_of
    from oncebench.results.files import write
    from oncebench.results.forms import load_any

    one_of([kind], KINDS, "--kind")
    if out.suffix not in (".png", ".svg"):
        raise BadInput(f"--out takes a file that ends in .png or .svg, not {out}")
    data = list(_data([load_any(run) for run in runs], kind))
    if not data:
        raise BadInput(
            f"nothing in {' '.join(map(str, runs))} can be plotted as {kind}: choose another --kind"
        )
    from oncebench.report.plots import plot

    format: Literal["png", "svg"] = "svg" if out.suffix == ".svg" else "png"
    write(out, plot(data, format))
    print(out)


def _data(runs: Sequence[AnyRun], kind: str) -> Iterator[tuple[str, Chart | Timeline]]:
    """What is plotted, each with whose it is."""
    from oncebench.report import charts
    from oncebench.report.page.explored import timeline
    from oncebench.results.checked import CheckRun
    from oncebench.results.explored import ExploreRun
    from oncebench.results.swept import SweepRun

    if kind == "throughput":
        yield from (("throughput", chart) for chart in charts.throughput(runs))
        return
    for run in runs:
        if isinstance(run, CheckRun):
            yield from _data([result for _, result in run.results()], kind)
            for violation in run.explore.violations if run.explore and kind == "timeline" else ():
                yield run.target, timeline(violation)
        elif isinstance(run, SweepRun):
            for cell in run.cells:
                where = f"{cell.place.receiver}, {cell.place.workers} workers, {cell.place.journal}"
                for proof in cell.race.violations if kind == "timeline" else ():
                    yield where, charts.timeline(proof)
                yield from ((where, chart) for chart in charts.of_race(cell.race) if chart.kind == kind)
        elif isinstance(run, ExploreRun):
            for found in run.variants if kind == "timeline" else ():
                yield from ((found.name, timeline(violation)) for violation in found.violations)
        else:
            yield from _of_variants(run, kind)


def _of_variants(run: AnyRun, kind: str) -> Iterator[tuple[str, Chart | Timeline]]:
    from oncebench.report import charts

    for variant in run.variants:  # type: ignore[union-attr]
        known: set[str] = set()
        for proof in variant.violations if kind == "timeline" else ():  # type: ignore[union-attr]
            if proof.kind not in known and proof.operations:
                yield variant.name, charts.timeline(proof)
            known.add(proof.kind)
        for race in getattr(variant, "races", ()):
            whose = f"{variant.name}, {race.journal}"
            yield from ((whose, chart) for chart in charts.of_race(race) if chart.kind == kind)
