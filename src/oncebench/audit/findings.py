"""What an audit says: verdicts, kinds of violation, and their proofs."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from oncebench.messages import Operation

MOST_EXAMPLES = 5
"""Violations of one kind that are written out; the rest are counted."""


class Verdict(enum.StrEnum):
    """What a run says of a receiver."""

    SOUND = "sound"
    """Nothing wrong in what was tried."""
    UNKNOWN = "unknown"
    """Nothing wrong was seen, but too little was seen to say more."""
    BROKEN = "broken"
    """There is a proof."""

    @classmethod
    def worst(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """Broken before unknown before sound; unknown for none at all."""
        order = list(cls)
        return max(verdicts, key=order.index, default=cls.UNKNOWN)


class Kind(enum.StrEnum):
    """What is wrong."""

    DOUBLE_APPLY = "double_apply"
    """The effect of one id landed more than once."""
    ACKED_BUT_LOST = "acked_but_lost"
    """Answered as applied or duplicate, but not in the inbox."""
    RECORD_EFFECT_MISMATCH = "record_effect_mismatch"
    """Inbox and stock do not say the same."""
    WRONG_ANSWER = "wrong_answer"
    """No order of the operations explains this answer."""
    GHOST_APPLY = "ghost_apply"
    """A call that failed left something behind."""
    LEFT_OPEN = "left_open"
    """Came back with its transaction still open."""
    LOST = "lost"
    """Redelivered until answered, and still not in the inbox."""
    STUCK = "stuck"
    """Did not come back, or was never answered however often it was redelivered."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding with its smallest proof.

    Attributes:
        id: The message's id; empty where the sums cannot be pinned on one.
        message: What happened, with the sums.
        operations: Those that prove it, in order of invocation.
        schedule: A replayable schedule; empty where the operating system made it.
    """

    kind: Kind
    id: str
    message: str
    operations: tuple[Operation, ...] = ()
    schedule: str = ""


@dataclass
class Findings:
    """What an audit found.

    Attributes:
        violations: Up to `MOST_EXAMPLES` of each kind, those with the fewest operations first.
        ids: All ids of each kind; the empty one where the sums cannot be pinned.
        remarks: Calls that failed although their work was done: harmless to a publisher that redelivers.
    """

    violations: list[Violation] = field(default_factory=list)
    ids: dict[Kind, frozenset[str]] = field(default_factory=dict)
    remarks: list[Violation] = field(default_factory=list)

    @property
    def counts(self) -> dict[Kind, int]:
        """How many ids there are of each kind."""
        return {kind: len(ids) for kind, ids in self.ids.items()}

    @property
    def verdict(self) -> Verdict:
        """Broken or sound; whether enough was tried is for the one who ran it to say."""
        return Verdict.BROKEN if self.ids else Verdict.SOUND

    def join(self, later: Findings) -> Findings:
        """These and what a later audit of the same run found in addition."""
        known = {(v.kind, v.id) for v in self.violations}
        fresh = [v for v in later.violations if (v.kind, v.id) not in known]
        none: frozenset[str] = frozenset()
        ids = {kind: self.ids.get(kind, none) | later.ids.get(kind, none) for kind in Kind}
        violations: list[Violation] = []
        for kind in Kind:
            violations += [v for v in (*self.violations, *fresh) if v.kind is kind][:MOST_EXAMPLES]
        return Findings(violations, {kind: which for kind, which in ids.items() if which}, later.remarks)
