"""`oncebench show`: a saved run once more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType


def show(
    run: Annotated[Path, typer.Argument(help="A run's folder, or its run.json.")],
    json: Annotated[bool, typer.Option("--json", help="Print the saved form instead of tables.")] = False,
) -> None:
    """Print a saved run."""
    from oncebench.report import checked, explored, swept, terminal, wired
    from oncebench.report.console import Console
    from oncebench.results.checked import CheckRun
    from oncebench.results.explored import ExploreRun
    from oncebench.results.forms import load_any
    from oncebench.results.schema import encode
    from oncebench.results.swept import SweepRun
    from oncebench.results.wired import WireRun

    result = load_any(run)
    if json:
        sys.stdout.buffer.write(encode(result))
        return
    told: RenderableType
    match result:
        case CheckRun():
            told = checked.render(result)
        case ExploreRun():
            told = explored.render(result)
        case WireRun():
            told = wired.render(result)
        case SweepRun():
            told = swept.render(result)
        case _:
            told = terminal.render(result)
    Console().print(told)
