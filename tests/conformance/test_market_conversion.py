"""The converter of market messages gives byte for byte what objects, schema and generic codec give, both ways."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError, Message
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.accelerator import accelerator

accelerator()
from relay.protocol.registry import SBE_IDS, SYMBOL_DEFINITION_ID, Channel, channel_types  # noqa: E402
from relay_accel import market, sbe  # noqa: E402
from tests.support import market_sbe_oracle as oracle  # noqa: E402
from tests.support.market_messages import any_message  # noqa: E402

TYPES = {number: channel_types(Channel.MARKET_DATA)[number] for number in SBE_IDS}
NUMBERS = st.integers(0, 2**64 - 1)
UNFIT = "does not fit"


def varint(number: int) -> bytes:
    groups = [number >> shift & 0x7F for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def tagged(number: int, wire: int, value: bytes) -> bytes:
    return varint(number << 3 | wire) + value


FIELD_NUMBERS = st.integers(0, 24) | st.sampled_from([2_000, 2**29 - 1])
LEAVES = (
    st.builds(lambda number, value: tagged(number, 0, varint(value)), FIELD_NUMBERS, NUMBERS)
    | st.builds(lambda number, value: tagged(number, 1, value), FIELD_NUMBERS, st.binary(min_size=8, max_size=8))
    | st.builds(
        lambda number, value: tagged(number, 2, varint(len(value)) + value), FIELD_NUMBERS, st.binary(max_size=9)
    )
    | st.builds(lambda number, value: tagged(number, 5, value), FIELD_NUMBERS, st.binary(min_size=4, max_size=4))
)
FIELDS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda number, parts: tagged(number, 3, b"".join(parts)) + varint(number << 3 | 4),
        FIELD_NUMBERS,
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)
"""Any field: mostly unknown, or known by its number with a value of another kind."""


def wires(message_class: type[Message]) -> st.SearchStrategy[bytes]:
    """Protobuf of several messages one behind the other, which is their merge, and of fields of any kind between."""
    messages = any_message(message_class).map(lambda message: message.SerializeToString())
    return st.lists(messages | messages | FIELDS, max_size=5).map(b"".join)


@st.composite
def mutated(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        byte = draw(st.sampled_from([0, 1, 0x1B, 0x1C, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
        match draw(st.integers(0, 3)):
            case 0:
                del data[at:]
            case 1:
                data.insert(at, byte)
            case 2:
                data[at : at + 1] = bytes([byte])
            case _:
                data[at : at + draw(st.integers(1, 4))] = b""
    return bytes(data)


def expected_record(message: Message, symbol_id: int) -> bytes | str:
    try:
        return oracle.record_of(message, symbol_id)
    except (ValueError, sbe.EncodeError):
        return UNFIT


def converted(type_id: int, wire: bytes, symbol_id: int) -> bytes | str | None:
    try:
        return market.to_sbe(type_id, wire, symbol_id)
    except sbe.DecodeError:
        return None
    except sbe.EncodeError:
        return UNFIT


@pytest.mark.parametrize("type_id", SBE_IDS)
def test_bytes_are_taken_exactly_where_protobuf_takes_them_and_give_the_same_record(type_id: int) -> None:
    @settings(max_examples=1_000)
    @given(mutated(wires(TYPES[type_id])), NUMBERS)
    def same(wire: bytes, symbol_id: int) -> None:
        try:
            message = TYPES[type_id].FromString(wire)
        except DecodeError:
            assert converted(type_id, wire, symbol_id) is None
            return
        expected = expected_record(message, symbol_id)
        assert converted(type_id, wire, symbol_id) == expected
        ticker = message.ticker  # type: ignore[attr-defined]
        assert market.ticker(type_id, wire) == ticker
        if ticker and expected is not UNFIT:
            assert market.to_sbe_by(type_id, wire, {ticker: symbol_id}) == expected
            assert market.to_sbe_by(type_id, wire, {ticker + "B": symbol_id}) is None

    same()


@pytest.mark.parametrize("type_id", SBE_IDS)
def test_records_are_taken_exactly_where_the_schema_takes_them_and_give_the_same_protobuf(type_id: int) -> None:
    records = st.builds(oracle.record_of, any_message(TYPES[type_id]), NUMBERS)

    @settings(max_examples=1_000)
    @given(mutated(records), st.sampled_from(["", "BTC/USDT.BINANCE", "ΒΤC/€.BÖRSE"]))
    def same(record: bytes, ticker: str) -> None:
        try:
            expected = oracle.message_of(record, ticker).SerializeToString()
        except (sbe.DecodeError, KeyError, TypeError, ValueError):
            with pytest.raises(sbe.DecodeError, match="expected"):
                market.to_protobuf(record, ticker)
            return
        assert market.to_protobuf(record, ticker) == expected
        symbol_id = market.head(record)[1]
        if symbol_id:
            assert market.to_protobuf_by(record, {symbol_id: ticker}) == (record[3], expected)
            assert market.to_protobuf_by(record, {}) is None

    same()


@settings(max_examples=500)
@given(
    mutated(
        st.builds(market.define, NUMBERS, NUMBERS, st.text(max_size=20))
        | st.sampled_from(SBE_IDS).map(lambda type_id: oracle.record_of(TYPES[type_id](), 7))
    )
)
def test_heads_are_those_of_the_schema(record: bytes) -> None:
    try:
        template_id, values = oracle.values_of(record)
    except sbe.DecodeError:
        with pytest.raises(sbe.DecodeError, match="expected"):
            market.head(record)
        return
    rest = values[1:3] if template_id == SYMBOL_DEFINITION_ID else (0, "")
    assert market.head(record) == (template_id, values[0], *rest)


@given(NUMBERS, NUMBERS, st.text())
def test_definitions_are_those_of_the_schema(symbol_id: int, epoch: int, ticker: str) -> None:
    values = {"symbol_id": symbol_id, "epoch": epoch, "ticker": ticker}
    expected = oracle.SCHEMA.messages["SymbolDefinition"].encode(values)
    assert market.define(symbol_id, epoch, ticker) == b"\2" + expected


def test_any_buffer_is_read_and_refusals_say_what_was_expected() -> None:
    tick = TYPES[4](ticker="A", price=7)  # type: ignore[call-arg]
    wire = tick.SerializeToString()
    record = market.to_sbe(4, memoryview(bytearray(wire)), 1)
    assert market.to_protobuf(bytearray(record), "A") == wire
    assert market.to_sbe_by(30, b"", {"": 9}) == market.to_sbe(30, b"", 0), "the empty ticker is number 0"
    assert market.to_protobuf_by(market.to_sbe(30, b"\x2a\0", 0), {0: "A"}) == (30, b"\x2a\0")
    assert market.to_protobuf_by(market.define(1, 1, "A"), {1: "A"}) is None
    with pytest.raises(KeyError, match=r"expected type id 4 \(Tick\).*got 6"):
        market.to_sbe(6, b"", 0)
    with pytest.raises(
        sbe.DecodeError, match="Tick in protobuf: length at byte 1: expected no more bytes than are left"
    ):
        market.to_sbe(4, b"\x12\x05A", 0)
    with pytest.raises(
        sbe.EncodeError, match=r"Gap does not fit SBE: state at byte 51: .* got 255; send it as protobuf"
    ):
        market.to_sbe(13, TYPES[13](state=255).SerializeToString(), 0)  # type: ignore[call-arg]
    with pytest.raises(sbe.DecodeError, match="schema_id at byte 5: expected 2, got 3"):
        market.head(record[:5] + b"\3" + record[6:])
