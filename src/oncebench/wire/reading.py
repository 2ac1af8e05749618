"""From the log of a campaign to operations: the receiver's calls, and what the publisher believes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oncebench.messages import CALL_BITS, NEVER, Operation, Outcome
from oncebench.wire.outbox import Row

PUBLISHER = 0
"""The worker that stands for the publisher in a history; connections of servers count from 1."""


def calls(lines: list[dict[str, Any]]) -> list[Operation]:
    """Each call of the receiver, in order; one without an answer in the log is indeterminate."""
    received = {line["call"]: line for line in lines if line["event"] == "received"}
    answers = {line["call"]: line for line in lines if line["event"] == "answered"}
    operations = [_operation(line, answers.get(call)) for call, line in received.items()]
    return sorted(operations, key=lambda operation: operation.invoked)


def _operation(received: dict[str, Any], answered: dict[str, Any] | None) -> Operation:
    call = received["call"]
    return Operation(
        worker=call >> CALL_BITS,
        id=received["id"],
        qty=received["qty"],
        invoked=received["at"],
        completed=NEVER if answered is None else answered["at"],
        outcome=Outcome.INDETERMINATE if answered is None else Outcome[answered["outcome"].upper()],
        detail="killed" if answered is None else answered["detail"],
        left_open=answered is not None and answered["left_open"],
        delivery=call & ((1 << CALL_BITS) - 1),
        call=call,
    )


def conclusions(outbox: list[Row], lines: list[dict[str, Any]]) -> Iterator[Operation]:
    """What the publisher believes of each row, from its first request to the answer that it believed."""
    sent: dict[int, int] = {}
    proved: dict[int, int] = {}
    for line in lines:
        if line["event"] == "sent":
            sent.setdefault(line["seq"], line["at"])
        elif line["event"] == "proved":
            proved[line["seq"]] = line["at"]
    meaning = {"done": Outcome.DUPLICATE, "conflict": Outcome.CONFLICT, "pending": Outcome.INDETERMINATE}
    for row in outbox:
        yield Operation(
            worker=PUBLISHER,
            id=row.id,
            qty=row.qty,
            invoked=sent.get(row.seq, 0),
            completed=NEVER if row.state == "pending" else proved[row.seq],
            outcome=meaning[row.state],
            detail="never proven" if row.state == "pending" else "",
            delivery=row.seq,
            call=row.seq,
        )
