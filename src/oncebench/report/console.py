"""The terminal that results are printed on."""

from __future__ import annotations

from collections.abc import Iterable

import rich.console
from rich.segment import Segment

from oncebench.report.texts import printable


class Console(rich.console.Console):
    """Standard output, where nothing that is printed can move the cursor or change colours by itself.

    An id, a message or a file's contents may hold the terminal's own commands: they are spelled out.
    """

    def __init__(self) -> None:
        super().__init__(highlight=False, soft_wrap=True)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What is drawn, without signs that are commands."""
        for text, style, control in super().render(renderable, options):
            yield Segment("\n".join(map(printable, text.split("\n"))), style, control)
