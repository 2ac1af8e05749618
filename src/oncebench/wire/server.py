"""The warehouse over HTTP: it answers only after the receiver did, and refuses what is no message.

A teaching server: no accounts, no encryption, and no address outside this machine.

    POST /deliveries  {"id": "snack-7", "qty": 7}
    200 {"id": "snack-7", "accepted": true}     the receiver returned True or False: it is done
    409                                         it raised its conflict: another quantity came first
    503 with Retry-After                        SQLite refused for contention: not known to be done
    500                                         the receiver failed otherwise: not known to be done
    400, 408, 413, 415                          no message: the receiver was never called
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from oncebench.messages import Outcome
from oncebench.receivers.loader import load
from oncebench.stores import sqlite
from oncebench.wire.log import Log
from oncebench.wire.loopback import PATH
from oncebench.wire.message import JSON_MEDIA, MAX_BODY, Malformed, Message, parse
from oncebench.wire.process import Death, Line
from oncebench.wire.warehouse import Answer, Warehouse

POINTS = ("before_receiver", "in_receiver", "before_answer", "after_answer")
"""Where a server can be killed: before the receiver is called, before a statement that it runs, after it
returned (so after its commit) and before the answer, after the answer."""
BODY_DEADLINE = 5.0
"""Seconds within which a body must have come to its end."""
RETRY_AFTER = 1
"""Seconds: what a 503 advises, the least that HTTP can say."""


def application(
    receive: Callable[[Message], Awaitable[Answer]],
    *,
    payloads: bool = False,
    body_deadline: float = BODY_DEADLINE,
    death: Death | None = None,
) -> Starlette:
    """The ASGI application.

    Args:
        receive: Does the work.
        payloads: Whether messages may carry a payload.
        body_deadline: Seconds for a body to come to its end.
        death: Where to die.
    """
    points = death or Death(None)

    async def deliveries(request: Request) -> Response:
        try:
            _check_headers(request)
            body = await _body(request, body_deadline)
            message = parse(body)
            if message.payload is not None and not payloads:
                raise Malformed("this receiver takes no payload")
        except Malformed as error:
            return _refusal(400, str(error))
        except _Refused as error:
            return _refusal(error.status, str(error))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody hears it
        answer = await receive(message)
        points.at("before_answer")
        response = _response(message.id, answer)
        response.background = BackgroundTask(_after_answer, points)
        return response

    return Starlette(routes=[Route(PATH, deliveries, methods=["POST"])])


async def _after_answer(points: Death) -> None:
    points.at("after_answer")


class _Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def _check_headers(request: Request) -> None:
    if not JSON_MEDIA.fullmatch(request.headers.get("content-type", "")):
        raise _Refused(415, "send application/json in UTF-8")
    if request.headers.get("content-encoding", "identity") != "identity":
        raise _Refused(415, "send it without a content encoding")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > MAX_BODY:
        raise _Refused(413, f"a body has at most {MAX_BODY} bytes")


async def _body(request: Request, deadline: float) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(deadline):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY:
                    raise _Refused(413, f"a body has at most {MAX_BODY} bytes")
    except TimeoutError:
        raise _Refused(408, f"the body did not end within {deadline:g} s") from None
    return bytes(body)


def _refusal(status: int, why: str) -> Response:
    # What is left of the body must not be taken for the next request.
    return JSONResponse({"accepted": False, "error": why}, status, headers={"Connection": "close"})


def _response(id: str, answer: Answer) -> Response:
    match answer.outcome:
        case Outcome.APPLIED | Outcome.DUPLICATE:
            return JSONResponse({"id": id, "accepted": True})
        case Outcome.CONFLICT:
            return JSONResponse({"id": id, "accepted": False, "error": "conflict"}, 409)
        case Outcome.LOCKED:
            refused = {"id": id, "accepted": False, "error": answer.detail}
            return JSONResponse(refused, 503, headers={"Retry-After": str(RETRY_AFTER)})
        case _:
            return JSONResponse({"id": id, "accepted": False, "error": answer.detail}, 500)


def serve(app: Starlette, door: socket.socket) -> None:
    """Answer requests until SIGTERM or SIGINT."""
    config = uvicorn.Config(
        app, http="h11", ws="none", lifespan="off", log_config=None, access_log=False, server_header=False
    )
    uvicorn.Server(config).run(sockets=[door])


def work(job: dict[str, Any], line: Line) -> None:
    """Be one server process of a campaign.

    Args:
        job: target, store, settings, first_worker, connections, pause, log, name, door (the inherited
            listening socket) and kill.
        line: To the campaign.

    Raises:
        BadInput: The receiver cannot connect.
    """
    receiver = load(job["target"])
    death = Death(job["kill"])
    warehouse = Warehouse(
        receiver,
        Path(job["store"]),
        sqlite.Settings(**job["settings"]),
        connections=job["connections"],
        first_worker=job["first_worker"],
        pause=job["pause"],
        log=Log(job["log"], job["name"]),
        death=death,
    )
    app = application(warehouse.receive, payloads=receiver.receive_payload is not None, death=death)
    line.say(said="ready")
    serve(app, socket.socket(fileno=job["door"]))
