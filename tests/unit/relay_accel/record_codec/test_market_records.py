"""TickMessage and OrderMessage: bytes as the golden files have them, single and in batches, through a ring."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accelerator import accelerator

ra = accelerator()
np = pytest.importorskip("numpy")
from relay_accel import sbe  # noqa: E402
from relay_accel.records import (  # noqa: E402
    ORDER_MESSAGES,
    TICK_MESSAGES,
    BookSide,
    OrderKind,
    OrderMessage,
    OrderSide,
    RecordPublisher,
    RecordSubscriber,
    TickMessage,
)

u32s, u64s = st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1)
i64s = st.integers(-(1 << 63), (1 << 63) - 1)
ticks = st.builds(TickMessage, u64s, u32s, i64s, u64s, st.sampled_from(BookSide))
orders = st.builds(OrderMessage, u64s, u64s, u32s, i64s, u64s, st.sampled_from(OrderSide), st.sampled_from(OrderKind))
TICK = TickMessage(1_700_000_000_000_000_000, 7, -5, 10, BookSide.ASK)
ORDER = OrderMessage(1, 2, 3, 4, 5, OrderSide.SELL, OrderKind.CANCEL)


@given(st.lists(ticks, max_size=5))
def test_ticks_come_back_one_by_one_as_a_list_and_as_an_array(records):
    data = TICK_MESSAGES.encode_all(records)
    assert data == b"".join(struct.pack("<QIqQB3x", *record) for record in records)
    assert TICK_MESSAGES.decode_all(data) == records
    array = TICK_MESSAGES.to_numpy(data)
    assert [TickMessage(*row) for row in array.tolist()] == records
    assert bytes(TICK_MESSAGES.from_numpy(array)) == data


@given(orders)
def test_an_order_comes_back_with_its_enums(record):
    data = ORDER_MESSAGES.encode(record)
    assert data == struct.pack("<QQIqQBB10x", *record)
    got = ORDER_MESSAGES.decode(b"x" + data + b"y", 1)
    assert got == record
    assert (type(got.side), type(got.kind)) == (OrderSide, OrderKind)


@pytest.mark.parametrize(("codec", "record"), [(TICK_MESSAGES, TICK), (ORDER_MESSAGES, ORDER)], ids=["tick", "order"])
def test_a_record_that_was_cut_anywhere_is_refused(codec, record):
    data = codec.encode(record)
    for length in range(codec.length):
        with pytest.raises(sbe.DecodeError, match=f"expected {codec.length} bytes, {length} are left"):
            codec.decode(data[:length])
        for many in (codec.decode_all, codec.to_numpy):
            with pytest.raises(sbe.DecodeError, match="whole records"):
                many(data + data[: length or 1])
    with pytest.raises(sbe.DecodeError, match="byte 1: expected"):
        codec.decode(data, 1)
    with pytest.raises(sbe.DecodeError, match="0 are left"):
        codec.decode(data, 1 << 70)
    with pytest.raises(sbe.DecodeError, match="offset of 0 or more"):
        codec.decode(data, -codec.length)


def test_a_flipped_bit_changes_a_field_or_is_refused_and_in_padding_changes_nothing():
    data = ORDER_MESSAGES.encode(ORDER)
    refused = 0
    for at in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            try:
                got = ORDER_MESSAGES.decode(flipped)
            except sbe.DecodeError as error:
                refused += 1
                assert at in (36, 37)
                assert f"byte {at}: OrderMessage.{'side' if at == 36 else 'kind'} is {flipped[at]}" in str(error)
            else:
                assert (got == ORDER) == (at >= 38)
    # Of 16 neighbours two are allowed: SELL → BUY and CANCEL → LIMIT.
    assert refused == 14


def test_an_unknown_byte_in_a_batch_is_told_with_its_offset_value_and_the_allowed_ones():
    data = bytearray(ORDER_MESSAGES.encode(ORDER) * 3)
    data[48 + 37] = 9
    expected = r"byte 85: OrderMessage.kind is 9, expected one of 0 \(LIMIT\), 1 \(MARKET\), 2 \(CANCEL\)"
    for many in (ORDER_MESSAGES.decode_all, ORDER_MESSAGES.to_numpy):
        with pytest.raises(sbe.DecodeError, match=expected):
            many(data)
        assert len(many(data, 96)) == 1
        assert len(many(data, 0, 1)) == 1
    rows = np.frombuffer(data, ORDER_MESSAGES.dtype)
    with pytest.raises(sbe.EncodeError, match=r"record 1: OrderMessage.kind is 9"):
        ORDER_MESSAGES.from_numpy(rows)


def test_an_array_is_over_the_buffer_and_read_only():
    data = bytearray(TICK_MESSAGES.encode(TICK) * 1_000)
    array = TICK_MESSAGES.to_numpy(data, 32, 10)
    assert array.shape == (10,)
    assert np.shares_memory(array, np.frombuffer(data, np.uint8))
    assert not array.flags.writeable
    data[32] ^= 1
    assert array["timestamp_ns"][0] != TICK.timestamp_ns, "no copy"
    assert len(TICK_MESSAGES.to_numpy(b"")) == len(TICK_MESSAGES.decode_all(b"")) == 0


def test_an_arrays_bytes_are_its_own_unless_its_padding_is_not_zero():
    rows = np.zeros(3, TICK_MESSAGES.dtype)
    rows["price"] = [1, 2, 3]
    assert np.shares_memory(np.frombuffer(TICK_MESSAGES.from_numpy(rows), np.uint8), rows)
    rows.view(np.uint8)[29::32] = 0xAA
    data = TICK_MESSAGES.from_numpy(rows)
    assert not any(bytes(data)[29::32])
    assert TICK_MESSAGES.to_numpy(data)["price"].tolist() == [1, 2, 3]
    assert rows.view(np.uint8)[29] == 0xAA, "the caller's array is left as it is"
    assert TICK_MESSAGES.to_numpy(TICK_MESSAGES.from_numpy(rows[::-1]))["price"].tolist() == [3, 2, 1]
    assert TICK_MESSAGES.to_numpy(rows)["price"].tolist() == [1, 2, 3], "an array is a buffer, too"
    assert [tick.price for tick in TICK_MESSAGES.decode_all(rows)] == [1, 2, 3]
    for other in (np.zeros(3), np.zeros((2, 2), TICK_MESSAGES.dtype), [TICK]):
        with pytest.raises(ValueError, match="expected one dimension"):
            TICK_MESSAGES.from_numpy(other)


def test_a_record_is_written_into_a_callers_buffer_whole_or_not_at_all():
    buffer = bytearray(b"\xcc" * 72)
    assert TICK_MESSAGES.encode_into(buffer, TICK, 8) == 40
    assert TICK_MESSAGES.decode(buffer, 8) == TICK
    assert buffer[:8] + buffer[40:] == b"\xcc" * 40
    before = bytes(buffer)
    for offset, bad in (
        (41, TICK),
        (-32, TICK),
        (1 << 70, TICK),
        (0, TICK._replace(volume=-1)),
        (0, TICK._replace(side=2)),
    ):
        with pytest.raises(sbe.EncodeError):
            TICK_MESSAGES.encode_into(buffer, bad, offset)
        assert bytes(buffer) == before
    with pytest.raises(TypeError):
        TICK_MESSAGES.encode_into(before, TICK)
    array = np.zeros(32, np.uint8)
    TICK_MESSAGES.encode_into(array.data, TICK)
    assert TICK_MESSAGES.decode(array) == TICK


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"side": 2}, r"TickMessage.side: expected one of 0 \(BID\), 1 \(ASK\), got 2"),
        ({"price": 1 << 63}, "TickMessage.price: expected an integer from -9223372036854775808"),
        ({"symbol_id": 1.5}, "TickMessage.symbol_id: expected an integer from 0 to 4294967295, got 1.5"),
        ({"volume": None}, "TickMessage.volume: expected an integer"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_field(change, text):
    with pytest.raises(sbe.EncodeError, match=text):
        TICK_MESSAGES.encode(TICK._replace(**change))


def test_a_record_of_another_class_is_refused():
    with pytest.raises(TypeError, match="expected a TickMessage, got OrderMessage"):
        TICK_MESSAGES.encode(ORDER)
    with pytest.raises(TypeError, match="expected a TickMessage, got tuple"):
        TICK_MESSAGES.encode(tuple(TICK))


def test_empty_buffers_of_any_shape_hold_no_records():
    for nothing in (b"", np.empty(0, TICK_MESSAGES.dtype), np.empty((0, 32), np.uint8)):
        assert TICK_MESSAGES.decode_all(nothing) == []
        assert TICK_MESSAGES.to_numpy(nothing).shape == (0,)
        assert TICK_MESSAGES.to_numpy(nothing).dtype == TICK_MESSAGES.dtype
    assert bytes(TICK_MESSAGES.from_numpy(np.empty(0, TICK_MESSAGES.dtype))) == b""
    for count, offset in ((-1, 0), (1, 0), (None, 1), (0, -1)):
        with pytest.raises(sbe.DecodeError, match="expected"):
            TICK_MESSAGES.to_numpy(b"", offset, count)


def test_a_claim_takes_a_record():
    ring = ra.Ring.heap(4_096)
    producer, consumer = ring.producer(), ring.consumer()
    with producer.claim(TICK_MESSAGES.length, 1) as claim:
        claim.put(TICK_MESSAGES.encode(TICK))
    assert TICK_MESSAGES.decode(consumer.take()) == TICK


def test_records_go_through_a_ring_as_values_and_as_arrays():
    ring = ra.FixedRing.heap(32, 16)
    publisher, subscriber = RecordPublisher(ring, TICK_MESSAGES), RecordSubscriber(ring, TICK_MESSAGES)
    assert publisher.publish([TICK, TICK._replace(price=9)]) == 2
    assert subscriber.poll_records() == [TICK, TICK._replace(price=9)]
    rows = np.zeros(100, TICK_MESSAGES.dtype)
    rows["price"] = range(100)
    taken = publisher.publish(rows)
    assert 0 < taken < 100
    got = subscriber.poll()
    assert got["price"].tolist() == list(range(taken))
    assert not got.flags.owndata
    with pytest.raises(sbe.EncodeError, match=r"record 1: TickMessage.side"):
        publisher.publish([TICK, TICK._replace(side=5)])
    assert subscriber.poll_records() == []
    with pytest.raises(ValueError, match="expected one dimension"):
        publisher.publish(np.zeros(3))


def test_a_ring_of_other_items_or_with_foreign_bytes_is_told():
    ring = ra.FixedRing.heap(32, 16)
    with pytest.raises(ValueError, match="expected records of 32 bytes"):
        RecordPublisher(ring, ORDER_MESSAGES)
    subscriber = RecordSubscriber(ring, TICK_MESSAGES)
    producer = ring.producer()
    producer.push(b"\xff" * 32)
    with pytest.raises(sbe.DecodeError, match="side is 255"):
        subscriber.poll()
    with pytest.raises(TypeError, match="objects"):
        RecordPublisher(ra.FixedRing.heap(8, 8), object)
    with pytest.raises(TypeError, match="RecordCodec"):
        RecordSubscriber(ra.FixedRing.heap(8, 8), "<i8").poll_records()
