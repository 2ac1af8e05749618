import hashlib
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebench.messages import MAX_QTY, BadInput
from oncebench.workload import EXTREME, MAX_PLAIN_QTY, NEIGHBOURS, PHASES, Phase, Workload, plan

ALL = tuple(name for name in PHASES if name not in EXTREME)
# All fields given: the digest does not follow a change of a default.
SMALL = Workload(seed=7, workers=3, ids=20, redeliveries=2, conflicts=0.25, max_qty=99, phases=ALL)
GOLDEN = "a7d9533f9006875bb1c8c3fd3a5481639fddb404d34b7157bef83890e7d0c734"

workloads = st.builds(
    Workload,
    seed=st.integers(0, 2**63 - 1),
    workers=st.integers(1, 6),
    ids=st.integers(1, 12),
    redeliveries=st.integers(0, 4),
    conflicts=st.floats(0, 1),
    max_qty=st.integers(2, 10**12),
    phases=st.permutations(ALL).map(tuple),
)


def digest(workload: Workload) -> str:
    """Of every delivery of every worker, in order."""
    text = "".join(
        f"{phase.name} {worker} {d.id} {d.qty}\n"
        for phase in plan(workload)
        for worker, deliveries in enumerate(phase.deliveries)
        for d in deliveries
    )
    return hashlib.sha256(text.encode()).hexdigest()


def quantities(phase: Phase) -> dict[str, list[int]]:
    """All quantities that each id comes with."""
    found: dict[str, list[int]] = defaultdict(list)
    for deliveries in phase.deliveries:
        for delivery in deliveries:
            found[delivery.id].append(delivery.qty)
    return found


def test_a_seed_gives_the_same_deliveries_on_every_machine() -> None:
    """As when this was written; change the digest only with a word in the change log."""
    assert digest(SMALL) == GOLDEN


@given(workload=workloads)
def test_the_same_seed_gives_the_same_deliveries(workload: Workload) -> None:
    """Planned twice, from two equal workloads."""
    assert plan(workload) == plan(replace(workload))


def test_another_seed_gives_other_deliveries() -> None:
    """A hundred seeds, a hundred plans."""
    assert len({digest(replace(SMALL, seed=seed)) for seed in range(100)}) == 100


def test_a_phase_is_the_same_whatever_runs_before_it() -> None:
    """Leaving phases out, or another order, changes nothing in those that stay."""
    whole = plan(SMALL)[1:]
    for name in ALL:
        assert plan(replace(SMALL, phases=(name,)))[1:] == [phase for phase in whole if phase.name == name]


@given(workload=workloads)
def test_phases_come_in_order_after_the_warm_up_and_share_no_id(workload: Workload) -> None:
    """Every worker has a list in each, and each id is in those of one name."""
    phases = plan(workload)
    assert list(dict.fromkeys(phase.name for phase in phases)) == ["warm-up", *workload.phases]
    assert all(len(phase.deliveries) == workload.workers for phase in phases)
    ids = Counter(id for _, id in {(phase.name, id) for phase in phases for id in quantities(phase)})
    assert set(ids.values()) == {1}


@given(workload=workloads)
def test_gated_phases_give_each_worker_equally_many(workload: Workload) -> None:
    """A round of `same` has one id, one of `distinct` as many as workers."""
    phases = {phase.name: phase for phase in plan(workload)}
    assert {name for name, phase in phases.items() if phase.gated} == {"same", "distinct", "conflicting"}
    for name in ("same", "distinct", "conflicting"):
        rounds = list(zip(*phases[name].deliveries, strict=True))
        widths = {len({delivery.id for delivery in round}) for round in rounds}
        assert widths == {workload.workers if name == "distinct" else 1}
    assert set(map(len, quantities(phases["distinct"]).values())) == {1}


def test_phases_differ_in_how_they_press() -> None:
    """Gated, paused and impatient, each where the phase's name and lesson say so."""
    pressure = {phase.name: (phase.gated, phase.paused, phase.impatient) for phase in plan(SMALL)}
    assert pressure == {
        "warm-up": (False, False, False),
        "same": (True, False, False),
        "distinct": (True, False, False),
        "spread": (False, False, False),
        "neighbours": (False, False, False),
        "paused": (False, True, False),
        "impatient": (False, True, True),
        "sequence": (False, False, False),
        "conflicting": (True, False, False),
    }


def test_in_a_sequence_one_worker_delivers_alone_and_a_restart_comes_before_the_last_part() -> None:
    """Nobody races; each id comes at once again, after hundreds of others, and in the new process."""
    _, before, after = plan(replace(SMALL, ids=120, phases=("sequence",)))
    assert before.alone and after.alone and after.restarted and not before.restarted
    assert [len(deliveries) > 0 for deliveries in before.deliveries] == [True, False, False]
    ids = [delivery.id for delivery in before.deliveries[0]]
    for id in set(ids):
        places = [n for n, other in enumerate(ids) if other == id]
        assert places[1] == places[0] + 1
        assert len(set(ids[places[0] : places[-1]])) > 300
    assert {d.id for d in after.deliveries[0]} == set(ids)


def test_a_sequence_has_conflicts_in_both_orders_and_one_quantity_under_two_ids() -> None:
    """The first quantity of an id is its own; later ones are smaller for some ids, larger for others."""
    _, before, after = plan(replace(SMALL, phases=("sequence",)))
    own = {delivery.id: delivery.qty for delivery in after.deliveries[0]}
    found = quantities(before)
    assert {id: values[0] for id, values in found.items()} == own
    later = {max(values) > values[0] for values in found.values() if len(set(values)) == 2}
    assert later == {True, False}
    twins = [own[f"sequence-{n}"] == own[f"sequence-{n + 1}"] for n in range(1, 60, 3)]
    assert all(twins)


@given(workload=workloads)
def test_conflicting_rounds_begin_with_either_quantity(workload: Workload) -> None:
    """The workers alternate, and so do the rounds."""
    rounds = list(zip(*plan(replace(workload, phases=("conflicting",)))[1].deliveries, strict=True))
    for n, round in enumerate(rounds):
        assert len({delivery.qty for delivery in round}) == min(2, workload.workers)
        if workload.workers > 1:
            assert (round[0].qty < round[1].qty) == (n % 2 == 1)


@given(workload=workloads)
def test_every_id_is_delivered_as_often_as_asked(workload: Workload) -> None:
    """By each worker once, or once and its redeliveries; shares of the workers differ by one at most."""
    for phase in plan(workload):
        times = set(map(len, quantities(phase).values()))
        if phase.name in ("same", "paused"):
            assert times == {workload.workers}
        if phase.name in ("spread", "neighbours", "impatient"):
            assert times == {1 + workload.redeliveries}
            shares = [len(deliveries) for deliveries in phase.deliveries]
            assert max(shares) - min(shares) <= 1


@given(workload=workloads)
def test_quantities_stay_within_their_bound(workload: Workload) -> None:
    """1 to max_qty, and two of them at most for one id."""
    for phase in plan(workload):
        for found in quantities(phase).values():
            assert 1 <= min(found) <= max(found) <= workload.max_qty
            assert len(set(found)) <= 2


def test_the_usual_quantities_reach_from_one_to_the_bound() -> None:
    """Neither end is left out."""
    phases = plan(replace(SMALL, ids=500, max_qty=MAX_PLAIN_QTY))
    found = {qty for phase in phases for values in quantities(phase).values() for qty in values}
    assert (min(found), max(found)) == (1, MAX_PLAIN_QTY)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("name", ["same", "spread", "paused", "impatient"])
def test_the_share_of_conflicting_ids_is_the_one_asked_for(share: float, name: str) -> None:
    """Within five standard deviations of 2,000 throws; each of them comes with two quantities."""
    ids = {"spread": 500, "paused": 8000}.get(name, 2000)
    phase = plan(replace(SMALL, ids=ids, conflicts=share, phases=(name,)))[1]
    found = quantities(phase)
    assert len(found) == 2000
    conflicting = sum(len(set(values)) == 2 for values in found.values())
    assert abs(conflicting - share * 2000) <= 5 * math.sqrt(2000 * share * (1 - share))


@given(workload=workloads)
def test_all_or_no_ids_conflict_at_the_ends_of_the_share(workload: Workload) -> None:
    """With a share of 1 every id that comes more than once, with 0 none."""
    for share, expected in ((0.0, {1}), (1.0, {2})):
        for phase in plan(replace(workload, conflicts=share)):
            if phase.name in ("sequence", "conflicting"):  # their own shares
                continue
            if phase.name == "neighbours":  # these never conflict: they would hide a key that is too coarse
                assert {len(set(values)) for values in quantities(phase).values()} == {1}
                continue
            several = [values for values in quantities(phase).values() if len(values) > 1]
            assert {len(set(values)) for values in several} <= expected


def test_spread_mixes_workers_and_order() -> None:
    """Copies of one id are not all with one worker, nor in the order of their numbers."""
    [_, phase] = plan(replace(SMALL, phases=("spread",)))
    holders: dict[str, set[int]] = defaultdict(set)
    for worker, deliveries in enumerate(phase.deliveries):
        for delivery in deliveries:
            holders[delivery.id].add(worker)
    assert sum(len(workers) > 1 for workers in holders.values()) > len(holders) / 2
    assert [d.id for d in phase.deliveries[0]] != sorted(d.id for d in phase.deliveries[0])


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("workers", [0, -1, 257]),
        ("ids", [0, -5, 10_000_001]),
        ("redeliveries", [-1, 1001]),
        ("conflicts", [-0.01, 1.01, math.nan, math.inf]),
        ("seed", [-1, 2**63]),
        ("max_qty", [0, 1, MAX_QTY + 1]),
    ],
)
def test_values_out_of_bounds_are_refused_by_name(field: str, values: list[Any]) -> None:
    """The sentence names the field and the value."""
    for value in values:
        with pytest.raises(BadInput, match=rf"^{field}\b.* not {value}$"):
            replace(SMALL, **{field: value})


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("workers", [1, 256]),
        ("ids", [1, 10_000_000]),
        ("redeliveries", [0, 1000]),
        ("conflicts", [0, 1]),
        ("seed", [0, 2**63 - 1]),
        ("max_qty", [2, 10**15]),
    ],
)
def test_values_at_the_bounds_are_taken(field: str, values: list[Any]) -> None:
    """The twins of those above."""
    for value in values:
        assert getattr(replace(SMALL, **{field: value}), field) == value


def test_phases_that_are_not_there_are_refused() -> None:
    """An unknown one, and none at all; both say which there are."""
    for phases, said in ((("same", "sane"), "no workload 'sane'"), ((), "at least one phase")):
        with pytest.raises(BadInput, match=f"{said}.*{', '.join(ALL)}"):
            replace(SMALL, phases=phases)


def test_a_total_that_could_pass_64_bits_is_refused() -> None:
    """By name, with what to do."""
    with pytest.raises(BadInput, match=r"quantities up to \d+ the total could pass .*: lower max-qty or ids"):
        replace(SMALL, max_qty=MAX_QTY)


@given(workload=workloads)
def test_every_delivery_can_be_applied_without_passing_64_bits(workload: Workload) -> None:
    """With the largest quantities that are taken; and those are not a thousand times too small."""
    deliveries = sum(len(list_) for phase in plan(workload) for list_ in phase.deliveries)
    most = max(2**n for n in range(1, 63) if _taken(workload, 2**n))
    assert MAX_QTY / 1000 < deliveries * most <= MAX_QTY


def _taken(workload: Workload, max_qty: int) -> bool:
    try:
        replace(workload, max_qty=max_qty)
    except BadInput:
        return False
    return True


def test_a_part_of_the_workload_runs_once() -> None:
    """Twice the same phase would deliver the same ids again."""
    with pytest.raises(BadInput, match="runs once"):
        Workload(phases=("same", "same"))


def test_neighbours_are_taken_for_each_other_by_every_usual_shortcut() -> None:
    """Each way to make a key coarser merges at least two; all have one quantity, so no conflict tells."""
    [_, phase] = plan(replace(SMALL, phases=("neighbours",)))
    found = quantities(phase)
    assert set(found) == set(NEIGHBOURS)
    assert len({qty for values in found.values() for qty in values}) == 1
    shortcuts: list[Callable[[str], object]] = [
        str.lower,
        str.strip,
        lambda id: unicodedata.normalize("NFC", id),
        lambda id: unicodedata.normalize("NFKD", id).encode("ascii", "ignore"),
        lambda id: id[:255],
        lambda id: id[:9_999],
        lambda id: id.strip(),
        lambda id: float(id) if id.replace(".", "").isdigit() else id,
        lambda id: id.replace("'", ""),
    ]
    for shortcut in shortcuts:
        assert len(set(map(shortcut, found))) < len(found)


def test_extremes_fill_the_total_to_its_last_unit_and_overflow_has_no_room() -> None:
    """The largest quantity is applied, with no warm-up before it; it also comes as one message too many."""
    phases = plan(Workload(workers=1, phases=EXTREME))
    assert [len(list_) for list_ in phases[0].deliveries] == [0]
    assert phases[1].deliveries[0][0].qty == MAX_QTY
    assert set(quantities(phases[1])["extremes"]) == {MAX_QTY, MAX_QTY - 1}
    assert max(quantities(phases[2])["overflow-0"]) == MAX_QTY
    assert all(phase.alone for phase in phases[1:])
    with pytest.raises(BadInput, match="leave the other parts"):
        Workload(phases=("same", "extremes"))


def test_a_sequence_has_the_least_quantity() -> None:
    """As a conflict, and under two ids."""
    of = quantities(plan(Workload(workers=1, phases=("sequence",)))[1])
    assert [1 in of[f"sequence-{n}"] for n in range(3)] == [True] * 3
