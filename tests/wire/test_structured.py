"""Payloads: the same content in another spelling is a duplicate, other content a conflict."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncebench.messages import Conflict
from oncebench.receivers.loader import Receiver, load
from oncebench.receivers.structured import fingerprint
from oncebench.stores.sqlite import Settings
from oncebench.wire.message import Malformed, parse

FIRST = '{"name": "nuts", "price": 1.5, "tags": ["a", "b"], "more": {"x": 1, "y": 2}}'

SAME = [
    '{"more": {"y": 2, "x": 1}, "tags": ["a", "b"], "price": 1.5, "name": "nuts"}',
    '{"name":"nuts","price":1.50,"tags":["a","b"],"more":{"x":1,"y":2}}',
    '{"name": "nuts", "price": 15e-1, "tags": ["a", "b"], "more": {"x": 1.0, "y": 2e0}}',
    '{"name": "nuts", "price": 0.15E+1, "tags": ["a", "b"], "more": {"x": 1, "y": 2}}',
    '{"n\\u0061me": "n\\u0075ts", "price": 1.5, "tags": ["\\u0061", "b"], "more": {"x": 1, "y": 2}}',
]

OTHER = [
    '{"name": "nut", "price": 1.5, "tags": ["a", "b"], "more": {"x": 1, "y": 2}}',
    '{"name": "Nuts", "price": 1.5, "tags": ["a", "b"], "more": {"x": 1, "y": 2}}',
    '{"name": "nuts ", "price": 1.5, "tags": ["a", "b"], "more": {"x": 1, "y": 2}}',
    '{"name": "nuts", "price": 1.51, "tags": ["a", "b"], "more": {"x": 1, "y": 2}}',
    '{"name": "nuts", "price": "1.5", "tags": ["a", "b"], "more": {"x": 1, "y": 2}}',
    '{"name": "nuts", "price": -1.5, "tags": ["a", "b"], "more": {"x": 1, "y": 2}}',
    '{"name": "nuts", "price": 1.5, "tags": ["b", "a"], "more": {"x": 1, "y": 2}}',
    '{"name": "nuts", "price": 1.5, "tags": ["a"], "more": {"x": 1, "y": 2}}',
    '{"name": "nuts", "price": 1.5, "tags": ["a", "b"], "more": {"x": true, "y": 2}}',
    '{"name": "nuts", "price": 1.5, "tags": ["a", "b"], "more": {"x": 1, "y": 2, "z": null}}',
    '{"name": "nuts", "price": 1.5, "tags": ["a", "b"]}',
    '{"name": "nuts", "price": 1.5, "tags": ["a", "b"], "more": {"x": 2, "y": 1}}',
    "{}",
]


class Shop:
    """A store for messages with payloads."""

    db: sqlite3.Connection

    def __init__(self, folder: Path) -> None:
        self._receiver: Receiver = load("structured")
        self._store = folder / "store.db"
        self._receiver.setup(self._store, Settings(), watched=True)
        self.db = self._receiver.connect(self._store, Settings())

    def take(self, id: str, payload: str, qty: int = 7, schema: int = 1) -> object:
        """As a server takes it from the wire."""
        message = parse(
            f'{{"id": {json.dumps(id)}, "qty": {qty}, "schema": {schema}, "payload": {payload}}}'.encode()
        )
        assert self._receiver.receive_payload is not None
        assert message.schema is not None
        assert message.payload is not None
        return self._receiver.receive_payload(
            self.db, message.id, message.qty, message.schema, message.payload
        )

    def take_plain(self, id: str, qty: int) -> object:
        """A message without a payload."""
        return self._receiver.receive(self.db, id, qty)

    @property
    def total(self) -> int:
        """What others see."""
        return self._receiver.observe(self._store).total


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.db.close()


@pytest.mark.parametrize("payload", SAME)
def test_other_spelling_is_a_duplicate(shop: Shop, payload: str) -> None:
    """Order of names, white space, escapes, number spelling."""
    assert shop.take("snack-7", FIRST) is True
    assert shop.take("snack-7", payload) is False
    assert shop.total == 7


@pytest.mark.parametrize("payload", OTHER)
def test_other_content_is_a_conflict(shop: Shop, payload: str) -> None:
    """A value, a type, a name, an order in a list: the first stands, and nothing is applied."""
    assert shop.take("snack-7", FIRST) is True
    with pytest.raises(Conflict):
        shop.take("snack-7", payload)
    assert (shop.total, shop.db.in_transaction) == (7, False)
    assert shop.take("snack-7", FIRST) is False


def test_version_quantity_and_absence_belong_to_it(shop: Shop) -> None:
    """Another version of the form, another quantity, or no payload at all is another message."""
    assert shop.take("snack-7", FIRST) is True
    with pytest.raises(Conflict):
        shop.take("snack-7", FIRST, schema=2)
    with pytest.raises(Conflict):
        shop.take("snack-7", FIRST, qty=8)
    with pytest.raises(Conflict):
        shop.take_plain("snack-7", 7)
    assert shop.take_plain("snack-9", 7) is True
    assert shop.take_plain("snack-9", 7) is False
    with pytest.raises(Conflict):
        shop.take("snack-9", "{}")
    assert shop.total == 14


def test_equal_contents_under_two_ids_are_two_orders(shop: Shop) -> None:
    """The fingerprint is compared under one id only."""
    assert shop.take("snack-7", FIRST) is True
    assert shop.take("snack-8", FIRST) is True
    assert shop.total == 14


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
numbers = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1), st.floats(allow_nan=False, allow_infinity=False, width=64)
)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


payloads = st.dictionaries(names, values, max_size=4)


def respelled(value: Any, rng: random.Random) -> str:
    """The same JSON value, written otherwise."""
    space = rng.choice(["", " ", "\n\t"])
    if isinstance(value, dict):
        items = list(value.items())
        rng.shuffle(items)
        inner = [f"{respelled(name, rng)}{space}:{space}{respelled(item, rng)}" for name, item in items]
        return "{" + space + f"{space},".join(inner) + space + "}"
    if isinstance(value, list):
        return "[" + f",{space}".join(respelled(item, rng) for item in value) + "]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return rng.choice(
            [json.dumps(value), f"{json.dumps(value)}{'' if 'e' in json.dumps(value) else 'e0'}"]
        )
    return json.dumps(value, ensure_ascii=rng.random() < 0.5)


def _read(payload: str) -> dict[str, Any]:
    message = parse(b'{"id":"a","qty":1,"schema":1,"payload":' + payload.encode() + b"}")
    assert message.payload is not None
    return message.payload


@given(payloads, st.randoms(use_true_random=False))
def test_every_spelling_has_one_fingerprint(payload: dict[str, Any], rng: random.Random) -> None:
    """What json writes and what anybody else may write."""
    try:
        usual, other = _read(json.dumps(payload)), _read(respelled(payload, rng))
    except Malformed:  # integers that only look like floats of more than 2**53
        return
    assert fingerprint(1, usual) == fingerprint(1, other)
    assert fingerprint(2, usual) != fingerprint(1, usual)


@given(payloads, payloads)
def test_two_contents_never_share_one(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Equal fingerprints mean equal content, bool and number told apart."""
    try:
        first, second = _read(json.dumps(one)), _read(json.dumps(other))
    except Malformed:
        return
    if fingerprint(1, first) == fingerprint(1, second):
        assert _typed(first) == _typed(second)


def _typed(value: Any) -> Any:
    """Equal only if JSON says so: Python takes True for 1."""
    if isinstance(value, dict):
        return {name: _typed(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return (type(value) is bool, value)
