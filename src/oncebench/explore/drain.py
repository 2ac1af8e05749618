"""After the last move of a schedule: what was not answered is delivered again, alone, until it is."""

from __future__ import annotations

import gc
from collections.abc import Sequence

from oncebench.explore.clock import JUMP
from oncebench.explore.crew import Crew
from oncebench.explore.gate import GO
from oncebench.explore.plan import Plan
from oncebench.explore.run import Unexplorable
from oncebench.explore.site import Site
from oncebench.messages import CALL_BITS, BadInput, Operation, Outcome

MOST_TRIES = 3
"""Redeliveries of a message before it counts as stuck."""


def drain(
    crew: Crew, site: Site, plan: Plan, operations: Sequence[Operation], now: int, schedule: Sequence[str]
) -> tuple[tuple[Operation, ...], tuple[int, ...]]:
    """Deliver again what was not answered.

    Args:
        crew: Its first worker does it.
        site: The store.
        plan: What was delivered.
        operations: What became of it.
        now: The time of the first redelivery.
        schedule: What was played.

    Returns:
        All operations, and which of them were redeliveries in vain.

    Raises:
        Unexplorable: A redelivery did not come back.
        BadInput: The receiver does what cannot be explored.
    """
    drained, stuck = list(operations), []
    last = {(operation.worker, operation.delivery): operation for operation in operations}
    unanswered = dict.fromkeys((op.id, op.qty) for op in last.values() if not op.outcome.is_completion)
    publisher = plan.workers
    for nth, (id, qty) in enumerate(unanswered):
        for attempt in range(MOST_TRIES):
            call = publisher << CALL_BITS | nth * MOST_TRIES + attempt
            if crew.clock is not None:  # a claim on it may have to end first
                crew.clock.offset += JUMP
            if attempt == MOST_TRIES - 1 and drained[-1].outcome is Outcome.LOCKED:
                _leave_alone(crew, site)
            crew.begin(0, [(id + site.token, qty, call)], live=False)
            event = crew.resume(0, GO)
            if event.kind == "asleep":
                event = crew.look_again(0, crew.patience) or event
            if event.kind == "refused":
                raise BadInput(f"{site.receiver.name} cannot be explored: {event.what}")
            if event.kind != "answer":
                where = f": it is at {event.what}" if event.kind in ("asleep", "overdue") else ""
                raise Unexplorable(
                    f"{id}, redelivered alone after all else, did not come back in time{where}",
                    "".join(schedule),
                )
            outcome = Outcome(event.outcome)
            drained.append(
                Operation(publisher, id, qty, now, now + 1, outcome, event.what, event.left_open, nth, call)
            )
            now += 2
            crew.settle()
            if outcome.is_completion:
                break
        else:
            stuck.append(len(drained) - 1)
    site.come_back()
    return tuple(drained), tuple(stuck)


def _leave_alone(crew: Crew, site: Site) -> None:
    """Close all connections: even an idle one is in the way of who wants the whole file to itself."""
    crew.disconnect()
    site.step_aside()
    gc.collect(1)  # SQLite closes a file when its last cursor is gone, and an exception may keep one
