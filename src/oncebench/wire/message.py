"""One message as JSON: `{"id": text, "qty": integer}`, perhaps with `"schema"` and `"payload"`.

Python's reader takes much that JSON is not, or that no two readers agree on. Here a name may come once,
numbers must be such that a double carries them as they are written, and text must be text.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from oncebench.messages import MAX_QTY

MAX_ID_BYTES = 200
"""Bytes of UTF-8: room for any UUID, URN or order number, small enough for an index key on every engine."""
MAX_BODY = 65_536
"""Bytes."""
MAX_DEPTH = 32
"""Objects and arrays within each other."""
MAX_SCHEMA = 2**31 - 1
JSON_MEDIA = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE)
"""The one media type that is spoken, in requests and answers."""
_MOST_DIGITS = 40
_MAX_EXACT = 2**53 - 1  # beyond it, whole numbers of two spellings may be one double
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_BRACKET = re.compile(r"[][{}]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Malformed(ValueError):
    """The bytes are no message; the sentence says why and never quotes them."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a body says.

    Attributes:
        id: 1 to `MAX_ID_BYTES` bytes of UTF-8, no NUL.
        qty: 1 to 2**63-1.
        schema: Version of the payload's form, 1 to `MAX_SCHEMA`; None without a payload.
        payload: A JSON object; None without one.
    """

    id: str
    qty: int
    schema: int | None = None
    payload: dict[str, Any] | None = None


def parse(body: bytes) -> Message:
    """Read a body.

    Raises:
        Malformed: It is no message.
    """
    if len(body) > MAX_BODY:
        raise Malformed(f"a body has at most {MAX_BODY} bytes")
    found = strict_json(body)
    if not isinstance(found, dict):
        raise Malformed("the body must be a JSON object")
    names = set(found)
    if names not in ({"id", "qty"}, {"id", "qty", "schema", "payload"}):
        raise Malformed('the names must be "id" and "qty", with a payload also "schema" and "payload"')
    check_id(found["id"])
    check_qty(found["qty"])
    if "schema" not in found:
        return Message(found["id"], found["qty"])
    check_schema(found["schema"])
    if not isinstance(found["payload"], dict):
        raise Malformed("payload must be an object")
    _check_numbers(found["payload"])
    return Message(found["id"], found["qty"], found["schema"], found["payload"])


def encode(id: str, qty: int, schema: int | None = None, payload: str | None = None) -> bytes:
    """A body; the payload is JSON text and goes out as it is spelled."""
    body = json.dumps({"id": id, "qty": qty})
    if payload is not None:
        body = f'{body[:-1]}, "schema": {schema}, "payload": {payload}}}'
    return body.encode()


def check_id(id: object) -> None:
    """Raise Malformed unless it is an id."""
    if not isinstance(id, str):
        raise Malformed("id must be text")
    if not id:
        raise Malformed("id must not be empty")
    if "\0" in id:  # SQLite's own functions end a text there
        raise Malformed("id must not contain NUL")
    if _SURROGATE.search(id):
        raise Malformed("id contains half of a surrogate pair")
    if len(id.encode()) > MAX_ID_BYTES:
        raise Malformed(f"id is longer than {MAX_ID_BYTES} bytes of UTF-8")


def check_qty(qty: object) -> None:
    """Raise Malformed unless it is a quantity. True is not 1, 7.0 is not 7, "7" is not 7."""
    if type(qty) is not int:
        raise Malformed("qty must be an integer")
    if not 1 <= qty <= MAX_QTY:
        raise Malformed("qty must be 1 to 2^63-1")


def check_schema(schema: object) -> None:
    """Raise Malformed unless it is a version of a payload's form."""
    if type(schema) is not int or not 1 <= schema <= MAX_SCHEMA:
        raise Malformed("schema must be an integer from 1 to 2^31-1")


def strict_json(data: bytes) -> Any:
    """Read one JSON value (RFC 8259, as narrowed by I-JSON, RFC 7493).

    Raises:
        Malformed: It is not UTF-8, not JSON, names something twice, is nested too deep, or holds a number
            or a text that readers would not agree on.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("it is not UTF-8") from error
    _check_depth(text)
    try:
        found = json.loads(
            text,
            object_pairs_hook=_once_each,
            parse_constant=_no_number,
            parse_float=_real,
            parse_int=_whole,
        )
    except json.JSONDecodeError as error:
        raise Malformed(f"it is not JSON: {error.msg} at character {error.pos}") from error
    _check_texts(found)
    return found


def _check_depth(text: str) -> None:
    """Before it is read: how deep Python's reader can go differs from version to version."""
    depth = 0
    for bracket in _BRACKET.findall(_TEXT.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise Malformed(f"it is nested deeper than {MAX_DEPTH}")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Malformed("a name comes twice in one object")
    return found


def _no_number(constant: str) -> NoReturn:
    raise Malformed("NaN and Infinity are not JSON")


def _real(digits: str) -> float:
    """A double, if it is the one that is written so: else two numbers could be taken for one."""
    value = float(digits)
    if math.isinf(value) or len(digits) > _MOST_DIGITS or Decimal(digits) != Decimal(repr(value)):
        raise Malformed("a number has more digits than a double holds: send it as text")
    return value


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise Malformed("a number is too long")
    return int(digits)


def _check_texts(value: object) -> None:
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise Malformed("a text contains half of a surrogate pair")
    elif isinstance(value, list):
        for inner in value:
            _check_texts(inner)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_texts(name)
            _check_texts(inner)


def _check_numbers(value: object) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            _check_numbers(inner)
    elif type(value) is int and abs(value) > _MAX_EXACT:
        raise Malformed("a whole number in the payload is beyond 2^53-1: send it as text")
