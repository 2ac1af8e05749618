"""The publisher against servers that answer all kinds of things."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from oncebench.messages import BadInput
from oncebench.wire import log, loopback
from oncebench.wire.log import Log
from oncebench.wire.outbox import Outbox
from oncebench.wire.publisher import GaveUp, Patience, Publisher

from .conftest import Make
from .test_ack import FALSE

QUICK = Patience(timeout=5.0, first=0.001, longest=0.002, give_up=60.0)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Outbox]:
    made = Outbox(tmp_path / "outbox.db")
    yield made
    made.close()


class Script:
    """A server that gives the nth request the nth answer, written out as bytes, then hangs up."""

    def __init__(self, *answers: bytes) -> None:
        self._door = loopback.listen()
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}/deliveries"
        self.ids: list[str] = []
        self._answers = answers
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        for answer in self._answers:
            line, _ = self._door.accept()
            with line:
                heard = b""
                while not heard.endswith(b"}"):
                    heard += line.recv(65536)
                self.ids.append(json.loads(heard.partition(b"\r\n\r\n")[2])["id"])
                line.sendall(answer)

    def end(self) -> None:
        self._thread.join(10)
        self._door.close()


def ok(body: bytes, status: int = 200, media: str = "application/json", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n{more}"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def ack(id: str) -> bytes:
    return ok(json.dumps({"id": id, "accepted": True}).encode())


def test_false_acks_are_sent_again_and_mark_nothing(box: Outbox, tmp_path: Path) -> None:
    """The whole table of false ACKs, one after another, over a real socket; then the true one."""
    box.put("snack-7", 7)
    states: list[str] = []
    false = [ok(answer.body, answer.status, answer.media) for answer in FALSE.values()]
    false = [answer for answer in false if b" 204 " not in answer and b" 304 " not in answer]  # no body there
    script = Script(*false, ack("snack-7"))
    publisher = Publisher(
        box,
        script.url,
        QUICK,
        log=Log(tmp_path / "log", "publisher"),
        at=lambda point: states.append(box.rows()[0].state) if point == "before_mark" else None,
    )
    publisher.run()
    script.end()
    assert states == ["pending"]
    assert box.rows()[0].state == "done"
    events = [line["event"] for line in log.read(tmp_path / "log")]
    assert events == ["sent", "uncertain"] * len(false) + ["sent", "proved", "marked"]


@pytest.mark.parametrize(
    "nothing",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"SMTP ready\r\n\r\n",
        ack("snack-7")[:-3],
        b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
        b"Content-Length: 4\r\nConnection: close\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + b" " * 100_000,
    ],
)
def test_answers_that_are_none(box: Outbox, nothing: bytes) -> None:
    """Cut off, not HTTP, empty, elsewhere, encoded, endless: uncertain, and sent again."""
    box.put("snack-7", 7)
    script = Script(nothing, ack("snack-7"))
    Publisher(box, script.url, QUICK).run()
    script.end()
    assert script.ids == ["snack-7", "snack-7"]
    assert box.rows()[0].state == "done"


def test_resumes_in_order_after_a_failed_batch(box: Outbox) -> None:
    """Nothing overtakes a message that is uncertain."""
    for n in range(4):
        box.put(f"order-{n}", 1)
    busy = ok(b'{"id":"order-1","accepted":false}', 503, more="Retry-After: 1\r\n")
    script = Script(ack("order-0"), busy, b"", ack("order-0"), *(ack(f"order-{n}") for n in (1, 2, 3)))
    Publisher(box, script.url, QUICK).run()
    script.end()
    assert script.ids == ["order-0", "order-1", "order-1", "order-1", "order-1", "order-2", "order-3"]


def test_conflict_is_kept_aside_and_blocks_nothing(box: Outbox) -> None:
    """Marked for a person; the rest goes on."""
    box.put("snack-7", 8)
    box.put("snack-8", 7)
    conflict = ok(b'{"id":"snack-7","accepted":false,"error":"conflict"}', 409)
    script = Script(conflict, ack("snack-8"))
    Publisher(box, script.url, QUICK).run()
    script.end()
    assert [row.state for row in box.rows()] == ["conflict", "done"]


def test_gives_up_when_nothing_is_proven(box: Outbox) -> None:
    """Says what came last, and leaves the outbox as it is."""
    box.put("snack-7", 7)
    with loopback.listen() as door:
        url = f"http://127.0.0.1:{door.getsockname()[1]}/deliveries"
    patience = Patience(timeout=0.2, first=0.001, longest=0.002, give_up=0.01)
    with pytest.raises(GaveUp, match=r"gave up after 0.01 s .*ConnectError"):
        Publisher(box, url, patience).run()
    assert box.rows()[0].state == "pending"


def test_server_that_never_answers(box: Outbox) -> None:
    """The same: its timeout ends each try."""
    box.put("snack-7", 7)
    with loopback.listen() as door:
        url = f"http://127.0.0.1:{door.getsockname()[1]}/deliveries"
        patience = Patience(timeout=0.05, first=0.001, longest=0.002, give_up=0.01)
        with pytest.raises(GaveUp, match="ReadTimeout"):
            Publisher(box, url, patience).run()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.org/deliveries", "example.org is not loopback"),
        ("http://192.168.0.1:80/deliveries", "192.168.0.1 is not loopback"),
        ("http://localhost:80/deliveries", "localhost is not loopback"),
        ("http://127.0.0.1@example.org/", "example.org is not loopback"),
        ("https://127.0.0.1/deliveries", "not plain http"),
        ("127.0.0.1:80", "not plain http"),
        ("", "not plain http"),
        ("http://127.0.0.1:eighty/", "is no address"),
    ],
)
def test_addresses_outside_this_machine(box: Outbox, url: str, why: str) -> None:
    """Refused before anything is sent."""
    with pytest.raises(BadInput, match=why):
        Publisher(box, url, QUICK)


def test_proxy_of_the_environment_is_not_asked(
    box: Outbox, warehouse: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A company's HTTP_PROXY must not see what stays on this machine."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    shop = warehouse()
    box.put("snack-7", 7)
    Publisher(box, shop.url, QUICK).run()
    assert shop.state.total == 7


def test_payload_goes_out_as_it_is_spelled(box: Outbox, warehouse: Make, tmp_path: Path) -> None:
    """And comes back as a duplicate in another spelling, as a conflict with other content."""
    shop = warehouse("structured")
    box.put("snack-7", 7, 1, '{"price": 1.50, "name": "nuts"}')
    box.put("snack-7", 7, 1, '{"name": "nuts", "price": 15e-1}')
    box.put("snack-7", 7, 1, '{"name": "nuts", "price": 1.51}')
    box.put("snack-7", 7, 2, '{"name": "nuts", "price": 1.50}')
    box.put("snack-8", 7, 1, '{"price": 1.50, "name": "nuts"}')
    Publisher(box, shop.url, QUICK, log=Log(tmp_path / "log", "publisher")).run()
    assert [row.state for row in box.rows()] == ["done", "done", "conflict", "conflict", "done"]
    assert shop.state.total == 14
    assert b"snack-8" in (tmp_path / "log").read_bytes()
    assert b"nuts" not in (tmp_path / "log").read_bytes() + shop.log.read_bytes()


def test_hostile_header_for_retry_after(box: Outbox) -> None:
    """Whatever it says, the wait stays below the publisher's own longest."""
    box.put("a", 1)
    odd = ["99999999", "-1", "nan", "inf", "1e9", "Wed, 21 Oct 2099 07:28:00 GMT", "9" * 400]
    answers = [ok(b"", 503, more=f"Retry-After: {value}\r\n") for value in odd]
    script = Script(*answers, ack("a"))
    Publisher(box, script.url, QUICK).run()
    script.end()
    assert script.ids == ["a"] * (len(odd) + 1)
