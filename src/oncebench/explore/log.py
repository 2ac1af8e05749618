"""The order in which calls began and ended while a schedule was played, and the history that it makes."""

from __future__ import annotations

from dataclasses import dataclass, field

from oncebench.explore.site import Reading
from oncebench.messages import NEVER, Operation, Outcome


@dataclass
class Log:
    """Who called when, by numbers of calls.

    Attributes:
        ended: Calls in the order of their ends.
        order: For each call, those that had ended when it began; this much of the order a judge can see.
        endless: Calls that would not end.
    """

    ended: list[int] = field(default_factory=list)
    order: frozenset[tuple[int, frozenset[int]]] = frozenset()
    endless: set[int] = field(default_factory=set)
    _begun: dict[int, tuple[int, int, str, int, int]] = field(default_factory=dict)
    _answers: dict[int, tuple[Outcome, str, bool]] = field(default_factory=dict)
    _committed: list[tuple[int, int]] = field(default_factory=list)
    _known: list[int] | None = None

    def begin(self, call: int, worker: int, id: str, qty: int, delivery: int) -> None:
        """A call begins."""
        self._known = None
        self._begun[call] = len(self.ended), worker, id, qty, delivery
        self.order |= {(call, frozenset(self.ended))}

    def end(self, call: int, outcome: Outcome, detail: str, left_open: bool) -> None:
        """It answers."""
        self._answers[call] = outcome, detail, left_open
        self.ended.append(call)

    def cut_off(self, call: int, detail: str) -> None:
        """It never answers."""
        self._answers[call] = Outcome.INDETERMINATE, detail, False

    def committed(self, rows: int) -> None:
        """So many rows of the witness are committed now."""
        if rows != (self._committed[-1][0] if self._committed else 0):
            self._known = None
            self._committed.append((rows, len(self.ended)))

    @property
    def commits(self) -> tuple[tuple[int, frozenset[int]], ...]:
        """For each number of rows that was ever committed, the calls that had ended by then."""
        return tuple([(rows, frozenset(self.ended[:count])) for rows, count in self._committed])

    @property
    def end_of_time(self) -> int:
        """After all that happened."""
        return 2 * len(self._levels())

    def operations(self) -> tuple[Operation, ...]:
        """The history, in the fewest numbers that keep the order: the same for the same order.

        What begins when the same calls have ended begins at the same odd number; a call ends at the even
        number before the first beginning, or commit, that came after it.
        """
        levels = self._levels()
        place = {call: nth for nth, call in enumerate(self.ended)}
        operations = []
        for call, (count, worker, id, qty, delivery) in sorted(self._begun.items()):
            outcome, detail, left_open = self._answers[call]
            completed = NEVER
            if call in place:
                later = (n for n, level in enumerate(levels) if level > place[call])
                completed = 2 * next(later, len(levels))
            operations.append(
                Operation(
                    worker,
                    id,
                    qty,
                    2 * levels.index(count) + 1,
                    completed,
                    outcome,
                    detail,
                    left_open,
                    delivery,
                    call,
                )
            )
        return tuple(operations)

    def timed(self, reading: Reading) -> Reading:
        """With the times at which the witness's rows were committed."""
        if reading.witness is None:
            return reading
        levels, end = self._levels(), self.end_of_time
        rows = []
        for nth, (event, amount, call, _, id) in enumerate(reading.witness):
            count = next((count for rows, count in self._committed if nth < rows), None)
            time = end + 1 if count is None else 2 * levels.index(count) + 1
            rows.append((event, amount, call, time, id))
        return Reading(reading.total, reading.inbox, tuple(rows))

    def _levels(self) -> list[int]:
        if self._known is None:
            begun = {count for count, *_ in self._begun.values()}
            self._known = sorted(begun.union([count for _, count in self._committed]))
        return self._known
