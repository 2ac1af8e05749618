"""An old and a new version on one store: `old+new`."""

from pathlib import Path

import pytest

from oncebench.cli import main
from oncebench.crash.campaign import crash
from oncebench.messages import BadInput
from oncebench.race import Policy, race
from oncebench.receivers.loader import load
from oncebench.results.crashed import of_crashes
from oncebench.results.schema import RaceResult
from oncebench.results.summary import of_race
from oncebench.stores.sqlite import Settings
from oncebench.testing import exploring
from oncebench.workload import Workload

OFF = Settings(synchronous="off")
POLICY = Policy(deadline=10, kills=4)


def named(name: str) -> str:
    return f"{Path(__file__).parent / 'versions.py'}:{name}"


def raced(target: str, *phases: str, workers: int = 4) -> RaceResult:
    workload = Workload(seed=3, ids=24, workers=workers, phases=phases)
    return of_race(race(load(target), workload, OFF, POLICY))


@pytest.mark.parametrize("target", [f"{named('Old')}+{named('Patched')}", "immediate+upsert"])
def test_versions_that_agree_on_the_key_are_sound(target: str) -> None:
    """Raced with kills, one after the other, and killed under the old one."""
    result = raced(target, "same", "spread", "sequence")
    assert result.verdict == "sound", (result.violations, result.because)
    killed = of_crashes(target, "sound", [crash(load(target), OFF)])
    assert killed.verdict == "sound", killed.violations


def test_a_version_with_another_key_applies_again_what_the_old_one_did() -> None:
    """Each alone is sound; together they are broken in a race, after a restart, and after a kill."""
    target = f"{named('Old')}+{named('Rekeyed')}"
    for name in ("Old", "Rekeyed"):
        assert raced(named(name), "same", "paused", "sequence").verdict == "sound"
    assert "double_apply" in raced(target, "same").violation_counts
    assert "double_apply" in raced(target, "sequence", workers=1).violation_counts
    assert "double_apply" in {
        v.kind for v in of_crashes(target, "sound", [crash(load(target), OFF)]).violations
    }


def test_versions_take_turns() -> None:
    """By worker, and at each restart."""
    receiver = load("immediate+upsert")
    assert [receiver.version(n) for n in range(3)] == ["immediate", "upsert", "immediate"]
    assert load("immediate").version(1) == "immediate"
    assert (receiver.name, receiver.expected) == ("immediate+upsert", "sound")
    assert load("immediate+naive").expected == "broken"


def test_a_plus_in_a_path_is_a_plus(tmp_path: Path) -> None:
    """Only what stands between two targets makes a mixture."""
    (tmp_path / "a+b.py").write_text("def receive(db, id, qty):\n    return True\n")
    target = f"{tmp_path / 'a+b.py'}:receive"
    assert load(target).mixed == ()
    assert load(f"{target}+immediate").mixed == (target, "immediate")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("immediate+upsert+naive", "more than two versions"),
        ("immediate+group", "cannot be mixed"),
        (f"immediate+{named('Old')}", "only one of them brings a schema"),
        ("immediate+upserd", "there is no variant"),
    ],
)
def test_versions_that_cannot_share_a_store_are_refused(target: str, sentence: str) -> None:
    """One sentence."""
    with pytest.raises(BadInput, match=sentence):
        load(target)


def test_exploring_says_that_it_steps_one_version() -> None:
    """Unknown, with the reason."""
    found = exploring.explore("immediate+upsert")
    assert found.verdict == "unknown"
    assert found.because == ["two versions share the store, and explore steps one"]


def test_a_warehouse_has_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before anything is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["oncebench", "wire", "immediate+upsert"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert not list(tmp_path.iterdir())
