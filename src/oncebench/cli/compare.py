"""`oncebench compare`: runs of the same workload side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders of runs, the baseline first; of a single one its receivers."),
    ],
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help="Exit with 1 if it holds: 'p99>1.2x', 'throughput<0.9x', 'verdict' (a worse one)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only what --fail-if found.")] = False,
) -> None:
    """Say what got faster or slower, how sure that is, and who is broken. Exit code 3: cannot be told."""
    from oncebench.messages import BadInput
    from oncebench.report.compared import conclusions, render
    from oncebench.report.console import Console
    from oncebench.results import compared
    from oncebench.results.forms import load_any
    from oncebench.results.schema import encode

    conditions = [compared.Condition.of(text) for text in fail_if or ()]
    names = [str(path) for path in runs]
    if len(set(names)) < len(names):
        raise BadInput(f"{next(name for name in names if names.count(name) > 1)} is named twice")
    comparison = compared.compare([(str(path), load_any(path)) for path in runs], conditions)
    if json:
        sys.stdout.buffer.write(encode(comparison))
    else:
        console = Console()
        for part in conclusions(comparison) if quiet else [render(comparison)]:
            console.print(part)
    raise typer.Exit(1 if comparison.failed else 3 if comparison.untold else 0)
