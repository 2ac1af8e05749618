"""hypothesis strategies: what is delivered to whom, and who moves when.

A schedule is drawn as the set of steps at which a worker is preempted: it shrinks to the fewest of them, as a
list of workers to move would not. Workers and deliveries shrink first, since they are drawn first.
"""

from __future__ import annotations

from hypothesis import strategies as st

from oncebench.explore.plan import Plan
from oncebench.explore.strategies import Choose, with_preemptions
from oncebench.messages import MAX_QTY, Delivery
from oncebench.testing.exploration import JOURNALS, LOCKS, Setting

MOST_STEPS = 40
"""Steps among which preemptions are drawn."""


def deliveries(ids: int = 2, quantities: int = 2) -> st.SearchStrategy[Delivery]:
    """One delivery: few ids and quantities, so that redeliveries and conflicts are common.

    Args:
        ids: How many different ones.
        quantities: How many different ones; with more than two, the largest there is among them.
    """
    amounts = [3, 5, MAX_QTY, *range(7, 4 + quantities)][: max(1, quantities)]
    return st.builds(Delivery, st.sampled_from([f"m{n + 1}" for n in range(ids)]), st.sampled_from(amounts))


def plans(
    workers: int = 3, each: int = 2, ids: int = 2, quantities: int = 2, deaths: int = 0
) -> st.SearchStrategy[Plan]:
    """What is delivered to whom: 1 to `workers` workers with 1 to `each` deliveries.

    Args:
        workers: At the most.
        each: Deliveries for each worker at the most.
        ids: As for `deliveries`.
        quantities: As for `deliveries`.
        deaths: How often a schedule may kill a worker.
    """
    row = st.lists(deliveries(ids, quantities), min_size=1, max_size=each).map(tuple)
    rows = st.lists(row, min_size=1, max_size=workers).map(tuple)
    return rows.map(lambda rows: Plan(rows, deaths))


def schedules(preemptions: int = 3, steps: int = MOST_STEPS) -> st.SearchStrategy[Choose]:
    """Who moves when: every worker to its end, but for some steps.

    Args:
        preemptions: At the most.
        steps: Among which they are drawn.
    """
    points = st.dictionaries(st.integers(1, steps - 1), st.integers(1, 3), max_size=preemptions)
    return st.builds(with_preemptions, points)


def settings_of_locks() -> st.SearchStrategy[Setting]:
    """Journal modes and ways to meet a lock."""
    return st.builds(Setting, st.sampled_from(JOURNALS), st.sampled_from(LOCKS))
