"""A proxy between publisher and warehouse that misbehaves as it is told, one fault for each request.

It reads one request from a connection, and closes it after the answer. The nth request that comes meets the
nth fault of the plan; behind its end all is well.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from oncebench.wire.log import Log
from oncebench.wire.process import Line

WELL = "well"
FAULTS = (
    "refuse",
    "cut_request",
    "cut_before_answer",
    "cut_in_answer",
    "delay_request",
    "delay_answer",
    "duplicate",
    "swap",
    "invent",
)
"""What can go wrong and be survived:

refuse             the connection is reset before anything is read
cut_request        half of the request reaches the server, then both sides are cut
cut_before_answer  the server's answer is thrown away and the connection cut
cut_in_answer      half of the server's answer, then a cut
delay_request      the request reaches the server after the publisher gave up waiting, its answer nobody
delay_answer       the answer comes after the publisher gave up waiting
duplicate          the request reaches the server twice at the same moment
swap               this request gets the answer to another order, the next one gets the answer to this
invent             a 200 that the server knows nothing of, and that proves nothing
"""
FORGE = "forge"
"""A perfect ACK that the server knows nothing of. No publisher can tell: plain HTTP has no signature. It is
never drawn; it shows that the audit notices a message that was marked done and has no effect."""
_MOST = 1 << 20
_INVENTED = (
    (b"text/html", b"<html><body>OK</body></html>"),
    (b"application/json", b""),
    (b"application/json", b'{"accepted": true}'),
    (b"application/json", b'{"id": %s, "accepted": "true"}'),
    (b"application/json", b'{"id": %s, "accepted": 1}'),
    (b"application/json", b'{"id": %s, "accepted": false, "accepted": true}'),
    (b"application/json", b'{"id": %s, "accepted": true'),
)


class Proxy:
    """Forwards to one server, with a plan of faults."""

    def __init__(self, server: tuple[str, int], faults: list[str], late: float, log: Log) -> None:
        """Prepare.

        Args:
            server: Host and port of the warehouse.
            faults: For each request in turn, one of `FAULTS`, `FORGE` or `WELL`.
            late: Seconds that are longer than the publisher waits.
            log: Where each request is written down.
        """
        self._server = server
        self._faults = faults
        self._late = late
        self._log = log
        self._requests = 0
        self._held: bytes | None = None  # the answer that the next request is to get
        self._last: tuple[bytes, bytes] | None = None  # the last id that was answered, and its answer
        self._open: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection."""
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def finish(self) -> None:
        """Wait until every request that came is through, late ones too."""
        while self._open:
            await asyncio.wait(self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = self._requests
        self._requests += 1
        fault = self._faults[number] if number < len(self._faults) else WELL
        self._log.write("request", number=number, fault=fault)
        try:
            if fault == "refuse":
                _reset(writer)
                return
            request = await _request(reader)
            if request is not None:
                answer = await self._answer(request, fault)
                if answer is not None:
                    writer.write(answer)
                    await writer.drain()
        except (OSError, EOFError, asyncio.LimitOverrunError):  # either side went away: the other sees it too
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, request: bytes, fault: str) -> bytes | None:
        """What the publisher gets; None for nothing."""
        if fault == "cut_request":
            await self._cut(request)
            return None
        if fault == "invent":
            return _invented(request, self._requests)
        if fault == FORGE:
            return _ok(b"application/json", b'{"id": %s, "accepted": true}' % _id(request))
        if fault == "delay_request":
            await asyncio.sleep(self._late)
        if fault == "duplicate":
            both = (self._forward(request), self._forward(request))
            first, second = await asyncio.gather(*both, return_exceptions=True)
            answer = first if isinstance(first, bytes) else second if isinstance(second, bytes) else b""
        else:
            answer = await self._forward(request)
        if fault == "delay_answer":
            await asyncio.sleep(self._late)
        if fault in ("cut_before_answer", "delay_request"):
            return None
        if fault == "cut_in_answer":
            return answer[: len(answer) // 2]
        return self._exchanged(_id(request), answer, swap=fault == "swap")

    def _exchanged(self, id: bytes, answer: bytes, *, swap: bool) -> bytes | None:
        given: bytes | None = answer
        if self._held is not None:
            given, self._held = self._held, None
        elif swap:
            self._held = answer
            given = self._last[1] if self._last is not None and self._last[0] != id else None
        if answer.startswith(b"HTTP/1.1 200"):
            self._last = id, answer
        return given

    async def _forward(self, request: bytes) -> bytes:
        """The server's whole answer."""
        reader, writer = await asyncio.open_connection(*self._server)
        try:
            writer.write(request)
            await writer.drain()
            return await _answer_of(reader)
        finally:
            writer.close()

    async def _cut(self, request: bytes) -> None:
        _, writer = await asyncio.open_connection(*self._server)
        writer.write(request[:-5])
        await writer.drain()
        writer.close()


async def _request(reader: asyncio.StreamReader) -> bytes | None:
    """One whole request that asks to close the connection afterwards; None if the client left before."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    length = re.search(rb"(?im)^content-length: *([0-9]{1,9})\r$", head)
    body = await reader.readexactly(int(length[1]) if length else 0)
    kept = re.sub(rb"(?im)^connection:.*\r\n", b"", head)
    return kept[:-2] + b"Connection: close\r\n\r\n" + body


async def _answer_of(reader: asyncio.StreamReader) -> bytes:
    """The whole answer, by its length: a child of the server may hold the line open."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length: *([0-9]{1,9})\r$", head)
    return head + (await reader.readexactly(int(length[1])) if length else await reader.read(_MOST))


def _id(request: bytes) -> bytes:
    """The message's id as JSON."""
    return json.dumps(json.loads(request.partition(b"\r\n\r\n")[2])["id"]).encode()


def _invented(request: bytes, nth: int) -> bytes:
    media, body = _INVENTED[nth % len(_INVENTED)]
    return _ok(media, body % _id(request) if b"%s" in body else body)


def _ok(media: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (media, len(body)) + body


def _reset(writer: asyncio.StreamWriter) -> None:
    end: socket.socket = writer.get_extra_info("socket")
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def forward(proxy: Proxy, door: socket.socket, until: Callable[[], Awaitable[object]]) -> None:
    """Take connections until told otherwise, then finish what came."""
    server = await asyncio.start_server(proxy.accept, sock=door)
    await until()
    server.close()
    await proxy.finish()


def work(job: dict[str, Any], line: Line) -> None:
    """Be the proxy of a campaign; finishes when the campaign says anything.

    Args:
        job: door (the inherited listening socket), server (host and port), faults, late, log.
        line: To the campaign.
    """
    host, port = job["server"]
    proxy = Proxy((host, port), job["faults"], job["late"], Log(job["log"], "proxy"))
    line.say(said="ready")
    asyncio.run(forward(proxy, socket.socket(fileno=job["door"]), lambda: asyncio.to_thread(line.hear)))
    line.say(said="done")
