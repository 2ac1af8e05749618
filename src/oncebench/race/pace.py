"""Open load: each delivery is due at a moment of its own, whatever became of those before it.

The workers take turns: the nth delivery of worker w has place `n * workers + w`, and is due when so many
intervals have passed since the phase began. A worker that was held up hands the next one over at once, and
the latency counts from when it was due: waiting is not left out because nobody had time to call
("coordinated omission", https://www.scylladb.com/2021/04/22/on-coordinated-omission/).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from oncebench.messages import BadInput
from oncebench.workload import Phase, Workload, plan

_AWAKE = 100_000  # nanoseconds before a delivery is due in which its worker waits awake: sleep ends late


def between(rate: float) -> float:
    """Nanoseconds between two places."""
    return 1e9 / rate


def offered(phase: Phase, worker: int, first: int) -> list[float]:
    """When the deliveries of a worker are due, from its nth on, as its job has it; empty without a rate."""
    workers = len(phase.deliveries)
    return [first * workers + worker, workers, between(phase.rate)] if phase.rate else []


def moments(since: int, place: int, step: int, interval: float) -> Iterator[int]:
    """The same as moments of the monotonic clock, in nanoseconds."""
    return (since + int(n * interval) for n in itertools.count(place, step))


def wait_for(moment: int, until: int) -> bool:
    """Wait for a moment of the monotonic clock, in nanoseconds; False if it is after the end."""
    while (left := min(moment, until) - time.perf_counter_ns()) > 0:
        if left > _AWAKE:
            time.sleep((left - _AWAKE) / 1e9)
    return moment <= until


def refuse_slow(workload: Workload, time_limit: float, deadline: float) -> None:
    """Refuse a rate at which the race is cut short, or an idle worker taken for one that hangs.

    Raises:
        BadInput: So it is.
    """
    if not workload.rate:
        return
    deliveries = sum(len(list_) for phase in plan(workload) if phase.rate for list_ in phase.deliveries)
    for what, takes, name, limit in (
        (f"{deliveries:,} deliveries take", deliveries / workload.rate, "time limit", time_limit),
        ("a worker may wait", 2 * workload.workers / workload.rate, "deadline", deadline),
    ):
        if takes > limit:
            raise BadInput(
                f"at {workload.rate:g} deliveries a second {what} {takes:,.3g} s, longer than the {name} of "
                f"{limit:g} s: raise one of them"
            )
