"""The variants that ship, and the verdict that each must get."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

Judged = Literal["sound", "broken"]


@dataclass(frozen=True, slots=True)
class Variant:
    """A named receiver.

    Attributes:
        name: Its name on the command line; its code is the module of that name beside this one.
        expected: The verdict it must get.
        kinds: Violations that a race must find in it, the first of them on every run.
        crash_kinds: Violations that kills one at a time and redelivery must find; none if it stands them.
        explored: The verdict that exploring must come to, where that is another one.
        explore_kinds: Violations that exploring must find in it, all of them and no others.
    """

    name: str
    expected: Judged
    kinds: tuple[str, ...] = ()
    crash_kinds: tuple[str, ...] = ()
    explored: Literal["sound", "broken", "unknown"] | None = None
    explore_kinds: tuple[str, ...] = ()

    @property
    def expected_in_crash(self) -> Judged:
        """The verdict it must get when one process at a time is killed, and nothing races."""
        return "broken" if self.crash_kinds else "sound"

    @property
    def path(self) -> Path:
        """Its source file."""
        spec = find_spec(f"oncebench.receivers.{self.name}")
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin)

    @property
    def lesson(self) -> str:
        """Why it is right or wrong; the first line says it in short. Read without importing it."""
        return ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("immediate", "sound"),
        Variant("exclusive", "sound"),
        Variant("upsert", "sound"),
        # Its statements run in a process that explore does not step.
        Variant("group", "sound", explored="unknown"),
        Variant("deferred", "sound"),
        Variant("structured", "sound"),
        Variant("low_water", "sound"),
        Variant(
            "naive",
            "broken",
            ("double_apply",),
            ("double_apply",),
            explore_kinds=("double_apply", "wrong_answer", "record_effect_mismatch"),
        ),
        Variant(
            "memory",
            "broken",
            ("double_apply",),
            ("double_apply",),
            explore_kinds=("double_apply", "wrong_answer", "record_effect_mismatch"),
        ),
        Variant(
            "id_first",
            "broken",
            ("record_effect_mismatch",),
            ("lost", "record_effect_mismatch"),
            explore_kinds=("record_effect_mismatch", "wrong_answer"),
        ),
        Variant(
            "stock_first",
            "broken",
            ("double_apply",),
            ("double_apply",),
            explore_kinds=("double_apply", "wrong_answer", "record_effect_mismatch", "ghost_apply"),
        ),
        Variant(
            "unique_only", "broken", ("double_apply",), ("double_apply",), explore_kinds=("double_apply",)
        ),
        Variant(
            "ack_early",
            "broken",
            ("left_open",),
            ("acked_but_lost", "left_open"),
            explore_kinds=("left_open", "acked_but_lost", "lost", "wrong_answer"),
        ),
        Variant(
            "swallow",
            "broken",
            ("acked_but_lost",),
            explore_kinds=("acked_but_lost", "record_effect_mismatch", "wrong_answer"),
        ),
        Variant(
            "replace",
            "broken",
            ("double_apply", "wrong_answer"),
            ("double_apply", "wrong_answer"),
            explore_kinds=("double_apply", "wrong_answer", "record_effect_mismatch"),
        ),
        Variant(
            "ignore_rowcount",
            "broken",
            ("double_apply",),
            ("double_apply",),
            explore_kinds=("double_apply", "wrong_answer", "record_effect_mismatch"),
        ),
        # A schedule delivers too few messages for the window to forget one.
        Variant("pruned", "broken", ("double_apply",), explored="sound"),
    )
}
