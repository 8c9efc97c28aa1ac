"""Whatever bytes come, protocols answer with events and never raise."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestors.engine.feed_values import BadTrade, Leave, Proof, Refused, Subscribed, Trades
from ingestors.exchanges.live.port import LiveProtocol
from relay.protocol.scaled import INT64_MAX
from tests.unit.ingestors.live.messages import PROTOCOLS

NAMES = pytest.mark.parametrize("name", sorted(PROTOCOLS))
EVENTS = (Trades, Proof, Subscribed, Refused, BadTrade, Leave)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
VALUES = st.recursive(SCALARS, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=8), x, max_size=3))


def _check(protocol: LiveProtocol, data: bytes) -> None:
    for event in protocol.on_message(data, 1):
        assert isinstance(event, EVENTS)
        if isinstance(event, Trades):
            for trade in event.trades:
                assert 0 < trade.price <= INT64_MAX
                assert 0 < trade.amount <= INT64_MAX
                assert 0 <= trade.number <= INT64_MAX
    assert all(isinstance(text, bytes) for text in protocol.on_tick(1))


@NAMES
@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing(name: str, data: bytes) -> None:
    _check(PROTOCOLS[name][0](), data)


@NAMES
@given(data=st.data())
def test_cut_and_changed_messages_raise_nothing(name: str, data: st.DataObject) -> None:
    make, texts = PROTOCOLS[name]
    text = bytearray(data.draw(st.sampled_from(texts)))
    for _ in range(data.draw(st.integers(0, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    _check(make(), bytes(text[: data.draw(st.integers(0, len(text)))]) if data.draw(st.booleans()) else bytes(text))


@NAMES
@given(data=st.data())
def test_messages_with_a_field_of_another_kind_raise_nothing(name: str, data: st.DataObject) -> None:
    make, texts = PROTOCOLS[name]
    value = json.loads(data.draw(st.sampled_from(texts)))
    spots: list[tuple[object, object]] = []

    def collect(node: object) -> None:
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            spots.append((node, key))
            collect(node[key])  # type: ignore[index]

    collect(value)
    node, key = data.draw(st.sampled_from(spots))
    node[key] = data.draw(VALUES)  # type: ignore[index]
    _check(make(), json.dumps(value).encode())


@NAMES
def test_deep_nesting_and_odd_encodings_raise_nothing(name: str) -> None:
    make, texts = PROTOCOLS[name]
    for data in (
        b"[" * 100_000,
        b'{"data":' * 50_000,
        b'{"channel":"trade","data":' + b"[" * 100_000,
        b"\xff\xfe",
        b"",
        b"null",
    ):
        _check(make(), data)
    _check(make(), texts[0].decode().encode("utf-16"))
    _check(make(), texts[0].replace(b"BTC", b"\xff\xfe\xfd"))
