"""For tests of your own receivers.

`assert_once` explores a receiver and fails with the smallest schedule that breaks it; `assert_schedule`
plays one schedule and is made for hypothesis, whose strategies are in `oncebench.testing.strategies`. With
pytest, the marker `once` and the fixture `once` do the first for you.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oncebench.testing.asserting import assert_once, assert_schedule
    from oncebench.testing.exploration import Exploration, Setting
    from oncebench.testing.exploring import explore

__all__ = ["Exploration", "Setting", "assert_once", "assert_schedule", "explore"]


def __getattr__(name: str) -> object:
    # The pytest plugin lives in this package and is imported by every pytest run: it must not cost numpy.
    if name in ("assert_once", "assert_schedule"):
        from oncebench.testing import asserting

        return getattr(asserting, name)
    if name == "explore":
        from oncebench.testing.exploring import explore

        return explore
    if name in __all__:
        from oncebench.testing import exploration

        return getattr(exploration, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
