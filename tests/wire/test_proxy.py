"""Each fault of the proxy by itself: what the client sees, and what reached the warehouse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from oncebench.wire import log, loopback, proxy
from oncebench.wire.process import Processes
from oncebench.wire.publisher import Answer, proves

from .conftest import Make, Warehouse

LATE = 0.4


class Way:
    """A warehouse behind a proxy process."""

    def __init__(self, shop: Warehouse, processes: Processes, faults: list[str], events: Path) -> None:
        self.shop = shop
        self._processes = processes
        self._door = loopback.listen()
        self._events = events
        job = {"door": self._door.fileno(), "server": ["127.0.0.1", shop.port], "faults": faults}
        self.child = processes.start(
            "proxy", "proxy", job | {"late": LATE, "log": str(events)}, self._door.fileno()
        )
        while not self.child.ready:
            processes.hear(0.1)
        self._url = f"http://127.0.0.1:{self._door.getsockname()[1]}/deliveries"

    def send(self, id: str, qty: int = 7) -> Answer | None:
        """One request; None if no answer came."""
        try:
            with httpx.Client(trust_env=False, timeout=LATE / 2) as client:
                answer = client.post(self._url, json={"id": id, "qty": qty})
        except httpx.RequestError:
            return None
        return Answer(answer.status_code, answer.headers.get("content-type", ""), answer.content)

    def finish(self) -> None:
        """Until everything late has arrived."""
        self.child.say(finish=True)
        while not self.child.ended:
            self._processes.hear(0.1)
        self._door.close()

    def calls(self) -> list[str]:
        """Ids of the receiver's calls, in order."""
        return [line["id"] for line in log.read(self.shop.log) if line["event"] == "received"]

    def faults(self) -> list[str]:
        """What each request met, as the proxy wrote it down."""
        return [line["fault"] for line in log.read(self._events) if line["event"] == "request"]


@pytest.fixture
def way(warehouse: Make, tmp_path: Path) -> Iterator[Callable[..., Way]]:
    folder = tmp_path / "proxy"
    folder.mkdir()
    with Processes(folder) as processes:

        def make(*faults: str, **job: Any) -> Way:
            return Way(warehouse(**job), processes, list(faults), folder / "events.jsonl")

        yield make


def proven(answer: Answer | None, id: str) -> bool:
    return answer is not None and proves(answer, id)


def test_all_is_well_behind_the_end_of_the_plan(way: Callable[..., Way]) -> None:
    """Silent where nothing is planned: the server's own answers, one call each."""
    line = way()
    assert proven(line.send("a"), "a")
    conflict = line.send("a", 8)
    assert conflict is not None
    assert conflict.status == 409
    line.finish()
    assert (line.calls(), line.shop.state.total) == (["a", "a"], 7)
    assert line.faults() == ["well", "well"]


@pytest.mark.parametrize(
    ("fault", "answered", "calls"),
    [
        ("refuse", False, 0),
        ("cut_request", False, 0),
        ("cut_before_answer", False, 1),
        ("cut_in_answer", False, 1),
        ("delay_request", False, 1),
        ("delay_answer", False, 1),
        ("duplicate", True, 2),
        ("swap", False, 1),
        ("invent", True, 0),
    ],
)
def test_fault(way: Callable[..., Way], fault: str, answered: bool, calls: int) -> None:
    """What is sent again afterwards is proven, with one effect, whatever happened to the first."""
    line = way(fault)
    first = line.send("a")
    assert (first is not None) == answered
    assert proven(first, "a") == (fault == "duplicate")
    if fault == "swap":  # the second request gets the answer to the first, which is the same order's
        calls += 1
        assert proven(line.send("a"), "a")
    line.finish()
    assert line.calls() == ["a"] * calls
    assert line.faults()[0] == fault
    assert line.shop.state.total == (7 if calls else 0)


def test_swap_exchanges_the_answers_of_two_orders(way: Callable[..., Way]) -> None:
    """B gets a's ACK, c gets b's: true answers, of other orders."""
    line = way("well", "swap")
    assert proven(line.send("a"), "a")
    for id, other in (("b", "a"), ("c", "b")):
        answer = line.send(id)
        assert proven(answer, other)
        assert not proven(answer, id)
    assert proven(line.send("c"), "c")
    line.finish()
    assert line.shop.state.total == 21


def test_duplicates_meet_in_the_receiver(way: Callable[..., Way]) -> None:
    """The two are under way at the same time, else they would show nothing of a race."""
    line = way(*["duplicate"] * 5, pause=0.01)
    for n in range(5):
        line.send(f"order-{n}")
    line.finish()
    spans: dict[int, list[int]] = {}
    for event in log.read(line.shop.log):
        if event["event"] in ("received", "answered"):
            spans.setdefault(event["call"], []).append(event["at"])
    calls = sorted(spans.values())
    assert len(calls) == 10
    overlapped = sum(second[0] < first[1] for first, second in zip(calls[::2], calls[1::2], strict=True))
    assert overlapped >= 3


def test_inventions_prove_nothing_and_a_forgery_does(way: Callable[..., Way]) -> None:
    """All kinds of them are 200; only the forgery, which is never drawn, looks true."""
    kinds = len(proxy._INVENTED)
    line = way(*["invent"] * kinds, "forge")
    answers = [line.send("a") for _ in range(kinds)]
    assert all(answer is not None and answer.status == 200 for answer in answers)
    assert len({answer.body for answer in answers if answer is not None}) == kinds
    assert not any(proven(answer, "a") for answer in answers)
    assert proven(line.send("a"), "a")
    line.finish()
    assert line.calls() == []
    assert "forge" not in proxy.FAULTS


def test_server_that_is_down_is_waited_for(way: Callable[..., Way]) -> None:
    """A request that comes while no server runs is answered by the next one."""
    line = way(kill=("before_receiver", 1))
    assert line.send("a") is None
    line.shop.start()
    assert proven(line.send("a"), "a")
    line.finish()
    assert line.shop.state.total == 7
