"""`oncebench report`: a saved run as a page, a table for a pull request, or CSV."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from oncebench.messages import BadInput

PAGE = "report.html"


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    out: Annotated[
        Path | None, typer.Option(help=f"The file to write; {PAGE} beside the first run if not given.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print tables for a pull request instead.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print plain figures as CSV instead.")] = False,
) -> None:
    """Write saved runs as one HTML file that needs nothing else: no network, no script."""
    from oncebench.report import page
    from oncebench.results.files import file_of, write
    from oncebench.results.forms import load_any

    if markdown and csv:
        raise BadInput("--markdown and --csv are two forms: give one of them")
    loaded = [load_any(run) for run in runs]
    if markdown or csv:
        from oncebench.report import tables

        of_runs = [page.of_run(run) for run in loaded] if markdown else []
        text = tables.markdown(of_runs) if markdown else tables.comma_separated(loaded)
        if out is None:
            sys.stdout.write(text)
        else:
            write(out, text.encode())
        return
    place = out or file_of(runs[0]).parent / PAGE
    write(place, page.html(loaded))
    print(place)
