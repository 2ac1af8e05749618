"""The pytest plugin: a fixture `once` and a marker `once`, both explore a receiver.

    def test_it_lands_once(once):
        once(receive)

    @pytest.mark.once(receive, workers=3)
    def test_it_lands_once_with_three(): ...

The marker explores before the test's own body runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from oncebench.testing.exploration import Exploration


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "once(receiver, **options): explore a receiver, options as for oncebench.testing.explore"
    )


@pytest.fixture
def once() -> Callable[..., Exploration]:
    """`oncebench.testing.assert_once`, imported only where it is used."""
    from oncebench.testing import assert_once

    return assert_once


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Explore what the marker names; a failure is the test's."""
    __tracebackhide__ = True
    for mark in item.iter_markers("once"):
        from oncebench.testing import assert_once

        assert_once(*mark.args, **mark.kwargs)
