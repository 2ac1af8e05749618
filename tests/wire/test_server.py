"""The warehouse over HTTP: what it answers, and that nothing but a message changes the store."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from oncebench.messages import BadInput, Outcome
from oncebench.wire import log, loopback, server
from oncebench.wire.message import MAX_BODY, Message
from oncebench.wire.warehouse import Answer

from .conftest import Make, Warehouse
from .test_message import NO_MESSAGES

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=10) as client:
        yield client


def post(client: httpx.Client, warehouse: Warehouse, id: str, qty: int) -> tuple[int, Any]:
    response = client.post(warehouse.url, json={"id": id, "qty": qty})
    return response.status_code, response.json()


def test_answers_of_the_lesson(warehouse: Make, client: httpx.Client) -> None:
    """New, again, another quantity, another order: True and False are told alike."""
    shop = warehouse()
    assert post(client, shop, "snack-7", 7) == (200, {"id": "snack-7", "accepted": True})
    assert post(client, shop, "snack-7", 7) == (200, {"id": "snack-7", "accepted": True})
    refused = {"id": "snack-7", "accepted": False, "error": "conflict"}
    assert post(client, shop, "snack-7", 8) == (409, refused)
    assert post(client, shop, "snack-8", 7) == (200, {"id": "snack-8", "accepted": True})
    assert shop.state.total == 14
    assert list(shop.state.inbox) == [("snack-7", 7), ("snack-8", 7)]


def test_what_is_no_message_changes_nothing(warehouse: Make, client: httpx.Client) -> None:
    """Every body of the table is answered 400, no receiver is called, and the store stays as it was."""
    shop = warehouse()
    post(client, shop, "before", 1)
    for body in NO_MESSAGES:
        response = client.post(shop.url, content=body, headers=JSON)
        assert response.status_code == 400, body[:60]
        assert response.json()["accepted"] is False
    # a payload is well formed, but `immediate` takes none
    response = client.post(
        shop.url, content=b'{"id":"a","qty":1,"schema":1,"payload":{"x":"secret"}}', headers=JSON
    )
    assert (response.status_code, response.json()["error"]) == (400, "this receiver takes no payload")
    assert (shop.state.total, list(shop.state.inbox)) == (1, [("before", 1)])
    assert [line["event"] for line in log.read(shop.log)] == ["received", "answered"]
    assert post(client, shop, "after", 1)[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "application/jsonp"}, 415),
        ({"Content-Type": "application/json; charset=latin-1"}, 415),
        ({"Content-Type": "application/json; charset=utf-16"}, 415),
        ({"Content-Type": "application/json, text/html"}, 415),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
        ({"Content-Type": "application/json"}, 200),
        ({"Content-Type": "Application/JSON; Charset=UTF-8"}, 200),
        ({"Content-Type": 'application/json;charset="utf-8"'}, 200),
    ],
)
def test_media_types(headers: dict[str, str], status: int) -> None:
    """JSON in UTF-8 and nothing else; a body that could be read so is not enough."""
    calls = []

    async def receive(message: Message) -> Answer:
        calls.append(message)
        return Answer(Outcome.APPLIED)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(server.application(receive))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post(loopback.PATH, content=b'{"id":"a","qty":1}', headers=headers)

    assert asyncio.run(ask()).status_code == status
    assert len(calls) == (status == 200)


@pytest.mark.parametrize(
    ("answer", "status", "accepted"),
    [
        (Answer(Outcome.APPLIED), 200, True),
        (Answer(Outcome.DUPLICATE), 200, True),
        (Answer(Outcome.CONFLICT), 409, False),
        (Answer(Outcome.LOCKED, "SQLITE_BUSY"), 503, False),
        (Answer(Outcome.ERROR, "ValueError"), 500, False),
        (Answer(Outcome.INDETERMINATE, "SQLITE_FULL"), 500, False),
    ],
)
def test_outcomes(answer: Answer, status: int, accepted: bool) -> None:
    """Only a completion that stands is accepted; only a lock error names a time to come back."""

    async def receive(message: Message) -> Answer:
        return answer

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(server.application(receive))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post(loopback.PATH, json={"id": "a", "qty": 1})

    response = asyncio.run(ask())
    assert (response.status_code, response.json()["accepted"]) == (status, accepted)
    assert response.json()["id"] == "a"
    assert ("Retry-After" in response.headers) == (status == 503)


def test_other_methods_and_paths(warehouse: Make, client: httpx.Client) -> None:
    """405 and 404."""
    shop = warehouse()
    assert client.get(shop.url).status_code == 405
    assert client.put(shop.url, json={"id": "a", "qty": 1}).status_code == 405
    assert client.post(f"{shop.url}/a", json={"id": "a", "qty": 1}).status_code == 404
    assert shop.state.total == 0


def test_body_that_says_it_is_too_large(warehouse: Make) -> None:
    """Refused by its header, before it is sent."""
    shop = warehouse()
    head = b"POST /deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", shop.port), timeout=10) as line:
        line.sendall(head + b"Content-Length: 99999999999\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 413")


def test_body_that_goes_on_and_on(warehouse: Make) -> None:
    """An endless chunked body is refused while it streams, as soon as it passes the limit."""
    shop = warehouse()
    head = b"POST /deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", shop.port), timeout=10) as line:
        line.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
        for _ in range(MAX_BODY // 4096 + 1):
            line.sendall(chunk)
        assert line.recv(65536).startswith(b"HTTP/1.1 413")
    assert shop.state.total == 0


def test_body_that_never_ends() -> None:
    """One that stalls is refused when its time is over; the receiver is never called."""

    async def receive(message: Message) -> Answer:
        raise AssertionError("called")

    async def run() -> dict[str, Any]:
        sent: list[Any] = []
        first = [{"type": "http.request", "body": b'{"id":"a",', "more_body": True}]

        async def hear() -> Any:
            if first:
                return first.pop()
            await asyncio.Event().wait()

        async def say(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http", "method": "POST", "path": loopback.PATH, "raw_path": b"", "query_string": b"",
            "headers": [(b"content-type", b"application/json")], "http_version": "1.1", "root_path": "",
            "scheme": "http", "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2),
        }  # fmt: skip
        await server.application(receive, body_deadline=0.05)(scope, hear, say)
        return {"status": sent[0]["status"], **json.loads(sent[1]["body"])}

    said = asyncio.run(run())
    assert said == {"status": 408, "accepted": False, "error": "the body did not end within 0.05 s"}


def test_request_that_is_cut_off_changes_nothing(warehouse: Make, client: httpx.Client) -> None:
    """Half a body, a body shorter than it says, a whole message in a body that is not over."""
    shop = warehouse()
    head = b"POST /deliveries HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    for rest in (
        b'Content-Length: 18\r\n\r\n{"id":"a",',
        b'Content-Length: 19\r\n\r\n{"id":"a","qty":1}',
        b'Transfer-Encoding: chunked\r\n\r\n12\r\n{"id":"a","qty":1}\r\n',
    ):
        with socket.create_connection(("127.0.0.1", shop.port), timeout=10) as line:
            line.sendall(head + rest)
    assert post(client, shop, "b", 2)[0] == 200
    assert list(shop.state.inbox) == [("b", 2)]


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/9\r\n\r\n",
        b"x" * 200_000,
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ],
)
def test_what_is_no_http(warehouse: Make, client: httpx.Client, garbage: bytes) -> None:
    """Refused or cut off; the next request is served as ever."""
    shop = warehouse()
    with socket.create_connection(("127.0.0.1", shop.port), timeout=10) as line, contextlib.suppress(OSError):
        line.sendall(garbage)
        line.shutdown(socket.SHUT_WR)
        assert not line.recv(65536).startswith(b"HTTP/1.1 2")
    assert post(client, shop, "a", 1)[0] == 200
    assert shop.state.total == 1


def test_locked_by_another_program(warehouse: Make, client: httpx.Client) -> None:
    """503 with the code and a time to come back while the lock is held, 200 afterwards, one effect."""
    shop = warehouse(busy_timeout=0.05)
    other = sqlite3.connect(shop.store, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    response = client.post(shop.url, json={"id": "a", "qty": 5})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert response.json() == {"id": "a", "accepted": False, "error": "SQLITE_BUSY"}
    other.execute("ROLLBACK")
    other.close()
    assert post(client, shop, "a", 5)[0] == 200
    assert shop.state.total == 5


def test_several_processes_on_one_store(warehouse: Make) -> None:
    """Four deliveries at once of each id over two processes: one effect each, all accepted or refused."""
    shop = warehouse(servers=2)

    def deliver(n: int) -> int:
        return post(many, shop, f"order-{n // 4}", 3)[0]

    with httpx.Client(trust_env=False, timeout=30) as many, ThreadPoolExecutor(8) as threads:
        assert set(threads.map(deliver, range(80))) == {200}
    assert (shop.state.total, len(shop.state.inbox)) == (60, 20)
    calls = [line for line in log.read(shop.log) if line["event"] == "received"]
    assert len(calls) == 80
    assert len({line["call"] for line in calls}) == 80


def test_log_has_no_payload(warehouse: Make, client: httpx.Client) -> None:
    """Ids, quantities and outcomes; what the order says stays out of it."""
    shop = warehouse("structured")
    message = {"id": "snack-7", "qty": 7, "schema": 1, "payload": {"name": "Erika Mustermann"}}
    assert client.post(shop.url, json=message).status_code == 200
    lines = list(log.read(shop.log))
    assert [(line["event"], line["who"]) for line in lines] == [
        ("received", "server 1"),
        ("answered", "server 1"),
    ]
    assert set(lines[0]) == {"at", "who", "event", "call", "id", "qty"}
    assert set(lines[1]) == {"at", "who", "event", "call", "outcome", "detail", "left_open"}
    assert b"Erika" not in shop.log.read_bytes()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "::", "localhost", "example.org", "", "127.1"])
def test_only_loopback(host: str) -> None:
    """Any other address is refused in a sentence that says why; so is a name, which may lead anywhere."""
    with pytest.raises(BadInput, match="is not loopback: this is for teaching"):
        loopback.listen(host)


def test_port_that_is_taken() -> None:
    """Named, with the option that mends it."""
    with loopback.listen() as door:
        port = door.getsockname()[1]
        with pytest.raises(BadInput, match=f"port {port}: Address already in use: choose another --port"):
            loopback.listen(port=port)
    with pytest.raises(BadInput, match="port 70000: a port is 0 to 65535"):
        loopback.listen(port=70000)


def test_receiver_that_cannot_connect(warehouse: Make, tmp_path: Any) -> None:
    """Said before any request comes."""
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def connect(self, path): raise OSError('no route to the store')\n"
        "    def receive(self, db, id, qty): return True\n"
    )
    with pytest.raises(BadInput, match=r"the server 1 cannot begin: .*no route to the store"):
        warehouse(f"{tmp_path / 'mine.py'}:Mine")
