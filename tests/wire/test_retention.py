"""Stores that forget: `pruned` works again at the edge of its window, `low_water` refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oncebench.audit import Kind, Verdict, audit
from oncebench.messages import BadInput, Conflict
from oncebench.receivers.loader import load
from oncebench.receivers.low_water import TooOld
from oncebench.receivers.retention import set_window
from oncebench.stores.sqlite import Settings, read_state
from oncebench.wire.campaign import Setting
from oncebench.wire.retention import in_process, lags, over_http

KEEP = 4


class Store:
    """One receiver with a window of `KEEP`."""

    def __init__(self, name: str, folder: Path) -> None:
        self._receiver = load(name)
        self._path = folder / f"{name}.db"
        self._receiver.setup(self._path, Settings(), watched=True)
        set_window(self._path, KEEP)
        self._db: Any = self._receiver.connect(self._path, Settings())

    def receive(self, id: str, qty: int = 1) -> object:
        return self._receiver.receive(self._db, id, qty)

    def again(self) -> None:
        """As a process that was killed and started again."""
        self._db.close()
        self._db = self._receiver.connect(self._path, Settings())

    @property
    def total(self) -> int:
        return read_state(self._path).total

    @property
    def kept(self) -> set[str]:
        """What is really in the inbox."""
        return {id for id, _ in read_state(self._path).inbox}

    @property
    def known(self) -> set[str]:
        """What the bench takes for done."""
        return {id for id, _ in self._receiver.observe(self._path).inbox}

    def close(self) -> None:
        self._db.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Callable[[str], Store]]:
    made: list[Store] = []

    def make(name: str) -> Store:
        made.append(Store(name, tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("name", ["pruned", "low_water"])
def test_keeps_the_window_and_no_more(store: Callable[[str], Store], name: str) -> None:
    """Inside it all is as ever; what is forgotten still counts as done."""
    shop = store(name)
    for n in range(10):
        assert shop.receive(f"order-{n}") is True
    assert shop.kept == {f"order-{n}" for n in range(6, 10)}
    assert shop.known == {f"order-{n}" for n in range(10)}
    assert shop.receive("order-6") is False
    with pytest.raises(Conflict):
        shop.receive("order-6", 2)
    assert shop.total == 10


def test_pruned_works_again(store: Callable[[str], Store]) -> None:
    """The fault that it is known for."""
    shop = store("pruned")
    for n in range(5):
        shop.receive(f"order-{n}")
    assert shop.receive("order-0") is True
    assert shop.total == 6


def test_low_water_refuses(store: Callable[[str], Store]) -> None:
    """Below the mark nothing is applied, known or not, not even after a restart."""
    shop = store("low_water")
    for n in range(0, 20, 2):
        shop.receive(f"order-{n}")
    shop.again()
    for n in (0, 1, 13, 14):  # the even ones were done, the odd ones never came
        with pytest.raises(TooOld):
            shop.receive(f"order-{n}")
    assert shop.total == 10
    assert shop.receive("order-15") is True  # late, but above the mark
    assert shop.receive("order-15") is False


def test_streams_do_not_push_each_other_out(store: Callable[[str], Store]) -> None:
    """Each stem has a mark of its own; an id without a number is never forgotten."""
    shop = store("low_water")
    assert shop.receive("rare-1") is True
    assert shop.receive("no number") is True
    for n in range(50):
        shop.receive(f"order-{n}")
    assert shop.receive("rare-1") is False
    assert shop.receive("no number") is False
    assert shop.kept == {"rare-1", "no number", *(f"order-{n}" for n in range(46, 50))}


@pytest.mark.parametrize("id", ["a-007", "a-9999999999999999999", "-3", "a--3", "a-٣", "a-3\n"])
def test_odd_numbers(store: Callable[[str], Store], id: str) -> None:
    """Leading zeros, too many digits, no stem, other digits: applied once like any other."""
    shop = store("low_water")
    assert shop.receive(id) is True
    assert shop.receive(id) is False
    assert shop.total == 1


@pytest.mark.parametrize(("name", "verdict"), [("pruned", Verdict.BROKEN), ("low_water", Verdict.SOUND)])
def test_measured_over_http_and_in_process(name: str, verdict: Verdict) -> None:
    """The same answers both ways, judged by the audit."""
    receiver, setting = load(name), Setting()
    ran, rate, late = over_http(receiver, KEEP, setting)
    near = in_process(receiver, KEEP, setting)
    assert [one.lag for one in late] == [one.lag for one in near] == lags(KEEP)
    beyond = {"pruned": ("200", "True"), "low_water": ("500", "TooOld")}[name]
    for wire, plain in zip(late, near, strict=True):
        inside = wire.lag < KEEP
        assert (wire.answer, plain.answer) == (("200", "False") if inside else beyond)
        assert plain.effects == (1 if inside or name == "low_water" else 2)
    assert rate > 0
    assert ran.before is not None
    assert ran.after is not None
    findings = audit(ran.history, ran.before, ran.after)
    assert findings.verdict is verdict
    assert (Kind.DOUBLE_APPLY in findings.ids) is (verdict is Verdict.BROKEN)


@pytest.mark.parametrize("keep", [0, -1, 100_001])
def test_windows_out_of_bounds(keep: int) -> None:
    """Named with their bounds, before anything is made."""
    with pytest.raises(BadInput, match="retain must be 1 to 100000"):
        over_http(load("pruned"), keep, Setting())
    with pytest.raises(BadInput, match="retain must be 1 to 100000"):
        in_process(load("pruned"), keep, Setting())
