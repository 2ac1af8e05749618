"""Wrong: a wrapper calls the receiver again after any refusal, and the receiver cannot bear it.

Here the work is committed and the id refused; the second try finds no id, and works again.
Repair: a receiver that is right, as in `retry_whole`; the same wrapper then harms nobody.
"""

import functools
import sqlite3
from collections.abc import Callable

from oncebench.receivers import stock_first

TRIES = 3


def patient(receive: Callable[..., bool]) -> Callable[..., bool]:
    """Call it again while it is refused."""

    @functools.wraps(receive)
    def patiently(db: sqlite3.Connection, id: str, qty: int) -> bool:
        for tries_left in reversed(range(TRIES)):
            try:
                return receive(db, id, qty)
            except sqlite3.OperationalError:
                if not tries_left:
                    raise
        raise AssertionError

    return patiently


@patient
def receive(db: sqlite3.Connection, id: str, qty: int) -> bool:
    """Apply `(id, qty)`, but not always once."""
    return stock_first.receive(db, id, qty)
