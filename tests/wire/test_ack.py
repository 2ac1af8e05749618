"""Which answers prove that a message was accepted, and which merely look like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebench.wire.publisher import Answer, proves, refuses

from .test_message import ids

ID = "snack-7"
JSON = "application/json"
ACK = b'{"id":"snack-7","accepted":true}'

PROOFS = {
    "as the warehouse says it": Answer(200, JSON, ACK),
    "in another order, with space": Answer(200, JSON, b' {"accepted" : true,\r\n"id":"snack-7"}\n'),
    "with more in it": Answer(200, JSON, b'{"id":"snack-7","accepted":true,"at":1.5}'),
    "id with escapes": Answer(200, JSON, b'{"id":"\\u0073nack-7","accepted":true}'),
    "charset utf-8": Answer(200, "application/json; charset=utf-8", ACK),
    "charset UTF-8 in quotes": Answer(200, 'Application/JSON;Charset="UTF-8"', ACK),
}

FALSE = {
    "accepted is a text": Answer(200, JSON, b'{"id":"snack-7","accepted":"true"}'),
    "accepted is 1": Answer(200, JSON, b'{"id":"snack-7","accepted":1}'),
    "accepted is 1.0": Answer(200, JSON, b'{"id":"snack-7","accepted":1.0}'),
    "accepted is false": Answer(200, JSON, b'{"id":"snack-7","accepted":false}'),
    "accepted is null": Answer(200, JSON, b'{"id":"snack-7","accepted":null}'),
    "accepted is a list": Answer(200, JSON, b'{"id":"snack-7","accepted":[true]}'),
    "accepted is missing": Answer(200, JSON, b'{"id":"snack-7"}'),
    "Accepted in upper case": Answer(200, JSON, b'{"id":"snack-7","Accepted":true}'),
    "accepted twice, false first": Answer(200, JSON, b'{"id":"snack-7","accepted":false,"accepted":true}'),
    "accepted twice, true first": Answer(200, JSON, b'{"id":"snack-7","accepted":true,"accepted":false}'),
    "accepted twice, both true": Answer(200, JSON, b'{"id":"snack-7","accepted":true,"accepted":true}'),
    "accepted inside something": Answer(200, JSON, b'{"data":{"id":"snack-7","accepted":true}}'),
    "another order's id": Answer(200, JSON, b'{"id":"snack-8","accepted":true}'),
    "id with a space": Answer(200, JSON, b'{"id":"snack-7 ","accepted":true}'),
    "id in upper case": Answer(200, JSON, b'{"id":"SNACK-7","accepted":true}'),
    "id in look-alike letters": Answer(200, JSON, '{"id":"sn\u0430ck-7","accepted":true}'.encode()),
    "id is missing": Answer(200, JSON, b'{"accepted":true}'),
    "id is null": Answer(200, JSON, b'{"id":null,"accepted":true}'),
    "id twice": Answer(200, JSON, b'{"id":"snack-8","id":"snack-7","accepted":true}'),
    "ids in a list": Answer(200, JSON, b'{"id":["snack-7"],"accepted":true}'),
    "a list of ACKs": Answer(200, JSON, b"[" + ACK + b"]"),
    "an ACK in a text": Answer(200, JSON, b'"{\\"id\\":\\"snack-7\\",\\"accepted\\":true}"'),
    "true": Answer(200, JSON, b"true"),
    "null": Answer(200, JSON, b"null"),
    "an empty object": Answer(200, JSON, b"{}"),
    "an empty body": Answer(200, JSON, b""),
    "cut off": Answer(200, JSON, ACK[:-1]),
    "cut off before true": Answer(200, JSON, b'{"id":"snack-7","accepted":'),
    "trailing garbage": Answer(200, JSON, ACK + b"x"),
    "two ACKs": Answer(200, JSON, ACK + b"\n" + ACK),
    "trailing NUL": Answer(200, JSON, ACK + b"\0"),
    "a comment": Answer(200, JSON, ACK + b" // ok"),
    "single quotes": Answer(200, JSON, b"{'id':'snack-7','accepted':true}"),
    "Python's True": Answer(200, JSON, b'{"id":"snack-7","accepted":True}'),
    "NaN in it": Answer(200, JSON, b'{"id":"snack-7","accepted":true,"x":NaN}'),
    "byte order mark": Answer(200, JSON, b"\xef\xbb\xbf" + ACK),
    "UTF-16": Answer(200, JSON, ACK.decode().encode("utf-16")),
    "no UTF-8": Answer(200, JSON, b'{"id":"snack-7","accepted":true,"x":"\xff"}'),
    "charset latin-1": Answer(200, "application/json; charset=latin-1", ACK),
    "charset utf-16": Answer(200, "application/json; charset=utf-16", ACK),
    "HTML": Answer(200, "text/html", b"<html>OK</html>"),
    "JSON that says it is HTML": Answer(200, "text/html", ACK),
    "JSON that says it is text": Answer(200, "text/plain", ACK),
    "JSON that does not say what it is": Answer(200, "", ACK),
    "HTML that says it is JSON": Answer(200, JSON, b"<html>OK</html>"),
    "201 Created": Answer(201, JSON, ACK),
    "202 Accepted": Answer(202, JSON, ACK),
    "204 without a body": Answer(204, "", b""),
    "204 with a body": Answer(204, JSON, ACK),
    "206 partial": Answer(206, JSON, ACK),
    "301 with an ACK": Answer(301, JSON, ACK),
    "302": Answer(302, "text/html", b""),
    "307 with an ACK": Answer(307, JSON, ACK),
    "304 not modified": Answer(304, JSON, ACK),
    "400 with an ACK": Answer(400, JSON, ACK),
    "409 with an ACK": Answer(409, JSON, ACK),
    "500 with an ACK": Answer(500, JSON, ACK),
    "503 with an ACK": Answer(503, JSON, ACK),
}


@pytest.mark.parametrize("answer", PROOFS.values(), ids=PROOFS)
def test_proofs(answer: Answer) -> None:
    """200, JSON, this id, exactly true: however it is spelled."""
    assert proves(answer, ID)
    assert not refuses(answer, ID)


@pytest.mark.parametrize("answer", FALSE.values(), ids=FALSE)
def test_false_acks(answer: Answer) -> None:
    """None of them proves anything, a conflict neither."""
    assert not proves(answer, ID)
    assert not refuses(answer, ID)


def test_the_table_is_long_enough() -> None:
    """At least twenty false ones, no two alike."""
    answers = list(FALSE.values())
    assert len(answers) >= 20
    assert len(set(answers)) == len(answers)


@pytest.mark.parametrize(
    ("answer", "proven"),
    [
        (Answer(409, JSON, b'{"id":"snack-7","accepted":false,"error":"conflict"}'), True),
        (Answer(409, JSON, b'{"id":"snack-8","accepted":false}'), False),
        (Answer(409, JSON, b'{"id":"snack-7"}'), False),
        (Answer(409, JSON, b'{"id":"snack-7","accepted":0}'), False),
        (Answer(409, JSON, b""), False),
        (Answer(409, "text/html", b"<html>Conflict</html>"), False),
        (Answer(400, JSON, b'{"id":"snack-7","accepted":false}'), False),
        (Answer(200, JSON, b'{"id":"snack-7","accepted":false}'), False),
    ],
)
def test_conflicts_are_proven_as_strictly(answer: Answer, proven: bool) -> None:
    """A 409 of somebody in between sets no message aside."""
    assert refuses(answer, ID) is proven
    assert not proves(answer, ID)


@given(ids, st.integers(100, 599), st.sampled_from([JSON, "text/html"]), st.binary(max_size=80))
def test_bytes_by_chance_prove_nothing(id: str, status: int, media: str, body: bytes) -> None:
    """Nor do they raise."""
    assert not proves(Answer(status, media, body), id)
