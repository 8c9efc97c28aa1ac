"""Frames of other systems as Python values: what they take, refuse and say about it."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accelerator import accelerator

accelerator()
from relay_accel import AccelError, wire  # noqa: E402
from relay_accel.wire import aeron, nanomq, nbmq, zigbolt  # noqa: E402

NAK = aeron.NakFrame(session_id=7, stream_id=1001, term_id=3, term_offset=4096, length=1408)
I32 = st.integers(-(2**31), 2**31 - 1)
U32 = st.integers(0, 2**32 - 1)
U64 = st.integers(0, 2**64 - 1)


def test_values_are_frozen_and_compare_by_their_fields():
    assert dataclasses.replace(NAK) == NAK
    assert hash(dataclasses.replace(NAK)) == hash(NAK)
    with pytest.raises(dataclasses.FrozenInstanceError):
        NAK.length = 1


def test_a_refusal_has_its_parts_as_attributes():
    data = bytearray(NAK.to_bytes())
    data[24:28] = bytes(4)
    with pytest.raises(wire.WireError, match="length at byte 34: expected 1 to 2147483647, got 0") as refused:
        aeron.NakFrame.decode(b"0123456789" + data, 10)
    error = refused.value
    assert isinstance(error, AccelError)
    assert (error.code, error.field, error.offset) == ("INVALID", "length", 34)
    assert (error.expected, error.got) == ("1 to 2147483647", "0")


def test_an_offset_outside_of_the_buffer_is_misuse():
    with pytest.raises(ValueError, match="offset within the buffer of 4 bytes, got 5"):
        aeron.NakFrame.decode(bytes(4), 5)
    with pytest.raises(ValueError, match="offset within the buffer of 4 bytes, got -1"):
        NAK.encode(bytearray(4), -1)


def test_a_number_that_its_field_cannot_hold_is_refused_before_anything_is_written():
    buffer = bytearray(64)
    with pytest.raises(OverflowError):
        dataclasses.replace(NAK, session_id=2**31).encode(buffer)
    assert buffer == bytes(64)


def test_a_buffer_that_cannot_be_written_is_refused():
    with pytest.raises(TypeError):
        NAK.encode(bytes(64))


def test_a_walk_gives_the_frames_before_a_bad_one_and_then_raises():
    frame = aeron.DataFrame(0, 1, 2, 3, b"x" * 40)
    datagram = frame.to_bytes().ljust(96, b"\0") + frame.to_bytes()[:50]
    walked = aeron.walk(datagram)
    assert next(walked) == (0, frame)
    with pytest.raises(wire.WireError, match="frame_length at byte 96: expected 72 bytes, got 50 bytes"):
        next(walked)


def test_an_unknown_type_is_refused_by_its_number():
    data = bytearray(NAK.to_bytes())
    data[6] = 11
    assert aeron.FrameHeader.decode(data).frame_type == 11
    with pytest.raises(wire.WireError, match="type at byte 6: expected 0 to 7, got 11"):
        aeron.decode(data)


@given(I32, st.integers(16, 30), st.integers(0, 2**31 - 1), st.integers(0, 2**30))
def test_positions_count_terms_from_the_initial_one_also_where_ids_wrap(initial, shift, terms, offset):
    positions = aeron.TermPositions(initial, 1 << shift)
    term_id = (initial + terms + 2**31) % 2**32 - 2**31
    offset %= 1 << shift
    assert positions.position(term_id, offset) == (terms << shift) + offset
    assert positions.term_at((terms << shift) + offset) == (term_id, offset)


@given(U64, U32, U32, st.binary(max_size=200), st.booleans())
def test_packets_come_back(sequence, session_id, stream_id, payload, is_fragment):
    packet = zigbolt.NetworkPacket(zigbolt.PacketType.DATA, session_id, stream_id, sequence, payload, is_fragment)
    assert zigbolt.NetworkPacket.decode(packet.to_bytes()) == packet


def test_fragments_say_where_they_are():
    assert zigbolt.Fragment(4, 0, 1, b"abcd").flags == zigbolt.FragmentFlag.BEGIN | zigbolt.FragmentFlag.END
    assert zigbolt.Fragment(4, 1, 1, b"ab").flags == zigbolt.FragmentFlag(0)
    assert zigbolt.reassembly_key(1, 2) == (1 << 32) | 2


def test_every_lie_of_a_chunk_is_refused_by_its_field():
    sound = nbmq.DataFrame(1, 2, 3, 2, 1000, 500, 466, bytes(34))
    assert nbmq.DataFrame.decode(sound.to_bytes()) == sound
    for lie, field in [
        ({"part_index": 3}, "part_index"),
        ({"part_size": 1001}, "part_size"),
        ({"chunk_offset": 467}, "chunk_offset"),
        ({"chunk": b""}, "chunk_size"),
        ({"part_count": 1, "part_index": 0}, "part_size"),
    ]:
        with pytest.raises(wire.WireError) as refused:
            dataclasses.replace(sound, **lie).to_bytes()
        assert refused.value.field == field


def test_hashes_name_messages_sessions_and_frames():
    assert nbmq.fnv1a64(b"foobar") == 0x85944171F73967E8
    assert nbmq.message_id([b"foo", b"bar"], 1) == nbmq.fnv1a64(b"foobar" + (1).to_bytes(8, "big"))
    assert nbmq.session_id(2, "127.0.0.1:4000") == nbmq.fnv1a64((2).to_bytes(8, "big") + b"127.0.0.1:4000")


@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_flipped_bit_of_a_payload_is_a_wrong_checksum(payload, data):
    for value in (nanomq.Message(1, 2, 3, 4, payload), nanomq.Record(nanomq.RecordType.DATA, payload)):
        flipped = bytearray(value.to_bytes())
        bit = data.draw(st.integers(0, 8 * len(payload) - 1))
        flipped[-1 - bit // 8] ^= 1 << bit % 8
        with pytest.raises(wire.WireError) as refused:
            type(value).decode(flipped)
        assert refused.value.code == "CHECKSUM"
