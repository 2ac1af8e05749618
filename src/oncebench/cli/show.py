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
    from rich.console import Console

    from oncebench.report import checked, explored, terminal, wired
    from oncebench.results.checked import CheckRun
    from oncebench.results.explored import ExploreRun
    from oncebench.results.files import kind_of, load, load_as
    from oncebench.results.schema import encode
    from oncebench.results.wired import WireRun

    kind = kind_of(run)
    if kind == "check":
        check = load_as(run, CheckRun)
        data, told = encode(check), checked.render(check)
    elif kind == "explore":
        explore = load_as(run, ExploreRun)
        data, told = encode(explore), explored.render(explore)
    elif kind == "wire":
        wire = load_as(run, WireRun)
        data, told = encode(wire), wired.render(wire)
    else:
        result = load(run)
        data, told = encode(result), terminal.render(result)
    if json:
        sys.stdout.buffer.write(data)
    else:
        Console(highlight=False, soft_wrap=True).print(told)
