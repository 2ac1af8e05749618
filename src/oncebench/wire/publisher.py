"""The publisher: sends what the outbox owes, in order, and believes nothing but an answer that proves it.

Whatever is not proven is uncertain: it may have been applied or not, so it is sent again, after a wait. Only
the receiver's memory makes that harmless.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from oncebench.messages import BadInput
from oncebench.wire.log import Log
from oncebench.wire.loopback import check_loopback
from oncebench.wire.message import JSON_MEDIA, Malformed, encode, strict_json
from oncebench.wire.outbox import Outbox, Row, State
from oncebench.wire.process import Death, Line

POINTS = ("before_send", "after_send", "before_mark", "after_mark")
"""Where a publisher can be killed: before a request, when it was sent and not yet answered, after an answer
that proves it and before the row is marked, after that."""
BATCH = 20
"""Rows read at once."""
_MOST_ANSWER = 65_536


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        media: The Content-Type header as it came.
        body: All of it; an answer that was cut off is none.
    """

    status: int
    media: str
    body: bytes


def proves(answer: Answer, id: str) -> bool:
    """Whether this answer proves that the message with this id was accepted.

    It does if the status is 200, and the body JSON in UTF-8: an object whose `id` is this one and whose
    `accepted` is true. Nothing that is merely like it counts: the text "true", 1, another order's id.
    """
    return answer.status == 200 and _says(answer, id, accepted=True)


def refuses(answer: Answer, id: str) -> bool:
    """Whether this answer proves a conflict: 409, and an object with this id and `accepted` false."""
    return answer.status == 409 and _says(answer, id, accepted=False)


def _says(answer: Answer, id: str, *, accepted: bool) -> bool:
    if not JSON_MEDIA.fullmatch(answer.media):
        return False
    try:
        said = strict_json(answer.body)
    except Malformed:
        return False
    return isinstance(said, dict) and said.get("id") == id and said.get("accepted") is accepted


@dataclass(frozen=True, slots=True)
class Patience:
    """How the publisher waits; all in seconds.

    Attributes:
        timeout: For one answer, from the request's begin to the last byte.
        first: Before the first time that something is sent again; doubled for each further one in a row.
        longest: That wait at most, whatever Retry-After advises.
        give_up: Without any proof, before it ends and leaves the rest pending.
    """

    timeout: float = 1.0
    first: float = 0.01
    longest: float = 1.0
    give_up: float = 30.0

    def __post_init__(self) -> None:
        for name in ("timeout", "first", "longest", "give_up"):
            if not 0 < getattr(self, name) <= 86_400:
                raise BadInput(
                    f"{name} must be more than 0 s and at most a day, not {getattr(self, name):g} s"
                )


class GaveUp(Exception):
    """Nothing was proven for too long; the sentence says what came last. The outbox still has the rest."""


class _Uncertain(Exception):
    def __init__(self, why: str, retry_after: float = 0.0) -> None:
        super().__init__(why)
        self.retry_after = retry_after


class Publisher:
    """Sends an outbox to one address."""

    def __init__(
        self,
        outbox: Outbox,
        url: str,
        patience: Patience,
        *,
        seed: int = 0,
        log: Log | None = None,
        at: Callable[[str], None] = lambda point: None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            outbox: What to send.
            url: Where to, on this machine.
            patience: How to wait.
            seed: For the length of waits.
            log: Where each request is written down.
            at: Called at each of `POINTS`.

        Raises:
            BadInput: The address is not on this machine.
        """
        self._url = _checked(url)
        self._outbox = outbox
        self._patience = patience
        self._rng = random.Random(f"{seed} publisher")
        self._log = log or Log(None, "publisher")
        self._at = at
        self._failures = 0
        self._last_proof = time.monotonic()
        self._last_trouble = "no answer came"

    def run(self) -> None:
        """Send until no row is pending.

        Raises:
            GaveUp: Nothing was proven for too long.
            BadInput: The outbox cannot be used.
        """
        # No proxy of the environment may lead off this machine, and a redirect is no acceptance.
        with httpx.Client(trust_env=False, follow_redirects=False, timeout=self._patience.timeout) as client:
            while rows := self._outbox.pending(BATCH):
                self._send_in_order(client, rows)

    def _send_in_order(self, client: httpx.Client, rows: list[Row]) -> None:
        """Up to the first that is not proven; after a wait everything begins with that one."""
        for row in rows:
            self._at("before_send")
            self._log.write("sent", seq=row.seq, id=row.id, qty=row.qty)
            try:
                state = self._send(client, row)
            except _Uncertain as why:
                self._log.write("uncertain", seq=row.seq, id=row.id, why=str(why))
                self._wait(why)
                return
            self._log.write("proved", seq=row.seq, id=row.id, outcome=state)
            self._failures = 0
            self._last_proof = time.monotonic()
            self._at("before_mark")
            self._outbox.mark(row.seq, state)
            self._log.write("marked", seq=row.seq, id=row.id, outcome=state)
            self._at("after_mark")

    def _send(self, client: httpx.Client, row: Row) -> State:
        try:
            answer, retry_after = self._ask(client, row)
        except httpx.RequestError as error:
            raise _Uncertain(type(error).__name__) from error
        if proves(answer, row.id):
            return "done"
        if refuses(answer, row.id):
            return "conflict"
        raise _Uncertain(f"status {answer.status} proves nothing", retry_after)

    def _ask(self, client: httpx.Client, row: Row) -> tuple[Answer, float]:
        limit = time.monotonic() + self._patience.timeout
        request = client.build_request(
            "POST",
            self._url,
            content=encode(row.id, row.qty, row.schema, row.payload),
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"},
            extensions={"trace": self._trace},
        )
        response = client.send(request, stream=True)
        try:
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _MOST_ANSWER or time.monotonic() > limit:  # httpx's timeout is for each read
                    raise _Uncertain("an answer without an end")
        finally:
            response.close()
        retry_after = response.headers.get("retry-after", "")
        seconds = float(retry_after) if re.fullmatch("[0-9]{1,9}", retry_after) else 0.0
        return Answer(response.status_code, response.headers.get("content-type", ""), bytes(body)), seconds

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        if event == "http11.send_request_body.complete":
            self._at("after_send")

    def _wait(self, why: _Uncertain) -> None:
        now = time.monotonic()
        if now - self._last_proof > self._patience.give_up:
            raise GaveUp(
                f"the publisher gave up after {self._patience.give_up:g} s in which no answer proved "
                f"anything (the last: {why})"
            ) from why
        wait = min(self._patience.first * 2**self._failures, self._patience.longest)
        wait *= 0.5 + self._rng.random() / 2  # those refused together part
        self._failures = min(self._failures + 1, 30)
        time.sleep(min(max(wait, why.retry_after), self._patience.longest))


def _checked(url: str) -> str:
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise BadInput(f"{url!r} is no address: give one such as http://127.0.0.1:8080/deliveries") from error
    if parts.scheme != "http":
        raise BadInput(f"{url} is not plain http: give one such as http://127.0.0.1:8080/deliveries")
    check_loopback(parts.host)
    return url


def work(job: dict[str, Any], line: Line) -> None:
    """Be the publisher of a campaign.

    Args:
        job: outbox, url, patience, seed, log and kill.
        line: To the campaign.

    Raises:
        BadInput: The outbox cannot be used, or the address is not on this machine.
    """
    outbox = Outbox(Path(job["outbox"]))
    log, death = Log(job["log"], "publisher"), Death(job["kill"])
    publisher = Publisher(
        outbox, job["url"], Patience(**job["patience"]), seed=job["seed"], log=log, at=death.at
    )
    line.say(said="ready")
    try:
        publisher.run()
        line.say(said="done", why="")
    except GaveUp as why:
        line.say(said="done", why=str(why))
