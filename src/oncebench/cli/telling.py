"""How a command that measured something ends: JSON, or what a person reads, and where it was saved."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import msgspec
    from rich.console import RenderableType


INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def exit_code(verdicts: Iterable[tuple[str, str]], interrupted: bool) -> int:
    """0 if every verdict is the declared one, 1 if one is not, 3 if one is unknown; 130 after Ctrl-C.

    Args:
        verdicts: Each with the declared one.
        interrupted: Whether Ctrl-C ended it.
    """
    if interrupted:
        return INTERRUPTED
    pairs = [(got, declared) for got, declared in verdicts if got != declared]
    if any(got != "unknown" for got, _ in pairs):
        return 1
    return 3 if pairs else 0


def tell(
    result: msgspec.Struct,
    whole: Callable[[], RenderableType],
    brief: Callable[[], Sequence[RenderableType]],
    folder: Path | None,
    json: bool,
    quiet: bool,
) -> None:
    """Print a result; `folder` is where it was saved, None if it could not be."""
    from oncebench.report.console import Console
    from oncebench.results.schema import encode

    if json:
        sys.stdout.buffer.write(encode(result))
        return
    console = Console()
    if quiet:
        console.print(*brief(), sep="")
        return
    console.print(whole())
    if folder is not None:
        console.print(f"saved: {folder}", style="dim", markup=False)
