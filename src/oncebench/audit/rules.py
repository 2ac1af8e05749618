"""The one judge: `(history, state before, state after) -> findings`. Pure, exact, in linear time.

Per id the specification is a write-once register, so linearizability (Herlihy and Wing, 1990) needs no
search. Whoever applies comes first; all others of that id must not have ended before it began:

* nobody or one answers `applied`; if nobody does, one call without a conclusive answer may stand for it;
* `duplicate` is right for the applied quantity, `conflict` for any other, at or after the applying call;
* a register that was written before the run stays as it is.

What the answers claim is held against what an independent connection read: the inbox, the total, and,
where there is one, the witness, which knows who changed what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from oncebench.audit.columns import Columns, encode
from oncebench.audit.findings import MOST_EXAMPLES, Findings, Kind, Violation
from oncebench.messages import DEADLINE, MAX_QTY, NEVER, Event, History, Operation, Outcome, State

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    from oncebench.messages import Flags, Ints

    Exact = npt.NDArray[Any]
    """Integers of 64 bits, or Python's own where those would not do."""

_MOST_OPERATIONS = 6


def audit(
    history: History,
    before: State,
    after: State,
    stuck: Sequence[int] = (),
    drain_from: int | None = None,
) -> Findings:
    """Judge a run.

    Args:
        history: All operations between the two states.
        before: The store before the first of them.
        after: The store after the last; its witness holds only what came after `before`.
        stuck: Rows of the history whose deliveries were redelivered in vain.
        drain_from: The first row of the drain, which redelivered until answered: those ids must be there.
    """
    return audit_columns(encode(history, before, after), stuck, drain_from)


def audit_columns(run: Columns, stuck: Sequence[int] = (), drain_from: int | None = None) -> Findings:
    """Judge a run whose ids are numbers already; otherwise as `audit`."""
    return _Audit(run).findings(stuck, drain_from)


def _where(flags: Flags) -> Ints:
    """As `numpy.flatnonzero`, in a fifth of its time on the few rows of a schedule."""
    rows: Ints = flags.nonzero()[0]
    return rows


def _sums(where: Ints, values: Exact, n: int) -> Exact:
    """`n` sums, each of the values that belong there: in 64 bits where they surely fit, else of any size."""
    most = max(int(values.max()), -int(values.min())) if len(values) else 0
    sums: Exact = np.zeros(n, dtype=np.int64 if most * len(values) <= MAX_QTY else object)
    np.add.at(sums, where, values)
    return sums


class _Audit:
    """One pass of columns over the history for each rule; ids are numbers, `n` of them."""

    def __init__(self, run: Columns) -> None:
        self.run = run
        self.h = run.history
        self.was, self.qty, self.names = run.was, run.qty, run.names
        self.n = len(run.names)
        self.known = run.was_rows > 0
        self.there = run.rows > 0
        self.new = self.there & ~self.known
        self.expected = np.where(self.new, self.qty, 0)
        self.bad: dict[Kind, dict[int, str]] = {}
        self.proof: dict[tuple[Kind, int], list[int]] = {}

    def _sums(self, rows: Flags, values: Exact) -> Exact:
        """For each id, the sum of these rows' values."""
        return _sums(self.h.id[rows], values[rows], self.n)

    def findings(self, stuck: Sequence[int], drain_from: int | None) -> Findings:
        h = self.h
        self.applied = h.outcome == Outcome.APPLIED
        self.duplicate = h.outcome == Outcome.DUPLICATE
        self.conflict = h.outcome == Outcome.CONFLICT
        self.failed = (h.outcome == Outcome.LOCKED) | (h.outcome == Outcome.ERROR)
        self.open = h.outcome == Outcome.INDETERMINATE
        self.applications = np.bincount(h.id[self.applied], minlength=self.n)
        self.applied_sum = self._sums(self.applied, h.qty)
        self.twice = self.applications + self.known > 1
        before, after = self.run.totals
        self.surplus = after - before - sum(self.expected.tolist())
        self.settled, self.start = self._register()
        self._answers()
        self._records()
        self.effects = self._effects()
        self._applied_twice()
        self._total()
        self._left_open()
        if drain_from is not None:
            self._drained(drain_from)
        for row in [*stuck, *_where(h.detail == self._detail(DEADLINE))]:
            detail = h.details[h.detail[row]] or "no answer"
            self._say(Kind.STUCK, int(h.id[row]), f"its delivery was never answered ({detail})", [int(row)])
        remarks = self._ghosts()
        return self._written_out(remarks)

    def _register(self) -> tuple[Ints, Ints]:
        """For each id, the quantity it was settled with, and when its applying call began (NEVER: none)."""
        h = self.h
        settled = self.was.copy()
        start = np.where(self.known, np.int64(-1), np.int64(NEVER))
        rows = _where(self.applied & ~self.known[h.id])
        rows = rows[np.lexsort((h.call[rows], h.invoked[rows]))][::-1]
        settled[h.id[rows]] = h.qty[rows]
        start[h.id[rows]] = h.invoked[rows]
        # Nobody says that it applied this one, but it is there: a call without a conclusive answer may have
        # done it. A failed one may too (an exception after its COMMIT); the witness says more about those.
        claimed = (start < NEVER) | ~self.there
        rows = _where((self.open | self.failed) & ~claimed[h.id])
        rows = rows[h.qty[rows] == self.qty[h.id[rows]]]
        settled[h.id[rows]] = h.qty[rows]
        np.minimum.at(start, h.id[rows], h.invoked[rows])
        return settled, start

    def _answers(self) -> None:
        """At most one applied; every duplicate and conflict explained by the register."""
        h = self.h
        wrong = self.applied & (h.qty != self.settled[h.id])
        self._say_rows(
            Kind.WRONG_ANSWER, wrong, "answered applied with another quantity than the first: a conflict"
        )
        settled, start = self.settled[h.id], self.start[h.id]
        ever = start < NEVER
        wrong = self.duplicate & ever & (h.qty != settled)
        self._say_rows(
            Kind.WRONG_ANSWER, wrong, "answered duplicate, but the quantity is another one: a conflict"
        )
        wrong = self.conflict & ever & (h.qty == settled)
        self._say_rows(
            Kind.WRONG_ANSWER, wrong, "answered conflict, but the quantity is the same: a duplicate"
        )
        told = self.duplicate | self.conflict
        wrong = told & ever & (h.completed < start)
        self._say_rows(Kind.WRONG_ANSWER, wrong, "answered as known before the call that applied it began")
        wrong = told & ~ever & self.there[h.id]
        self._say_rows(Kind.WRONG_ANSWER, wrong, "answered as known, and no call can have applied it")
        wrong = self.conflict & ~ever & ~self.there[h.id]
        self._say_rows(Kind.WRONG_ANSWER, wrong, "answered conflict, and nothing is in the inbox")

    def _records(self) -> None:
        """The inbox holds what was applied, each once, with the applied quantity."""
        h = self.h
        lost = (self.applied | self.duplicate) & ~self.there[h.id]
        self._say_rows(Kind.ACKED_BUT_LOST, lost, "answered as done, but it is not in the inbox")
        gone = self.known & ~self.there
        for id in _where(gone).tolist():
            self._say(Kind.ACKED_BUT_LOST, id, "was in the inbox before the run and is gone")
        for id in _where(self.run.rows > 1).tolist():
            self._say(Kind.RECORD_EFFECT_MISMATCH, id, f"{self.run.rows[id]} rows in the inbox")
        ever = self.start < NEVER
        other = self.there & ever & (self.qty != self.settled)
        for id in _where(other).tolist():
            self._say(
                Kind.RECORD_EFFECT_MISMATCH,
                id,
                f"applied with {self.settled[id]}, but the inbox has it with {self.qty[id]}",
            )
        for id in _where(self.there & ~ever).tolist():
            self._say(
                Kind.RECORD_EFFECT_MISMATCH, id, "in the inbox, and no delivery of it can have put it there"
            )

    def _effects(self) -> Exact | None:
        """For each id, the sum of the effects witnessed; None where nobody can tell whose they are."""
        seen = self.run.witness
        h = self.h
        self.done: Exact = np.zeros(len(h), dtype=np.int64)  # by each call: the sum of its effects ...
        self.recorded = np.zeros(len(h), dtype=np.int64)  # ... and its inbox rows
        if seen is None:
            return None
        row, known = self._rows_of(seen.call)
        effect, record = seen.event == Event.EFFECT, seen.event == Event.RECORDED
        self.done = _sums(row[known & effect], seen.amount[known & effect], len(h))
        self.recorded = np.bincount(row[known & record], minlength=len(h))
        rows = self.run.recorded[record]
        self._came_first(rows[rows >= 0], seen.at[record][rows >= 0], "row was in the inbox")
        if not known[effect].all():
            return None
        effects, calls = self._credited(row, known)
        for id in _where(effects != self.expected).tolist():
            sums = f"effects of {effects[id]} where the inbox says {self.expected[id]}"
            doubled = calls[id] + self.known[id] > 1 and effects[id] > self.expected[id]
            self._say(
                Kind.DOUBLE_APPLY if doubled else Kind.RECORD_EFFECT_MISMATCH,
                id,
                f"{calls[id]} calls changed the total: {sums}" if doubled else sums,
            )
        return effects

    def _credited(self, row: Ints, known: Flags) -> tuple[Exact, Ints]:
        """For each id, the sum of its effects and how many calls made them.

        A call whose effects add up to what it recorded worked for the messages that it recorded: it may
        have finished what another call, perhaps a dead one, had begun. Any other, one that records ids
        that nobody delivers included, worked for its own message.
        """
        h, seen, recorded = self.h, self.run.witness, self.run.recorded
        assert seen is not None
        sign = (seen.event == Event.RECORDED).astype(np.int64) - (seen.event == Event.ERASED)
        listed = known & (sign != 0)
        kept = _sums(row[listed], sign[listed] * seen.amount[listed], len(h))
        delivered = (recorded >= 0) & (recorded < len(h.ids))
        strays = np.bincount(row[listed & ~delivered], minlength=len(h))
        balanced = (kept == self.done) & (self.recorded > 0) & (strays == 0)
        own = (self.done != 0) & ~balanced
        listed &= balanced[row]
        ids = np.concatenate([h.id[own], recorded[listed]])
        acted = np.full(len(h), NEVER, dtype=np.int64)
        effect = known & (seen.event == Event.EFFECT)
        np.minimum.at(acted, row[effect], seen.at[effect])
        self._came_first(ids, np.concatenate([acted[own], acted[row[listed]]]), "effect was made")
        amounts = np.concatenate([self.done[own], sign[listed] * seen.amount[listed]])
        return _sums(ids, amounts, self.n), np.bincount(ids, minlength=self.n)

    def _rows_of(self, calls: Ints) -> tuple[Ints, Flags]:
        """The row of each of these calls, and whether the history has it."""
        mine = self.h.call
        if not len(mine):
            return np.zeros(len(calls), dtype=np.int64), np.zeros(len(calls), dtype=np.bool_)
        order = None if (mine[1:] >= mine[:-1]).all() else np.argsort(mine)
        spot = np.minimum(np.searchsorted(mine if order is None else mine[order], calls), len(mine) - 1)
        row = spot if order is None else order[spot]
        return row, mine[row] == calls

    def _came_first(self, ids: Ints, at: Ints, what: str) -> None:
        """Nobody is told `duplicate`, an acknowledgement, before what it acknowledges was there.

        A `conflict` acknowledges nothing: it may come from a claim that is not in the inbox yet.

        Args:
            ids: Of what the witness saw.
            at: When.
            what: In words.
        """
        h = self.h
        began = np.full(self.n, NEVER, dtype=np.int64)
        np.minimum.at(began, ids, at)
        early = self.duplicate & ~self.known[h.id] & (began[h.id] < NEVER)
        early &= h.completed < began[h.id]
        self._say_rows(Kind.WRONG_ANSWER, early, f"answered as known before its {what}")

    def _applied_twice(self) -> None:
        """More than one answered applied: a double effect, unless the witness or the total says otherwise."""
        for id in _where(self.twice).tolist():
            effect = self.surplus > 0 if self.effects is None else self.effects[id] > self.expected[id]
            sums = f"together {self.applied_sum[id]}, where the inbox says {self.expected[id]}"
            many = f"{self.applications[id]} deliveries answered applied, {sums}"
            known = "answered applied, but it was in the inbox before the run"
            self._say(
                Kind.DOUBLE_APPLY if effect else Kind.WRONG_ANSWER, id, known if self.known[id] else many
            )

    def _total(self) -> None:
        """The total moved by what became present."""
        before, after = self.run.totals
        if self.effects is None:
            source, difference = "the inbox explains", self.surplus
            claimed = sum(self.applied_sum[self.twice].tolist()) - sum(self.expected[self.twice].tolist())
            if difference == claimed:  # those who answered applied once too often say where it comes from
                return
        else:
            source, difference = "the witness saw", after - before - sum(self.effects.tolist())
        if difference:
            self._say(
                Kind.RECORD_EFFECT_MISMATCH,
                -1,
                f"the total went from {before} to {after}, {abs(difference)} "
                f"{'more' if difference > 0 else 'less'} than {source}; on no id can it be pinned",
            )

    def _left_open(self) -> None:
        self._say_rows(Kind.LEFT_OPEN, self.h.left_open, "came back with its transaction still open")

    def _drained(self, start: int) -> None:
        h = self.h
        answered = h.outcome <= Outcome.CONFLICT
        answered[:start] = False
        self._say_rows(
            Kind.LOST, answered & ~self.there[h.id], "redelivered until answered, and not in the inbox"
        )
        if self.effects is not None:
            idle = answered & self.new[h.id] & (self.effects[h.id] == 0)
            self._say_rows(Kind.LOST, idle, "redelivered until answered, and it never had an effect")

    def _ghosts(self) -> list[Violation]:
        """Calls that failed and yet left something: harmless only if nothing else is wrong with their id."""
        h = self.h
        ghosts = self.failed & ((self.done != 0) | (self.recorded != 0))
        whole = (self.done == h.qty) & (self.recorded == 1)
        harmed = np.zeros(self.n, dtype=np.bool_)
        for bad in self.bad.values():
            harmed[[id for id in bad if id >= 0]] = True
        self._say_rows(
            Kind.GHOST_APPLY,
            ghosts & ~whole & harmed[h.id],
            "answered with a failure, but part of its work is there",
        )
        if self.run.witness is None:  # it is there, and only a failed call can have put it there
            able = self.new[h.id] & (h.qty == self.qty[h.id])
            able &= self.applications[h.id] == 0
            unsure = np.bincount(h.id[able & self.open], minlength=self.n) > 0
            ghosts = able & self.failed & ~unsure[h.id] & (h.invoked == self.start[h.id])
        return [
            Violation(Kind.GHOST_APPLY, self.names[h.id[row]], "failed although its work was done", (h[row],))
            for row in _where(ghosts & ~harmed[h.id])[:MOST_EXAMPLES].tolist()
        ]

    def _detail(self, text: str) -> int:
        return list(self.h.details).index(text) if text in self.h.details else -1

    def _say(self, kind: Kind, id: int, message: str, rows: list[int] | None = None) -> None:
        self.bad.setdefault(kind, {}).setdefault(id, message)
        if rows is not None:
            self.proof.setdefault((kind, id), rows)

    def _say_rows(self, kind: Kind, wrong: Flags, message: str) -> None:
        """One violation for each id among these rows, the first row its proof."""
        rows = _where(wrong)
        if not len(rows):  # as it should be: to sort nothing takes time too
            return
        ids, first = np.unique(self.h.id[rows], return_index=True)
        for id, at in zip(ids.tolist(), first.tolist(), strict=True):
            self._say(kind, id, message, [int(rows[at])])

    def _written_out(self, remarks: list[Violation]) -> Findings:
        sizes = np.bincount(self.h.id, minlength=self.n)
        troubles = Counter(id for bad in self.bad.values() for id in bad)  # one fault alone reads best
        violations = []
        for kind in Kind:
            bad = self.bad.get(kind, {})
            smallest = sorted(bad, key=lambda n: (troubles[n], int(sizes[n]) if n >= 0 else 0, n))
            smallest = smallest[:MOST_EXAMPLES]
            for id in smallest:
                operations = self._operations(kind, id) if id >= 0 else ()
                name = self.names[id] if id >= 0 else ""
                violations.append(Violation(kind, name, bad[id], operations))
        ids = {
            kind: frozenset(self.names[id] if id >= 0 else "" for id in self.bad[kind])
            for kind in Kind
            if kind in self.bad
        }
        return Findings(violations, ids, remarks)

    def _operations(self, kind: Kind, id: int) -> tuple[Operation, ...]:
        """The fewest operations of an id that prove it, in order of invocation."""
        h = self.h
        rows = _where(h.id == id)
        rows = rows[np.argsort(h.invoked[rows], kind="stable")]
        if kind is Kind.DOUBLE_APPLY:
            acted = rows[self.done[rows] != 0]
            rows = acted if len(acted) > 1 else rows[(self.done[rows] != 0) | self.applied[rows]]
            for first, second in pairwise(rows.tolist()):
                if h.invoked[second] <= h.completed[first]:  # they overlapped: the clearest proof
                    return h[first], h[second]
            return tuple(h[int(row)] for row in rows[:2])
        if kind is Kind.RECORD_EFFECT_MISMATCH:
            acted = rows[(self.done[rows] != 0) | (self.recorded[rows] != 0)]
            rows = acted if len(acted) else rows
        proof = set(self.proof.get((kind, id), []))
        if kind is Kind.WRONG_ANSWER:
            proof |= set(rows[self.start[id] == h.invoked[rows]].tolist())
        if not proof:
            return tuple(h[int(row)] for row in rows[:_MOST_OPERATIONS])
        return tuple(h[int(row)] for row in rows if row in proof)
