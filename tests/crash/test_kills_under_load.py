"""Workers killed at seeded moments of a race and started again: nothing is lost or doubled, or it is seen."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from oncebench.messages import CALL_BITS, BadInput, Outcome
from oncebench.race import Policy, Race, race
from oncebench.race.kills import plan_kills
from oncebench.race.reading import KILLED
from oncebench.receivers.loader import load
from oncebench.results import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Journal, Settings
from oncebench.workload import Workload

WORKERS = 4


def killed(
    target: str, journal: Journal = "wal", kills: int = 12, ids: int = 24, phases: tuple[str, ...] = ()
) -> tuple[Race, RaceResult]:
    """A small race in which workers die."""
    workload = Workload(seed=5, ids=ids, workers=WORKERS, phases=phases or Workload().phases)
    settings = Settings(journal=journal, synchronous="off")
    ended = race(load(target), workload, settings, Policy(deadline=10, kills=kills))
    return ended, of_race(ended)


@pytest.mark.parametrize("journal", ["wal", "delete"])
@pytest.mark.parametrize("name", ["immediate", "upsert", "group"])
def test_right_variants_lose_and_double_nothing(name: str, journal: Journal) -> None:
    """Every planned delivery is begun, what was open is redelivered, and the sums agree."""
    ended, result = killed(name, journal)
    assert result.verdict == "sound", (result.violations, result.because)
    assert 9 <= ended.kills <= 12  # one that is due after its worker's last delivery does not happen
    assert result.kills == ended.kills
    assert ended.notes == []
    assert result.tallies.deliveries == result.tallies.planned
    assert 0 < result.tallies.indeterminate <= 12
    assert set(result.tallies.indeterminates) == {KILLED}
    assert result.drain.redelivered > 0
    assert result.effects.expected == result.effects.observed
    assert result.effects.witnessed == result.effects.ids


@pytest.mark.parametrize(
    ("name", "kind"),
    [("memory", "double_apply"), ("stock_first", "double_apply"), ("id_first", "record_effect_mismatch")],
)
def test_death_shows_what_a_race_of_different_ids_does_not(name: str, kind: str) -> None:
    """No two deliveries of one id meet: nothing is wrong until somebody dies."""
    _, unharmed = killed(name, kills=0, phases=("distinct",))
    assert not unharmed.violations
    _, result = killed(name, kills=30, ids=120, phases=("distinct",))
    assert kind in result.violation_counts


def dying(name: str) -> str:
    return f"{Path(__file__).parent / 'dying.py'}:{name}"


def test_half_of_them_are_asked_to_stop() -> None:
    """What `finally` does then is seen; a handler that lets the call end is right; both go on afterwards."""
    _, unharmed = killed(dying("commits_whatever_happens"), kills=0, phases=("distinct",))
    assert not unharmed.violations
    _, result = killed(dying("commits_whatever_happens"), kills=30, ids=120, phases=("distinct",))
    assert "record_effect_mismatch" in result.violation_counts
    ended, result = killed(dying("Polite"), kills=24, ids=40, phases=("same", "paused"))
    assert result.verdict == "sound", (result.violations, result.because)
    assert result.tallies.deliveries == result.tallies.planned
    assert ended.kills > result.tallies.indeterminate  # some of them came to the end of their call


def test_a_worker_goes_on_where_the_one_before_it_died() -> None:
    """Deliveries and calls of all lives of a worker are numbered through, in the order of its plan."""
    ended, _ = killed("immediate", kills=16)
    history = ended.drained
    rows = len(ended.history)
    warm_up = len(ended.phases[0].deliveries[0])
    for worker in range(WORKERS):
        mine = history.worker[:rows] == worker
        plan = [d for phase in ended.phases for d in phase.deliveries[worker]]
        assert sorted(set(history.delivery[:rows][mine].tolist())) == list(range(warm_up, len(plan)))
        for row in mine.nonzero()[0].tolist():
            operation = history[row]
            assert (operation.id, operation.qty) == (
                plan[operation.delivery].id,
                plan[operation.delivery].qty,
            )
            assert operation.call >> CALL_BITS == worker
    calls = history.call.tolist()
    assert len(set(calls)) == len(calls)


def test_rounds_stay_aligned_after_a_death() -> None:
    """In a gated phase the restarted worker joins the round that the others are waiting in."""
    ended, result = killed("immediate", kills=12, ids=40, phases=("same",))
    history = ended.history
    rounds: dict[str, list[int]] = {}
    for row in range(len(history)):
        rounds.setdefault(history[row].id, []).append(int(history.invoked[row]))
    spans = sorted((min(times), max(times)) for times in rounds.values())
    assert len(spans) == 40
    for (_, last), (first, _) in pairwise(spans):
        assert last < first
    assert result.kills > 0


def test_open_deliveries_are_indeterminate_and_only_those_of_the_dead() -> None:
    """At most one for each kill, never answered, each of a worker that was doomed."""
    ended, _ = killed("immediate", kills=12)
    open_ = [
        op
        for op in map(ended.history.__getitem__, range(len(ended.history)))
        if op.outcome is Outcome.INDETERMINATE
    ]
    assert 0 < len(open_) <= 12
    assert {op.detail for op in open_} == {KILLED}


def test_the_seed_says_who_dies_when() -> None:
    """Same seed, same deaths; another seed, others; never more than there are deliveries."""
    plan = plan_kills(5, 20, [30, 30, 40])
    assert plan == plan_kills(5, 20, [30, 30, 40])
    assert plan != plan_kills(6, 20, [30, 30, 40])
    assert sum(map(len, plan)) == 20
    assert all(deaths == sorted(set(deaths)) for deaths in plan)
    assert all(0 <= n < length for deaths, length in zip(plan, [30, 30, 40], strict=True) for n in deaths)
    assert plan_kills(5, 20, [1, 2]) == [[0], [0, 1]]
    assert plan_kills(5, 0, [10]) == [[]]


def test_number_of_kills_has_bounds() -> None:
    """A sentence that names the value."""
    with pytest.raises(BadInput, match="kills must be 0 to 100000, not -1"):
        Policy(kills=-1)


def test_nothing_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of any life of any worker."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed("immediate", kills=6, ids=10, phases=("spread",))
    assert list(tmp_path.iterdir()) == []


RACE = """
from oncebench.race import Policy, race
from oncebench.receivers.loader import load
from oncebench.stores.sqlite import Settings
from oncebench.workload import Workload

race(load("immediate"), Workload(seed=5, ids=400), Settings(synchronous="off"), Policy(kills=100))
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes through /proc")
def test_killed_coordinator_takes_restarted_workers_with_it(tmp_path: Path) -> None:
    """Kill -9 when the first workers have died and come again: no process, no file."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    coordinator = subprocess.Popen([sys.executable, "-c", RACE], env=environment)
    try:
        eventually(lambda: len(list(tmp_path.glob("oncebench-*/worker-*-1.calls"))) >= 2)
    finally:
        coordinator.kill()
        coordinator.wait()
    eventually(lambda: not started_in(tmp_path))
    eventually(lambda: not list(tmp_path.iterdir()))


STOPS = """
import sys, time
from pathlib import Path
from oncebench import State
from oncebench.race import Policy, race
from oncebench.receivers import immediate
from oncebench.receivers.loader import load
from oncebench.stores import sqlite
from oncebench.workload import Workload

reads = 0

def observe(path):
    global reads
    reads += 1
    if reads == 3:  # after the warm-up twice; now the workers are gone
        print("now", flush=True)
        time.sleep(600)
    return sqlite.read_state(path)

class Stops:
    observe = staticmethod(observe)
    receive = staticmethod(immediate.receive)

if __name__ == "__main__":
    race(load(f"{sys.argv[1]}:Stops"), Workload(ids=4), sqlite.Settings(synchronous="off"), Policy())
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes through /proc")
def test_coordinator_killed_while_no_worker_is_alive(tmp_path: Path) -> None:
    """Kill -9 between the race and the drain: the folder goes all the same, and so does its keeper."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    script = tmp_path / "stops.py"
    script.write_text(STOPS)
    coordinator = subprocess.Popen(
        [sys.executable, str(script), str(script)],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
    )
    try:
        assert coordinator.stdout is not None
        assert coordinator.stdout.readline() == b"now\n"
        assert keepers(temporary)
        eventually(lambda: started_in(temporary) == [str(coordinator.pid)])
    finally:
        coordinator.kill()
        coordinator.communicate()
    eventually(lambda: not list(temporary.iterdir()))
    eventually(lambda: not keepers(temporary))


def keepers(temporary: Path) -> list[str]:
    """Processes that were told to look after a folder in there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if f"{temporary}/oncebench-".encode() in (entry / "cmdline").read_bytes():
                    found.append(entry.name)
    return found


def started_in(temporary: Path) -> list[str]:
    """Processes with that temporary folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if f"TMPDIR={temporary}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(entry.name)
    return found


def eventually(condition: Callable[[], bool], seconds: float = 40) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.02)
