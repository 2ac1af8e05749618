"""One schedule on the terminal: a column for each worker, and what everybody else could see meanwhile."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from oncebench.explore.plan import letter
from oncebench.explore.run import PASSES, Run, Step
from oncebench.explore.site import Reading

if TYPE_CHECKING:
    from rich.text import Text

WIDTH = 80
_NARROWEST = 14  # columns for one worker; with more than five workers the lines get longer than WIDTH
_MARGIN = 4
_COLOURS = {
    **dict.fromkeys(("refused", "timed out"), "red"),
    **dict.fromkeys(("waits", "asleep", PASSES), "yellow"),
    "killed": "bold red",
    "ok": "",
}
_ANSWERS = {"applied": "True", "duplicate": "False", "conflict": "Conflict"}


def timeline(run: Run, width: int = WIDTH) -> Text:
    """The steps of a run that was recorded.

    Args:
        run: Played with `recording`.
        width: Columns of the terminal.
    """
    from rich.text import Text

    workers = run.plan.workers
    column = max(_NARROWEST, (width - _MARGIN) // workers)
    text = Text(no_wrap=True)
    heads = [f"{letter(n)}: {_deliveries(run, n)}" for n in range(workers)]
    _append(
        text, "", [[(line, "bold") for line in textwrap.wrap(head, column - 2)] for head in heads], column
    )
    seen: Reading | None = None
    for at, step in enumerate(run.steps, 1):
        cells: list[list[tuple[str, str]]] = [[] for _ in range(workers)]
        cells[max(0, ord(step.move[0]) - ord("A"))] = list(_cell(step, column - 2))
        _append(text, f"{at:>2}", cells, column)
        reading = step.reading
        if reading is None:
            text.append(f"{'':{_MARGIN}}nobody can read now: a commit is pending\n", style="dim")
        elif seen is None or (reading.total, reading.inbox) != (seen.total, seen.inbox):
            text.append(f"{'':{_MARGIN}}{_state(reading)}\n", style="cyan")
        seen = reading if reading is not None else seen
    text.append(f"{'':{_MARGIN}}at the end: {_state(run.after)}", style="bold cyan")
    redelivered = run.drained[len(run.operations) :]
    if redelivered:
        answers = ", ".join(f"{op.id} {_answer(op.outcome.name.lower(), op.detail)}" for op in redelivered)
        text.append(f"\n{'':{_MARGIN}}redelivered, since not answered: {answers}", style="dim")
    return text


def result_of(step: Step) -> str:
    """What came of a step, in a few words."""
    if step.status in ("killed", PASSES):
        return step.status
    seen = [text for text in step.seen if text not in ("()", "'ok'", "-1")]
    code = next((text.strip("'") for text in step.seen if "SQLITE_" in text), "")
    if step.status == "waits":
        return f"waits ({code})"
    if step.status == "asleep":
        return f"waits outside SQLite at {', '.join(step.seen)}"
    if step.status in ("refused", "timed out"):
        return f"{step.status}: {code}"
    if not seen:
        return "ok"
    if all(text.isdigit() for text in seen) and step.statement:
        return f"{seen[0]} {'row' if seen[0] == '1' else 'rows'}"
    return ", ".join(seen)


def _deliveries(run: Run, worker: int) -> str:
    return ", ".join(f"({d.id}, {d.qty})" for d in run.plan.deliveries[worker]) or "nothing"


def _cell(step: Step, width: int) -> Iterator[tuple[str, str]]:
    colour = _COLOURS[step.status]
    if step.status in ("killed", PASSES):
        yield step.status, colour
        return
    statement = " ".join(step.statement.split())
    if step.parameters not in ("", "()"):
        statement += f" {step.parameters}"
    for line in textwrap.wrap(statement, width):
        yield line, ""
    result = result_of(step)
    if step.lock:
        result += " · has the write lock" if step.lock == "write" else " · transaction open"
    for line in textwrap.wrap(result, width, initial_indent="→ ", subsequent_indent="  "):
        yield line, colour or "dim"
    if step.answer:
        style = "bold green" if step.answer in _ANSWERS else "bold red"
        for line in textwrap.wrap(
            _answer(step.answer, ""), width, initial_indent="⇒ ", subsequent_indent="  "
        ):
            yield line, style


def _answer(answer: str, detail: str) -> str:
    return _ANSWERS.get(answer, detail or answer)


def _state(reading: Reading) -> str:
    inbox = ", ".join(f"{id}: {qty}" for id, qty in reading.inbox) or "empty"
    return f"inbox {inbox} · total {reading.total}"


def _append(text: Text, margin: str, cells: list[list[tuple[str, str]]], column: int) -> None:
    for nth, lines in enumerate(zip_longest(*cells, fillvalue=("", ""))):
        text.append(f"{margin if nth == 0 else '':<{_MARGIN}}", style="dim")
        last = max((n for n, (line, _) in enumerate(lines) if line), default=0)
        for n, (line, style) in enumerate(lines[: last + 1]):
            text.append(line if n == last else f"{line:<{column}}", style=style)
        text.append("\n")
