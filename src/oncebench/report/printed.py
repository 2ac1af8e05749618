"""A run of any kind as the terminal has it."""

from __future__ import annotations

from rich.console import RenderableType

from oncebench.report import checked, explored, swept, terminal, wired
from oncebench.results.checked import CheckRun
from oncebench.results.explored import ExploreRun
from oncebench.results.forms import AnyRun
from oncebench.results.swept import SweepRun
from oncebench.results.wired import WireRun


def render(run: AnyRun) -> RenderableType:
    """What its command printed."""
    match run:
        case CheckRun():
            return checked.render(run)
        case ExploreRun():
            return explored.render(run)
        case WireRun():
            return wired.render(run)
        case SweepRun():
            return swept.render(run)
        case _:
            return terminal.render(run)
