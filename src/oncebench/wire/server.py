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
import ipaddress
import queue
import re
import socket
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from oncebench.messages import CALL_BITS, BadInput, Outcome
from oncebench.race.worker import classify
from oncebench.receivers.loader import Receiver, load
from oncebench.stores import sqlite, witness
from oncebench.wire.log import Log
from oncebench.wire.message import MAX_BODY, Malformed, Message, parse
from oncebench.wire.process import START, Death, Line

PATH = "/deliveries"
POINTS = ("before_receiver", "in_receiver", "before_answer", "after_answer")
"""Where a server can be killed: before the receiver is called, before a statement that it runs, after it
returned (so after its commit) and before the answer, after the answer."""
BODY_DEADLINE = 5.0
"""Seconds within which a body must have come to its end."""
RETRY_AFTER = 1
"""Seconds: what a 503 advises, the least that HTTP can say."""
_JSON = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one delivery.

    Attributes:
        detail: The extended SQLite code or the exception's class, if it failed.
    """

    outcome: Outcome
    detail: str = ""


class Warehouse:
    """A receiver at work: threads with a connection each take deliveries from one queue."""

    def __init__(
        self,
        receiver: Receiver,
        store: Path,
        settings: sqlite.Settings,
        *,
        connections: int = 2,
        first_worker: int = 1,
        pause: float = 0.0,
        log: Log | None = None,
        death: Death | None = None,
    ) -> None:
        """Open the connections.

        Args:
            receiver: The code under test.
            store: Path of the store.
            settings: How connections are opened.
            connections: Deliveries that can be under way at once.
            first_worker: Number of the first connection, unique in the run.
            pause: Seconds before each statement, to widen what lies between two.
            log: Where each delivery is written down.
            death: Where to die.

        Raises:
            BadInput: The receiver cannot connect.
        """
        self._receiver = receiver
        self._store = store
        self._settings = settings
        self._pause = pause
        self._log = log or Log(None, "server")
        self._death = death or Death(None)
        self._queue: queue.SimpleQueue[tuple[Message, Future[Answer]]] = queue.SimpleQueue()
        opened: list[Future[None]] = []
        for worker in range(first_worker, first_worker + connections):
            opened.append(Future())
            threading.Thread(target=self._work, args=(worker, opened[-1]), daemon=True).start()
        for future in opened:
            try:
                future.result(START)
            except Exception as error:
                raise BadInput(
                    f"{receiver.name} cannot connect to the store: {type(error).__name__}: {error}: "
                    "mend its connect()"
                ) from error

    async def receive(self, message: Message) -> Answer:
        """Hand a message over and wait for the receiver's answer."""
        future: Future[Answer] = Future()
        self._queue.put((message, future))
        return await asyncio.wrap_future(future)

    def _work(self, worker: int, opened: Future[None]) -> None:
        try:
            db = self._open()
        except BaseException as error:
            opened.set_exception(error)
            return
        opened.set_result(None)
        call = worker << CALL_BITS
        while True:
            message, future = self._queue.get()
            if not future.set_running_or_notify_cancel():
                continue
            answer = self._call(db, message, call)
            call += 1
            if answer.outcome > Outcome.CONFLICT:
                db = self._rolled_back(db)
            future.set_result(answer)

    def _open(self) -> Any:
        db = self._receiver.connect(self._store, self._settings)
        if isinstance(db, witness.Witnessed) and witness.is_present(db):
            db.attribute_changes()
        if isinstance(db, sqlite3.Connection):
            db.set_trace_callback(self._before_statement)
        return db

    def _before_statement(self, statement: str) -> None:
        if statement.startswith("--"):  # a trigger
            return
        self._death.at("in_receiver")
        if self._pause:
            time.sleep(self._pause)

    def _call(self, db: Any, message: Message, call: int) -> Answer:
        self._death.at("before_receiver")
        if isinstance(db, witness.Witnessed):
            db.call = call
        invoked = time.perf_counter_ns()
        self._log.write("received", invoked, call=call, id=message.id, qty=message.qty)
        try:
            answered = self._receive(db, message)
            end = time.perf_counter_ns()
            if answered is True or answered is False:
                answer = Answer(Outcome.APPLIED if answered else Outcome.DUPLICATE)
            else:
                answer = Answer(Outcome.ERROR, f"returned {type(answered).__name__}")
        except self._receiver.conflict:
            end = time.perf_counter_ns()
            answer = Answer(Outcome.CONFLICT)
        except BaseException as error:  # a receiver that raises SystemExit does not stop the server
            end = time.perf_counter_ns()
            answer = Answer(*classify(error))
        open = _left_open(db)
        name = answer.outcome.name.lower()
        self._log.write("answered", end, call=call, outcome=name, detail=answer.detail, left_open=open)
        return answer

    def _receive(self, db: Any, message: Message) -> object:
        if message.schema is None or message.payload is None:
            return self._receiver.receive(db, message.id, message.qty)
        assert self._receiver.receive_payload is not None  # `application` lets no others through
        return self._receiver.receive_payload(db, message.id, message.qty, message.schema, message.payload)

    def _rolled_back(self, db: Any) -> Any:
        """What a pool does with a connection that comes back with its transaction open."""
        if not _left_open(db):
            return db
        try:
            db.rollback()
            return db
        except Exception:
            db.close()
            return self._open()


def _left_open(db: object) -> bool:
    if getattr(db, "autocommit", None) is False:  # the driver itself begins anew; that holds nothing yet
        return False
    return getattr(db, "in_transaction", False) is True


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
    if not _JSON.fullmatch(request.headers.get("content-type", "")):
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


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A listening socket on this machine; port 0 is a free one.

    Raises:
        BadInput: The host is not loopback, or the port is taken.
    """
    check_loopback(host)
    door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind((host, port))
        door.listen(128)
    except (OSError, OverflowError) as error:
        door.close()
        why = error.strerror if isinstance(error, OSError) else "a port is 0 to 65535"
        raise BadInput(
            f"cannot listen on {host} port {port}: {why}: choose another --port, or 0 for a free one"
        ) from error
    return door


def check_loopback(host: str) -> None:
    """Refuse all that is not this machine itself, written as an address.

    Raises:
        BadInput: It is not.
    """
    try:
        inside = ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name may lead anywhere
        inside = False
    if not inside:
        raise BadInput(
            f"{host} is not loopback: this is for teaching and has no accounts and no encryption, "
            "so it speaks to 127.0.0.1 only"
        )


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
