"""What each worker has seen, as one number; and whether what it does next follows from that."""

from __future__ import annotations

from collections.abc import Hashable

from oncebench.explore.clocks import READ, SLEPT

_READ, _SLEPT = repr(READ), f"'{SLEPT}"


class Views:
    """Numbers for things seen, the same for the same, over all schedules of one exploration.

    A receiver whose next step does not follow from what it has seen of the database keeps something
    elsewhere: in the process (a set of ids, a lock), or it is not deterministic (a clock, a random id).
    Then two prefixes that look the same need not have the same futures, and nothing may be skipped.

    Attributes:
        hidden: The first such case in words; empty while there is none.
    """

    def __init__(self) -> None:
        self.hidden = ""
        self._numbers: dict[Hashable, int] = {}
        self._next: dict[int, tuple[str, ...]] = {}
        self._opaque = 0

    def number(self, *things: Hashable) -> int:
        """The number of these things together."""
        return self._numbers.setdefault(things, len(self._numbers))

    def text(self, text: str, time: float | None) -> Hashable:
        """A text that stands for a result; one that shows an address says nothing, and is like no other.

        All sleeps are alike: how long one was, often a random time, tells of nothing but the clock.

        Args:
            text: What was seen.
            time: How far the workers' clock was put forward; None for the system's.
        """
        if text == _READ:
            return text, time
        if text.startswith(_SLEPT):
            return _SLEPT
        if " at 0x" in text:
            self._opaque += 1
            return self._opaque
        return text

    def follows(self, view: int, action: tuple[str, ...]) -> None:
        """A worker with this view did this next."""
        usual = self._next.setdefault(view, action)
        if usual != action and not self.hidden:
            self.hidden = f"after the same answers it went on with {_said(usual)} and with {_said(action)}"


def _said(action: tuple[str, ...]) -> str:
    return " ".join(part for part in action if part and part != "()")
