"""How a command that measured something ends: JSON, or what a person reads, and where it was saved."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import msgspec
    from rich.console import RenderableType


def tell(
    result: msgspec.Struct,
    whole: Callable[[], RenderableType],
    brief: Callable[[], Sequence[RenderableType]],
    folder: Path | None,
    json: bool,
    quiet: bool,
) -> None:
    """Print a result; `folder` is where it was saved, None if it could not be."""
    from rich.console import Console

    from oncebench.results.schema import encode

    if json:
        sys.stdout.buffer.write(encode(result))
        return
    console = Console(highlight=False, soft_wrap=True)
    if quiet:
        console.print(*brief(), sep="")
        return
    console.print(whole())
    if folder is not None:
        console.print(f"saved: {folder}", style="dim", markup=False)
