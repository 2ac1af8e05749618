"""What a worker does, whatever moves it: call the receiver, and say what became of each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oncebench.explore.gate import Gate, Killed, gate_of_caller
from oncebench.explore.stepping import Stepped
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
    db = receiver.connect(path, settings)
    if isinstance(db, witness.Witnessed) and witness.is_present(db):
        db.attribute_changes()
    return db


def is_anothers(gate: Gate, db: Any) -> bool:
    """Whether a worker was given a connection that another worker had opened."""
    return isinstance(db, Stepped) and not gate.has_opened(db)


def deliver(gate: Gate, receiver: Receiver, db: Any, calls: Sequence[Call], live: bool) -> None:
    """Make these calls, parking at the gate before each statement and after each call.

    Raises:
        oncebench.explore.gate.Killed: The worker was to die.
    """
    gate.live = live
    gate_of_caller.set(gate)
    attributed = isinstance(db, witness.Witnessed)
    for id, qty, call in calls:
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
        except (Killed, KeyboardInterrupt):
            raise
        except receiver.conflict:
            outcome = Outcome.CONFLICT
        except BaseException as error:
            outcome, detail = classify(error)
        # With `autocommit=False` the driver begins a transaction as soon as one ends: nobody left that open.
        left_open = bool(getattr(db, "in_transaction", False)) and not gate.last.startswith("BEGIN")
        if left_open and not outcome.is_completion:
            roll_back(db)  # what a pool does with a connection that comes back so
        gate.answer(outcome, detail, left_open)


def roll_back(db: Any) -> None:
    """End whatever is open on a connection, without a step."""
    quietly = getattr(db, "quietly", None)
    if quietly is None or not db.holds:
        return
    if db.in_transaction:
        quietly("ROLLBACK")
    if getattr(db, "autocommit", None) is False:
        quietly("BEGIN")
