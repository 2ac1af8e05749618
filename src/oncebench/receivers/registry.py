"""The variants that ship, the kind of fault that each is, and the verdict that each must get in each mode."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

Judged = Literal["sound", "broken", "unknown"]
Mode = Literal["sequential", "race", "threads", "explore", "crash"]

CASES = {
    "C01": "look, then write",
    "C02": "upgrade refused at once",
    "C03": "the statement is retried, not the transaction",
    "C04": "key of the attempt",
    "C05": "claim first, work later",
    "C06": "lease shorter than the work",
    "C07": "acknowledged by a shared inbox",
    "C08": "stopped in a rolling deploy",
    "C09": "COMMIT refused, transaction left open",
    "C10": "conflict or error without ROLLBACK",
    "C11": "one connection for several tasks",
    "C12": "connection carried over a fork",
    "C13": "another descriptor of the store is closed",
    "C14": "legacy implicit transactions",
    "C15": "executescript commits first",
    "C16": "OR IGNORE hides other failures",
    "C17": "OR REPLACE, DO UPDATE",
    "C18": "rowcount misread",
    "C19": "locked means done",
    "C20": "key too coarse or too fine",
    "C21": "sum in Python",
    "C22": "blind retry wrapper",
    "C23": "inbox pruned too early",
    "C24": "lock of one process",
}
"""Kinds of fault that people have met and reported in public."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A named receiver.

    Attributes:
        name: Its name on the command line; its code is the module of that name beside this one, or among
            the cases. A name `old+new` is of two versions on one store.
        expected: The verdict it must get when everything is tried.
        kinds: Violations that a race must find in it, the first of them on every run.
        crash_kinds: Violations that kills one at a time and redelivery must find; none if it stands them.
        explore_kinds: Violations that exploring must find in it, all of them and no others.
        alone: The same for one worker that delivers everything, one after the other.
        also: Further violations that a race may find.
        case: Which of `CASES` it is, or is the repair of.
        repaired: The variant that does the same right; empty for one that is right itself.
        untold: Modes that must come to no verdict on it.
        threaded: Whether a race on threads breaks it, where that is not so because a race on processes does.
    """

    name: str
    expected: Judged
    kinds: tuple[str, ...] = ()
    crash_kinds: tuple[str, ...] = ()
    explore_kinds: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    case: str = ""
    repaired: str = ""
    untold: tuple[Mode, ...] = ()
    threaded: bool | None = None

    def expected_in(self, mode: Mode) -> Judged:
        """The verdict it must get in one mode."""
        if mode in self.untold:
            return "unknown"
        if mode == "threads" and self.threaded is not None:
            return "broken" if self.threaded else "sound"
        kinds = {
            "sequential": self.alone,
            "race": self.kinds,
            "threads": self.kinds,
            "explore": self.explore_kinds,
            "crash": self.crash_kinds,
        }
        return "broken" if kinds[mode] else "sound"

    @property
    def module(self) -> str:
        """Where its code is imported from; of two versions, the new one's."""
        name = self.name.rpartition("+")[2]
        beside = Path(__file__).with_name(f"{name}.py").exists()
        return f"oncebench.receivers.{name}" if beside else f"oncebench.receivers.cases.{name}"

    @property
    def path(self) -> Path:
        """Its source file."""
        spec = find_spec(self.module)
        assert spec is not None
        assert spec.origin is not None
        return Path(spec.origin)

    @property
    def lesson(self) -> str:
        """Why it is right or wrong; the first line says it in short. Read without importing it."""
        return ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""


DOUBLED = ("double_apply", "wrong_answer", "record_effect_mismatch")
"""What exploring finds where a message works twice: each time twice, told as new, or half of it."""
BESIDE = ("wrong_answer", "record_effect_mismatch", "ghost_apply")
"""What a race may find beside a double apply: a call that was refused after half of its work is one such."""
GONE = ("acked_but_lost", "wrong_answer", "lost")

VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("immediate", "sound"),
        Variant("exclusive", "sound"),
        Variant("upsert", "sound"),
        # Its statements run in a process that explore does not step.
        Variant("group", "sound", untold=("explore",)),
        Variant("structured", "sound"),
        Variant(
            "memory", "broken",
            ("double_apply",), ("double_apply",), DOUBLED, alone=("double_apply",), also=BESIDE,
            repaired="immediate",
        ),
        Variant(
            "unique_only", "broken",
            ("double_apply",), ("double_apply",), ("double_apply",), alone=("double_apply",), also=BESIDE,
            repaired="upsert",
        ),
        Variant(
            "ack_early", "broken",
            ("left_open",), ("acked_but_lost", "left_open"), ("left_open", *GONE),
            alone=("left_open", "acked_but_lost", "wrong_answer"), also=GONE,
            repaired="immediate",
        ),
        Variant(
            "naive", "broken",
            ("double_apply",), ("double_apply",), DOUBLED, also=BESIDE,
            case="C01", repaired="immediate",
        ),
        Variant("deferred", "sound", case="C02", repaired="immediate"),
        Variant(
            "statement_again", "broken",
            ("stuck",), (), ("stuck",), case="C03", repaired="transaction_again",
        ),
        Variant("transaction_again", "sound", case="C03"),
        Variant(
            "attempt_key", "broken",
            ("double_apply", "acked_but_lost", "record_effect_mismatch"),
            ("double_apply", "acked_but_lost", "record_effect_mismatch"),
            (*DOUBLED, "acked_but_lost", "lost"),
            alone=(*DOUBLED, "acked_but_lost"), also=("wrong_answer", "lost"),
            case="C04", repaired="immediate",
        ),
        Variant(
            "id_first", "broken",
            ("record_effect_mismatch",), ("lost", "record_effect_mismatch"),
            ("record_effect_mismatch", "wrong_answer"), also=("wrong_answer", "ghost_apply", "lost"),
            case="C05", repaired="upsert",
        ),
        Variant(
            "stock_first", "broken",
            ("double_apply",), ("double_apply",), (*DOUBLED, "ghost_apply"), also=BESIDE,
            case="C05", repaired="immediate",
        ),
        Variant(
            "lease", "broken", ("double_apply",),
            explore_kinds=DOUBLED, also=BESIDE, case="C06", repaired="lease_fenced",
        ),
        Variant("lease_fenced", "sound", case="C06"),
        Variant(
            "one_inbox", "broken",
            ("acked_but_lost", "lost"), (), GONE, alone=("acked_but_lost", "wrong_answer"), also=GONE,
            case="C07", repaired="inbox_for_each",
        ),
        Variant("inbox_for_each", "sound", case="C07"),
        Variant(
            "immediate+moved_inbox", "broken",
            ("double_apply",), ("double_apply",), alone=("double_apply",), also=BESIDE,
            untold=("explore",), case="C08", repaired="immediate+moved_and_asked",
        ),
        Variant("immediate+moved_and_asked", "sound", untold=("explore",), case="C08"),
        Variant("moved_inbox", "sound", case="C08"),
        Variant("moved_and_asked", "sound", case="C08"),
        Variant(
            "commit_refused", "broken",
            ("left_open",), also=(*GONE, "record_effect_mismatch", "ghost_apply"),
            case="C09", repaired="commit_checked",
        ),
        Variant("commit_checked", "sound", case="C09"),
        Variant(
            "raise_open", "broken",
            ("left_open",), ("left_open",), ("left_open",), alone=("left_open",),
            case="C10", repaired="immediate",
        ),
        Variant(
            "one_connection", "broken",
            explore_kinds=(*DOUBLED, "acked_but_lost"),
            threaded=True, case="C11", repaired="one_at_a_time",
        ),
        Variant("one_at_a_time", "sound", case="C11"),
        # A child that works over its parent's connection: whatever was read then proves nothing.
        Variant(
            "forked", "unknown",
            untold=("sequential", "race", "explore", "crash"), case="C12", repaired="forked_first",
        ),
        Variant("forked_first", "sound", untold=("explore", "crash"), case="C12"),
        Variant(
            "read_beside", "broken",
            ("acked_but_lost",), also=(*GONE, *BESIDE, "double_apply"),
            alone=("wrong_answer",), case="C13", repaired="read_through",
        ),
        Variant("read_through", "sound", case="C13"),
        Variant(
            "legacy_look", "broken",
            ("double_apply",), (), DOUBLED, also=BESIDE, case="C14", repaired="legacy_write_first",
        ),
        Variant("legacy_write_first", "sound", case="C14"),
        Variant(
            "script", "broken",
            ("wrong_answer",), ("record_effect_mismatch", "lost"),
            ("record_effect_mismatch", "wrong_answer", "ghost_apply", "lost"),
            also=("record_effect_mismatch", "ghost_apply", "lost"), case="C15", repaired="immediate",
        ),
        Variant(
            "ignore_all", "broken",
            ("acked_but_lost",), (), ("acked_but_lost", "lost"), alone=("acked_but_lost",), also=GONE,
            case="C16", repaired="ignore_known",
        ),
        Variant("ignore_known", "sound", case="C16"),
        Variant(
            "replace", "broken",
            ("double_apply", "wrong_answer"), ("double_apply", "wrong_answer"), DOUBLED,
            alone=("double_apply", "wrong_answer"), also=BESIDE, case="C17", repaired="immediate",
        ),
        Variant(
            "do_update", "broken",
            ("double_apply", "wrong_answer"), ("double_apply", "wrong_answer"), DOUBLED,
            alone=("double_apply", "wrong_answer"), also=BESIDE, case="C17", repaired="upsert",
        ),
        Variant(
            "ignore_rowcount", "broken",
            ("double_apply",), ("double_apply",), DOUBLED,
            alone=("double_apply", "wrong_answer"), also=BESIDE, case="C18", repaired="upsert",
        ),
        Variant(
            "last_row", "broken",
            ("double_apply",), ("double_apply",), DOUBLED,
            alone=("double_apply", "wrong_answer"), also=BESIDE, case="C18", repaired="upsert",
        ),
        Variant(
            "swallow", "broken",
            ("acked_but_lost",), (), ("acked_but_lost", "record_effect_mismatch", "wrong_answer"),
            also=("record_effect_mismatch", "wrong_answer"), case="C19", repaired="immediate",
        ),
        Variant(
            "coarse_key", "broken",
            ("acked_but_lost",), alone=("acked_but_lost", "record_effect_mismatch", "wrong_answer"),
            also=("record_effect_mismatch", "wrong_answer", "lost", "ghost_apply"),
            case="C20", repaired="immediate",
        ),
        Variant(
            "number_key", "broken",
            ("acked_but_lost",), alone=("acked_but_lost",), also=GONE, case="C20", repaired="immediate",
        ),
        Variant(
            "fine_key", "broken",
            ("double_apply", "wrong_answer"), ("double_apply", "wrong_answer"), DOUBLED,
            alone=("double_apply", "wrong_answer"), also=BESIDE, case="C20", repaired="immediate",
        ),
        Variant(
            "python_sum", "broken",
            ("record_effect_mismatch",), (), ("record_effect_mismatch",), case="C21", repaired="immediate",
        ),
        Variant(
            "retry_outside", "broken",
            ("double_apply",), ("double_apply",), (*DOUBLED, "ghost_apply"), also=BESIDE,
            case="C22", repaired="retry_whole",
        ),
        Variant("retry_whole", "sound", case="C22"),
        # A schedule delivers too few messages for the window to forget one.
        Variant(
            "pruned", "broken",
            ("double_apply",), alone=("double_apply", "record_effect_mismatch"), also=BESIDE,
            case="C23", repaired="low_water",
        ),
        Variant("low_water", "sound", case="C23"),
        Variant(
            "process_lock", "broken",
            ("double_apply",), ("double_apply",), ("double_apply",), also=BESIDE,
            threaded=False, case="C24", repaired="immediate",
        ),
    )
}  # fmt: skip
LESSON = tuple(name for name, variant in VARIANTS.items() if "cases" not in variant.module.split("."))
"""Those of the lesson that this bench began with; the others are one case each."""
