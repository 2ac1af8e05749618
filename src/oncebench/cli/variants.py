"""`oncebench variants`: what ships, and what each of them teaches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from oncebench.receivers.registry import Variant


def variants(
    json: Annotated[bool, typer.Option("--json", help="Print a list of objects instead of tables.")] = False,
) -> None:
    """List the receivers that ship by the kind of fault they have, with the verdict each must get and why."""
    import msgspec
    from rich.console import Console

    from oncebench.receivers.registry import CASES, VARIANTS

    if json:
        listed = [_object(variant) for variant in VARIANTS.values()]
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n")
        return
    console = Console(highlight=False)
    groups: dict[str, list[Variant]] = {title: [] for title in ("", *CASES)}
    for variant in VARIANTS.values():
        groups[variant.case].append(variant)
    for case, group in groups.items():
        title = f"{case}  {CASES[case]}" if case else "Of no case"
        console.print(title, style="bold")
        console.print(_table(group))
        console.print()


def _object(variant: Variant) -> dict[str, object]:
    return {
        "name": variant.name,
        "case": variant.case,
        "expected_verdict": variant.expected,
        "kinds": variant.kinds,
        "repaired": variant.repaired,
        "lesson": variant.lesson,
    }


def _table(group: list[Variant]) -> Table:
    """The variants of one case: their names, verdicts, first sentences, and the repair beside them."""
    from rich.table import Table

    from oncebench.report.texts import COLOURS

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("variant", no_wrap=True, min_width=17)
    table.add_column("verdict", no_wrap=True, min_width=8)
    table.add_column("why")
    for variant in group:
        why = variant.lesson.partition("\n\n")[0].replace("\n", " ")
        if variant.repaired:
            why += f"\n[dim]repaired:[/] {variant.repaired}"
        table.add_row(variant.name, f"[{COLOURS[variant.expected]}]{variant.expected}[/]", why)
    return table
