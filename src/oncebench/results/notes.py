"""What a reader must know of a race besides its verdict, read off its history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from oncebench.messages import DEADLINE, NEVER, Outcome
from oncebench.race import Race
from oncebench.results.excuses import may_refuse
from oncebench.results.phases import inside
from oncebench.results.schema import Load

if TYPE_CHECKING:
    from oncebench.messages import Flags, Ints

_KEPT = 0.95
"""Share of the offered rate that must have been handed over for it to count as kept."""
_WINDOW = 5  # redeliveries that were known, and as many that were not, before a window is spoken of


def notes_of(race: Race, load: Load) -> list[str]:
    """All of them, a sentence each."""
    read = (_no_room(race), _not_kept(load), _at_once(race), _never_back(race), _forgets(race))
    return [*race.notes, *(note for notes in read for note in notes)]


def _no_room(race: Race) -> Iterator[str]:
    rows = [row for row in race.stuck if may_refuse(race, row)]
    details = sorted({race.drained[row].detail for row in rows})
    many = f"{len(rows)} {'message' if len(rows) == 1 else 'messages'}"
    if rows:
        yield f"no room for {many}, refused with {' and '.join(details)}"


def _not_kept(load: Load) -> Iterator[str]:
    if load.reached < _KEPT * load.rate:
        yield (
            f"{load.rate:,.10g}/s were offered and {load.reached:,.0f}/s handed over: workers were late, and "
            "the latencies are those of a queue that grew; lower the rate, or raise the workers"
        )


def _at_once(race: Race) -> Iterator[str]:
    """Lock errors long before the busy timeout: https://sqlite.org/c3ref/busy_handler.html says when."""
    history, timeout = race.history, min((s.busy_timeout for s in race.effective), default=0.0)
    patient: Flags = np.ones(len(history), dtype=np.bool_)
    for at, phase in enumerate(race.phases):
        if phase.impatient:
            patient &= ~inside(race, at)
    locked = patient & (history.outcome == Outcome.LOCKED)
    took = (history.completed - history.invoked)[locked]
    early = took[took < timeout * 1e9 / 2]
    if not len(early):
        return
    codes = ", ".join(sorted({history.details[detail] for detail in history.detail[locked].tolist()}))
    half = f"{np.median(early) / 1e6:.2g} ms"
    yield (
        f"{len(early):,} of {len(took):,} lock errors ({codes}) came long before the busy timeout of "
        f"{timeout:g} s, half of them within {half}: SQLite refuses at once where waiting could not help, as "
        "when a transaction has read before it writes; ROLLBACK and start it again, or begin it with BEGIN "
        "IMMEDIATE, which waits"
    )


def _never_back(race: Race) -> Iterator[str]:
    """A loop inside a call hides its lock errors from whoever calls."""
    if any(race.drained[row].detail == DEADLINE for row in race.stuck):
        yield (
            "a call did not come back even when it was alone: `oncebench explore` goes through it statement "
            "by statement, and names the last one and its code"
        )


def _forgets(race: Race) -> Iterator[str]:
    """The window of an inbox, where redeliveries were known up to it and new after it."""
    history = race.history
    order = np.lexsort((history.invoked, history.id))
    id, qty, outcome = history.id[order], history.qty[order], history.outcome[order]
    invoked, completed = history.invoked[order], history.completed[order]
    applied = outcome == Outcome.APPLIED
    place = np.arange(len(order))
    latest = np.maximum.accumulate(np.where(applied, place, -1))  # row that applied last, up to each row
    before = np.append([-1], latest[:-1])[: len(order)]
    again = before >= 0
    again &= (id[before] == id) & (qty[before] == qty) & (completed[before] < invoked)
    again &= (completed < NEVER) & ~_across_a_restart(race, completed[before], invoked)
    taken_in = np.sort(completed[applied])
    since = np.searchsorted(taken_in, invoked) - np.searchsorted(taken_in, completed[before], side="right")
    known, new = since[again & (outcome == Outcome.DUPLICATE)], since[again & applied]
    if min(len(known), len(new)) >= _WINDOW and known.max() < new.min():
        yield (
            f"its inbox forgets: {len(known):,} redeliveries were known, with at most {known.max():,} other "
            f"orders in between, and {len(new):,} applied again, with at least {new.min():,}"
        )


def _across_a_restart(race: Race, since: Ints, until: Ints) -> Flags:
    crossed: Flags = np.zeros(len(since), dtype=np.bool_)
    for at, phase in enumerate(race.phases):
        if phase.restarted and (rows := inside(race, at)).any():
            moment = race.history.invoked[rows].min()
            crossed |= (since < moment) & (moment <= until)
    return crossed
