"""Where a process can be killed: found by letting the receiver run once, without touching it."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Delivery = Literal["first", "again"]
Process = Literal["worker", "server"]
Place = Literal["before call", "after statement", "before ACK", "after ACK"]

AFTER_INSERT = "after inbox insert"
AFTER_UPDATE = "after total update"
BEFORE_COMMIT = "before commit"
AFTER_COMMIT = "after commit before ACK"
NAMES = (AFTER_INSERT, AFTER_UPDATE, BEFORE_COMMIT, AFTER_COMMIT)
"""Points that the lesson names; they are found by what a statement did, not by its text."""
MOST_STATEMENTS = 24
"""Of a longer call, the first and the last half as many are tried."""
NEVER_COMES = -1
"""The index of a step that no process comes to: after the last of a call."""


@dataclass(frozen=True, slots=True)
class Step:
    """A moment at which SQLite said what it begins: a statement, or a trigger in one.

    Attributes:
        index: Which of its process's steps, from 0.
        at: Monotonic nanoseconds.
        text: The statement, with its values; empty for the end of a call.
        figures: Inbox rows and total as its own connection saw them just before; None where it has no such
            tables.
    """

    index: int
    at: int
    text: str
    figures: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a call.

    Attributes:
        start: Index of its step.
        end: Index of the next statement's; `NEVER_COMES` for the last of the call.
        text: The statement, with its values.
        before: Inbox rows and total as its connection saw them before it.
        after: The same after it.
    """

    start: int
    end: int
    text: str
    before: tuple[int, int] | None = None
    after: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """Where a process is killed, and how.

    Attributes:
        delivery: Whether the killed call is the message's first, or a redelivery of one that was answered.
        process: Who is killed: the worker that calls the receiver, or the server that works for it.
        place: Where in the call.
        number: After which of its statements, from 1; 0 elsewhere.
        statement: What that one says.
        start: Index of its step, counted over the process's life; -1 elsewhere.
        end: Index of the next statement's step.
        signal: SIGKILL or SIGTERM.
    """

    delivery: Delivery
    process: Process
    place: Place
    number: int = 0
    statement: str = ""
    start: int = -1
    end: int = NEVER_COMES
    signal: signal.Signals = signal.SIGKILL


_VALUE = re.compile(r"'(?:[^']|'')*(?:'|$)|\b\d[\w.]*\b")


def shape(text: str) -> str:
    """A statement without its values: a time, or a key of the attempt, differs from run to run."""
    return _VALUE.sub("?", text)


def statements(bare: Sequence[Step], watched: Sequence[Step]) -> tuple[list[Statement], bool]:
    """Tell the statements of one call from the triggers of the witness in it.

    SQLite announces a trigger as it does a statement, and the driver gives both the text of the statement. So
    the receiver runs once on a store without a witness, where each step is a statement, and once with it. Of
    one text that comes n times in a row in the one and m times in the other, each m/nth is a statement.

    Args:
        bare: The steps of the call without a witness.
        watched: Those of the same call with it, and its end, if that is known.

    Returns:
        The statements, in terms of `watched`, and whether the two runs fitted. If they did not, every step
        counts as a statement: more points than there need be, but none too few.
    """
    end = next((step for step in watched if not step.text), None)
    steps = [step for step in watched if step.text]
    for wording in (str, shape):
        plain = [
            (text, len(list(run))) for text, run in groupby(wording(step.text) for step in bare if step.text)
        ]
        runs = [list(run) for _, run in groupby(steps, key=lambda step: wording(step.text))]
        fits = [text for text, _ in plain] == [wording(run[0].text) for run in runs] and all(
            len(run) % count == 0 for run, (_, count) in zip(runs, plain, strict=True)
        )
        if fits:
            break
    if fits:
        first = [
            step for run, (_, count) in zip(runs, plain, strict=True) for step in run[:: len(run) // count]
        ]
    else:
        first = steps
    found = [
        Statement(
            step.index,
            NEVER_COMES if following is None or following is end else following.index,
            step.text,
            step.figures,
            following.figures if following is not None else None,
        )
        for step, following in zip(first, [*first[1:], end], strict=False)
    ]
    return found, fits


def points(
    worker: dict[Delivery, list[Statement]],
    server: dict[Delivery, list[Statement]] | None,
    signals: Sequence[signal.Signals],
) -> list[Point]:
    """All places to die, in the order in which a delivery comes past them.

    A redelivery is killed after each statement only. SIGTERM is tried where the first call is under way.

    Args:
        worker: The statements of the process that calls the receiver, for each delivery.
        server: Those of the process that works for it; None if there is none.
        signals: Which to use.
    """
    found: list[Point] = []
    of_process: dict[Process, dict[Delivery, list[Statement]]] = {"worker": worker}
    if server is not None:  # it works while the worker waits
        of_process = {"server": server, "worker": worker}
    for number in signals:
        for delivery in worker:
            if delivery == "again" and number != signal.SIGKILL:
                continue
            inside = [
                Point(delivery, process, "after statement", n, each.text, each.start, each.end, number)
                for process, of in of_process.items()
                for n, each in _shortened(of[delivery])
            ]
            if delivery == "first":  # SIGTERM that comes before a call may be noted, and mislead it
                inside.insert(0, Point(delivery, "worker", "before call", signal=number))
            if delivery == "first" and number == signal.SIGKILL:
                if not worker[delivery]:
                    inside.append(Point(delivery, "worker", "before ACK", signal=number))
                inside.append(Point(delivery, "worker", "after ACK", signal=number))
            found += inside
    return found


def _shortened(found: Sequence[Statement]) -> list[tuple[int, Statement]]:
    numbered = list(enumerate(found, 1))
    if len(numbered) <= MOST_STATEMENTS:
        return numbered
    return numbered[: MOST_STATEMENTS // 2] + numbered[-MOST_STATEMENTS // 2 :]


def effects(found: Sequence[Statement]) -> dict[int, list[str]]:
    """The names of the points after the first statement that added an inbox row, or changed the total.

    Args:
        found: The statements of a call.

    Returns:
        Names by the number of the statement.
    """
    names: dict[int, list[str]] = {}
    for name, column in ((AFTER_INSERT, 0), (AFTER_UPDATE, 1)):
        for number, each in enumerate(found, 1):
            if each.before and each.after and each.after[column] != each.before[column]:
                names.setdefault(number, []).append(name)
                break
    return names


def commits(states: Sequence[tuple[int, int]], before: tuple[int, int]) -> dict[int, str]:
    """Around the first change that outlived a kill: positions and names.

    Args:
        states: Inbox rows and total after a kill at each point before the ACK, in order.
        before: The same before the delivery.
    """
    for position, state in enumerate(states):
        if state != before:
            return {position - 1: BEFORE_COMMIT, position: AFTER_COMMIT} if position else {0: AFTER_COMMIT}
    return {}
