"""For tests of your own receivers.

`assert_once` explores a receiver and fails with the smallest schedule that breaks it; `assert_schedule`
plays one schedule and is made for hypothesis, whose strategies are in `oncebench.testing.strategies`. With
pytest, the marker `once` and the fixture `once` do the first for you.
"""

from oncebench.testing.asserting import assert_once, assert_schedule
from oncebench.testing.exploring import Exploration, Setting, explore

__all__ = ["Exploration", "Setting", "assert_once", "assert_schedule", "explore"]
