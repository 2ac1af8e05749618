"""Fifteen lines that test somebody's own receiver."""

import pytest
from warehouse import HastyWarehouse, Warehouse

from oncebench.testing import assert_once


def test_an_order_is_booked_once() -> None:
    assert_once(Warehouse())


def test_the_hasty_one_is_found_out() -> None:
    with pytest.raises(AssertionError, match="double_apply"):
        assert_once(HastyWarehouse(), plans=["same"])
