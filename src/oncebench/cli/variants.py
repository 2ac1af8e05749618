"""`oncebench variants`: what ships, and what each of them teaches."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def variants(
    json: Annotated[bool, typer.Option("--json", help="Print a list of objects instead of a table.")] = False,
) -> None:
    """List the receivers that ship, with the verdict each must get and why."""
    import msgspec
    from rich.console import Console
    from rich.table import Table

    from oncebench.receivers.registry import VARIANTS

    if json:
        listed = [
            {"name": v.name, "expected_verdict": v.expected, "kinds": v.kinds, "lesson": v.lesson}
            for v in VARIANTS.values()
        ]
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("variant", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("why")
    for variant in VARIANTS.values():
        colour = "green" if variant.expected == "sound" else "red"
        table.add_row(variant.name, f"[{colour}]{variant.expected}[/]", variant.lesson.partition("\n\n")[0])
    Console(highlight=False).print(table)
