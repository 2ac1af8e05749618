"""Several consumers of one message: each must get it, and each of them once."""

from pathlib import Path

import pytest

from oncebench.crash.campaign import crash
from oncebench.messages import BadInput
from oncebench.race import Policy, race
from oncebench.receivers.loader import load, receiver
from oncebench.results.crashed import of_crashes
from oncebench.results.schema import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Settings
from oncebench.testing import exploring
from oncebench.workload import Workload

OFF = Settings(synchronous="off")


def named(name: str) -> str:
    return f"{Path(__file__).parent / 'consumers.py'}:{name}"


def raced(name: str, *phases: str, workers: int = 4) -> RaceResult:
    workload = Workload(seed=3, ids=24, workers=workers, phases=phases)
    return of_race(race(load(named(name)), workload, OFF, Policy(deadline=10)))


@pytest.mark.parametrize("name", ["Apart", "Plain"])
def test_consumers_with_entries_of_their_own_are_sound(name: str) -> None:
    """In a race, one after the other, explored and killed; both consumers' ids are counted."""
    result = raced(name, "same", "paused", "spread", "sequence")
    assert result.verdict == "sound", (result.violations, result.because)
    assert result.effects.ids == result.ids == 2 * (24 + 24 // 4 + 4 * 24 + 3 * 24)
    found = exploring.explore(named(name))
    assert found.verdict == "sound", (found.failures, found.because)
    plans = {str(part.plan) for part in found.parts}
    assert {"m1@stock:3/m1@stock:3", "m1@stock:3/m1@mail:3"} <= plans
    killed = of_crashes(name, "sound", [crash(load(named(name)), OFF)])
    assert killed.verdict == "sound", killed.violations


def test_an_inbox_that_consumers_share_is_broken() -> None:
    """Without a race already: the second consumer's message is acknowledged and lost."""
    result = raced("Shared", "sequence", workers=1)
    assert result.verdict == "broken"
    lost = [proof for proof in result.violations if proof.kind == "acked_but_lost"]
    assert {proof.id.rpartition("@")[2] for proof in lost} == {"mail"}
    assert raced("Shared", "same").violation_counts["acked_but_lost"] > 0
    kinds = exploring.explore(named("Shared")).failures
    assert "acked_but_lost" in kinds


@pytest.mark.parametrize("consumers", ["stock", ("a", "a"), ("a@b",), ("",), (1,)])
def test_consumers_must_be_names(consumers: object) -> None:
    """One sentence that says so."""

    class Wrong:
        def receive(self, db: object, id: str, qty: int, consumer: str) -> bool:
            return True

    Wrong.consumers = consumers  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match="must be different names without @"):
        receiver(Wrong, "mine")


def test_a_receiver_with_consumers_takes_four_parameters() -> None:
    """And one without takes three."""

    class Three:
        consumers = ("a", "b")

        def receive(self, db: object, id: str, qty: int) -> bool:
            return True

    with pytest.raises(BadInput, match=r"receive\(db, id, qty, consumer\).*these four parameters"):
        receiver(Three, "mine")
