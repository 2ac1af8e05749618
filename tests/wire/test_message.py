"""What is a message and what is not; most of the latter Python's own reader would take."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebench.messages import MAX_QTY
from oncebench.wire.message import MAX_DEPTH, MAX_ID_BYTES, Malformed, Message, encode, parse, strict_json

NO_MESSAGES = {
    b"": "not JSON",
    b"snack-7": "not JSON",
    b"null": "must be a JSON object",
    b"[]": "must be a JSON object",
    b'"snack-7"': "must be a JSON object",
    b"{}": "the names must be",
    b'{"id":"a"}': "the names must be",
    b'{"qty":7}': "the names must be",
    b'{"id":"a","qty":7,"price":1}': "the names must be",
    b'{"Id":"a","qty":7}': "the names must be",
    b'{"id":"a","qty":7': "not JSON",
    b'{"id":"a","qty":7}}': "not JSON",
    b'{"id":"a","qty":7} {"id":"b","qty":7}': "not JSON",
    b"{'id':'a','qty':7}": "not JSON",
    b'{"id":"a","qty":7,}': "not JSON",
    b'{"id":"a","qty":07}': "not JSON",
    b'{"id":"a","qty":+7}': "not JSON",
    b'{"id":"a","qty":0x7}': "not JSON",
    b'{"id":"a\n","qty":7}': "not JSON",
    b'\xef\xbb\xbf{"id":"a","qty":7}': "not JSON",
    b'{"id":"a","id":"a","qty":7}': "comes twice",
    b'{"id":"a","qty":7,"qty":8}': "comes twice",
    b'{"id":"a","\\u0069d":"b","qty":7}': "comes twice",
    b'{"id":7,"qty":7}': "id must be text",
    b'{"id":null,"qty":7}': "id must be text",
    b'{"id":["a"],"qty":7}': "id must be text",
    b'{"id":"","qty":7}': "must not be empty",
    b'{"id":"a\\u0000","qty":7}': "NUL",
    b'{"id":"a\\ud800","qty":7}': "surrogate",
    b'{"id":"\\udc00\\ud800","qty":7}': "surrogate",
    b'{"id":"\xed\xa0\x80","qty":7}': "not UTF-8",
    b'{"id":"\xff","qty":7}': "not UTF-8",
    b'{"id":"\xe4","qty":7}': "not UTF-8",
    '{"id":"a","qty":7}'.encode("utf-16"): "not UTF-8",
    b'{"id":"' + b"a" * (MAX_ID_BYTES + 1) + b'","qty":7}': "longer than",
    b'{"id":"' + "ä".encode() * (MAX_ID_BYTES // 2 + 1) + b'","qty":7}': "longer than",
    b'{"id":"a","qty":"7"}': "qty must be an integer",
    b'{"id":"a","qty":true}': "qty must be an integer",
    b'{"id":"a","qty":false}': "qty must be an integer",
    b'{"id":"a","qty":null}': "qty must be an integer",
    b'{"id":"a","qty":[7]}': "qty must be an integer",
    b'{"id":"a","qty":7.0}': "qty must be an integer",
    b'{"id":"a","qty":7e0}': "qty must be an integer",
    b'{"id":"a","qty":0}': "1 to 2^63-1",
    b'{"id":"a","qty":-0}': "1 to 2^63-1",
    b'{"id":"a","qty":-7}': "1 to 2^63-1",
    b'{"id":"a","qty":9223372036854775808}': "1 to 2^63-1",
    b'{"id":"a","qty":' + b"9" * 5000 + b"}": "too long",
    b'{"id":"a","qty":NaN}': "NaN",
    b'{"id":"a","qty":Infinity}': "NaN",
    b'{"id":"a","qty":-Infinity}': "NaN",
    b'{"id":"a","qty":1e999}': "more digits than a double",
    b"[" * 60_000: "nested deeper",
    b'{"id":' * 9_000: "nested deeper",
    b'{"id":"a","qty":7,"schema":1}': "the names must be",
    b'{"id":"a","qty":7,"payload":{}}': "the names must be",
    b'{"id":"a","qty":7,"schema":true,"payload":{}}': "schema must be",
    b'{"id":"a","qty":7,"schema":"1","payload":{}}': "schema must be",
    b'{"id":"a","qty":7,"schema":0,"payload":{}}': "schema must be",
    b'{"id":"a","qty":7,"schema":1.0,"payload":{}}': "schema must be",
    b'{"id":"a","qty":7,"schema":2147483648,"payload":{}}': "schema must be",
    b'{"id":"a","qty":7,"schema":1,"payload":[]}': "payload must be an object",
    b'{"id":"a","qty":7,"schema":1,"payload":null}': "payload must be an object",
    b'{"id":"a","qty":7,"schema":1,"payload":{"x":1,"x":1}}': "comes twice",
    b'{"id":"a","qty":7,"schema":1,"payload":{"x":"\\ud800"}}': "surrogate",
    b'{"id":"a","qty":7,"schema":1,"payload":{"\\udfff":1}}': "surrogate",
    b'{"id":"a","qty":7,"schema":1,"payload":{"x":NaN}}': "NaN",
    b'{"id":"a","qty":7,"schema":1,"payload":{"x":[9007199254740993]}}': "beyond 2^53-1",
    b'{"id":"a","qty":7,"schema":1,"payload":{"x":9007199254740993.0}}': "more digits than a double",
    b'{"id":"a","qty":7,"schema":1,"payload":{"x":0.10000000000000001}}': "more digits than a double",
    b'{"id":"a","qty":7,"schema":1,"payload":{"x":' + b"[" * 40 + b"]" * 40 + b"}}": "nested deeper",
}


@pytest.mark.parametrize(("body", "why"), NO_MESSAGES.items(), ids=[repr(b[:50]) for b in NO_MESSAGES])
def test_no_message(body: bytes, why: str) -> None:
    """Each is refused with a sentence that does not quote it."""
    with pytest.raises(Malformed, match=why.replace("^", r"\^")) as caught:
        parse(body)
    assert "snack" not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"id":"snack-7","qty":7}', Message("snack-7", 7)),
        (b' \n{"qty" : 7,\t"id" : "snack-7" }\r\n', Message("snack-7", 7)),
        (b'{"id":"\\u0061","qty":1}', Message("a", 1)),
        (b'{"id":"\\ud83d\\ude00","qty":1}', Message("\U0001f600", 1)),
        ('{"id":"ä","qty":1}'.encode(), Message("ä", 1)),
        (b'{"id":" ","qty":9223372036854775807}', Message(" ", MAX_QTY)),
        (b'{"id":"' + b"a" * MAX_ID_BYTES + b'","qty":1}', Message("a" * MAX_ID_BYTES, 1)),
        (b'{"id":"a","qty":1,"schema":2,"payload":{}}', Message("a", 1, 2, {})),
        (
            b'{"id":"a","qty":1,"schema":1,"payload":{"x":[1.50,1e20]}}',
            Message("a", 1, 1, {"x": [1.5, 1e20]}),
        ),
    ],
)
def test_message(body: bytes, message: Message) -> None:
    """Order, white space and escapes do not matter; limits are inclusive."""
    assert parse(body) == message


ids = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=50)


@given(ids, st.integers(1, MAX_QTY))
def test_what_is_encoded_is_read_back(id: str, qty: int) -> None:
    """Every id and quantity within the limits survives the wire."""
    assert parse(encode(id, qty)) == Message(id, qty)


@given(st.binary(max_size=60))
def test_bytes_are_a_message_or_malformed(body: bytes) -> None:
    """Nothing else is ever raised."""
    with contextlib.suppress(Malformed):
        parse(body)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_as_programs_write_them_are_taken(value: float) -> None:
    """The shortest spelling of each double, as Python, JavaScript and Java write it."""
    assert strict_json(json.dumps(value).encode()) == value


@given(st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-10, max_value=10))
def test_two_numbers_are_never_taken_for_one(value: object) -> None:
    """A spelling is refused, or it is the value that is read."""
    from decimal import Decimal

    try:
        read = strict_json(f"{value:f}".encode())
    except Malformed:
        return
    assert Decimal(repr(read)) == value


def test_depth_limit_is_inclusive() -> None:
    """So many within each other, and no more; brackets in texts do not count."""
    strict_json(b'["' + b"[" * 99 + b'\\"' + b"{" * 99 + b'"]')
    strict_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(Malformed):
        strict_json(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
