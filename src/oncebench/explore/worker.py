"""What a worker does, whatever moves it: call the receiver, and say what became of each call."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from typing import Any

from oncebench.explore.gate import Event, Gate, Interrupted, Killed, gate_of_caller
from oncebench.explore.stepping import Stepped, SteppedCursor
from oncebench.messages import Outcome
from oncebench.race.failures import classify
from oncebench.receivers.loader import Receiver
from oncebench.stores import witness
from oncebench.stores.sqlite import Settings

Call = tuple[str, int, int]
"""Id, quantity, number of the call."""


def connect(gate: Gate, receiver: Receiver, path: Any, settings: Settings) -> Any:
    """Open a worker's connection; nothing that happens here is a step."""
    gate.live = False
    gate_of_caller.set(gate)
    db = gate.handed = receiver.connect(path, settings)
    if isinstance(db, witness.Witnessed) and witness.is_present(db):
        db.attribute_changes()
    return db


def is_anothers(gate: Gate, db: Any) -> bool:
    """Whether a worker was given a connection that another worker had opened."""
    return isinstance(db, Stepped) and db.owner is not gate


def deliver(gate: Gate, receiver: Receiver, db: Any, calls: Sequence[Call], live: bool) -> Event:
    """Make these calls, parking at the gate before each statement and between two calls.

    Returns:
        The last one's answer.

    Raises:
        oncebench.explore.gate.Killed: The worker was to die.
    """
    gate.begin(live)
    gate_of_caller.set(gate)
    attributed = isinstance(db, witness.Witnessed)
    for n, (id, qty, call) in enumerate(calls, 1):
        if attributed:
            db.call = call
        gate.last = ""
        outcome, detail = Outcome.APPLIED, ""
        try:
            answered = receiver.receive(db, id, qty)
            if answered is False:
                outcome = Outcome.DUPLICATE
            elif answered is not True:
                outcome, detail = Outcome.ERROR, f"returned {type(answered).__name__}"
        except (Killed, Interrupted):
            raise
        except receiver.conflict:
            outcome = Outcome.CONFLICT
        except BaseException as error:
            outcome, detail = classify(error)
        # With `autocommit=False` the driver begins a transaction as soon as one ends: nobody left that open.
        left_open = _is_open(gate, db) and not gate.last.startswith("BEGIN")
        if left_open and not outcome.is_completion:
            end_transactions(gate, db)  # what a pool does with a connection that comes back so
        event = gate.answer(outcome, detail, left_open, over=n == len(calls))
        if not event.over:
            gate.park(event)
    return event


def _is_open(gate: Gate, db: Any) -> bool:
    """Whether a transaction is: on the connection, or on one that an engine or a wrapper has opened."""
    with contextlib.suppress(sqlite3.ProgrammingError):  # closed
        return any(one.in_transaction for one in _of(gate, db))
    return False


def _of(gate: Gate, db: Any) -> list[Any]:
    return [db] if isinstance(db, sqlite3.Connection) else gate.used_ones()


def end_transactions(gate: Gate, db: Any) -> None:
    """Roll back what a call has left open, without a step."""
    for one in _of(gate, db):
        _roll_back(one)


def end_all(gate: Gate) -> None:
    """End whatever a worker has open that is gone, without a step: nobody reads its cursors to their end."""
    for db in gate.used_ones():
        for cursor in [reader() for reader in list(db.readers)]:
            if cursor is not None:
                SteppedCursor.close(cursor)
        _roll_back(db)


def _roll_back(db: Any) -> None:
    quietly = getattr(db, "quietly", None)
    if quietly is None or not db.holds:
        return
    if db.in_transaction:
        quietly("ROLLBACK")
    if getattr(db, "autocommit", None) is False:
        quietly("BEGIN")
