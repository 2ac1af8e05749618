"""Words and figures as a person can read them, on a terminal and on a page."""

from __future__ import annotations

from oncebench.results.schema import Op

COLOURS = {"sound": "green", "broken": "red", "unknown": "yellow"}
"""Of verdicts, on a terminal."""
MEANS = {
    "sound": "nothing wrong in what was tried; it does not mean correct",
    "broken": "there is a proof",
    "unknown": "nothing wrong was seen, but too little was seen to say more",
}
"""What each verdict says."""
_LONGEST = 40
_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3))


def printable(text: str) -> str:
    """Without signs that move a terminal's cursor, change its colours, turn the direction or hide."""
    return text if text.isprintable() else "".join(s if s.isprintable() else repr(s)[1:-1] for s in text)


def short(id: str) -> str:
    """Signs and spaces that hide are shown, the middle of a long text is left out."""
    text = id if id.isprintable() and id == id.strip() else repr(id)
    return text if len(text) <= _LONGEST else f"{text[:20]}...{text[-10:]} ({counted(len(id), 'character')})"


def answer(op: Op) -> str:
    """What was delivered and what came of it."""
    said = {"applied": "True", "duplicate": "False", "conflict": "Conflict"}.get(
        op.outcome, op.detail or op.outcome
    )
    return f"{op.qty} → {said}{', transaction left open' if op.left_open else ''}"


def as_declared(verdict: str, declared: str) -> str:
    """What stands behind a verdict: whether it is the declared one."""
    return " as declared" if verdict == declared else f", declared {declared}"


def counted(count: int, word: str) -> str:
    """`1 id`, `2 ids`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def duration(nanoseconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in _UNITS:
        if nanoseconds >= size:
            return (
                f"{nanoseconds / size:.3g} {unit}"
                if nanoseconds < 1000 * size
                else f"{nanoseconds / size:,.0f} {unit}"
            )
    return f"{nanoseconds:.0f} ns" if nanoseconds else "0"
