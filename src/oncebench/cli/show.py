"""`oncebench show`: a saved run once more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def show(
    run: Annotated[Path, typer.Argument(help="A run's folder, or its run.json.")],
    json: Annotated[bool, typer.Option("--json", help="Print the saved form instead of tables.")] = False,
) -> None:
    """Print a saved run."""
    from oncebench.report.console import Console
    from oncebench.report.printed import render
    from oncebench.results.forms import load_any
    from oncebench.results.schema import encode

    result = load_any(run)
    if json:
        sys.stdout.buffer.write(encode(result))
    else:
        Console().print(render(result))
