"""`oncebench report`: a saved run as a page, a table for a pull request, or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PAGE = "report.html"


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or their run.json.")],
    out: Annotated[
        Path | None, typer.Option(help=f"The file to write; {PAGE} beside the first run if not given.")
    ] = None,
) -> None:
    """Write saved runs as one HTML file that needs nothing else: no network, no script."""
    from oncebench.report import page
    from oncebench.results.files import write
    from oncebench.results.forms import load_any

    loaded = [load_any(run) for run in runs]
    place = out or (runs[0] if runs[0].is_dir() else runs[0].parent) / PAGE
    write(place, page.html(loaded))
    print(place)
