//! Frames of `ZigBolt`, nbmq and `NanoMQ`: what they say comes back, and what contradicts itself is refused.

mod wire_support;

use proptest::collection::vec;
use proptest::prelude::*;
use relay_accel_codec::wire::nanomq::{self, Message, Record, TcpFrame, TcpHeader};
use relay_accel_codec::wire::nbmq::{self, ControlFrame, DataFrame};
use relay_accel_codec::wire::zigbolt::{self, Fragment, NakBody, NetworkPacket, PacketType};
use relay_accel_codec::wire::{Fault, Flyweight};
use wire_support::comes_back;

fn packet(packet_type: PacketType, payload: &[u8]) -> NetworkPacket<'_> {
    NetworkPacket { packet_type, session_id: 1, stream_id: 2, sequence: 3, is_fragment: false, payload }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packets_come_back(
        kind in 0..3_usize, session_id: u32, stream_id: u32, sequence: u64, is_fragment: bool,
        payload in vec(any::<u8>(), 0..60),
    ) {
        let packet_type = [PacketType::Data, PacketType::Setup, PacketType::Teardown][kind];
        let is_fragment = is_fragment && packet_type == PacketType::Data;
        let packet = NetworkPacket { packet_type, session_id, stream_id, sequence, is_fragment, payload: &payload };
        comes_back!(NetworkPacket, packet);
        comes_back!(NetworkPacket, NetworkPacket { packet_type: PacketType::Heartbeat, is_fragment: false, payload: &[], ..packet });
    }

    #[test]
    fn nak_bodies_come_back(session_id: u32, stream_id: u32, from_sequence in 0..=u64::MAX - u64::from(u32::MAX), count in 1..=u32::MAX) {
        comes_back!(NakBody, NakBody { session_id, stream_id, from_sequence, count });
    }

    #[test]
    fn fragments_come_back(before in 0..1_000_000_u32, after in 0..1_000_000_u32, message_id: u32, payload in vec(any::<u8>(), 1..60)) {
        let total_length = before + after + payload.len() as u32;
        let fragment = Fragment { total_length, fragment_offset: before, message_id, payload: &payload };
        comes_back!(Fragment, fragment);
        prop_assert_eq!(fragment.flags(), u8::from(before == 0) | u8::from(after == 0) << 1);
    }

    #[test]
    fn nbmq_data_comes_back(
        session_id: u64, message_id: u64, part_count in 1..=u8::MAX, index: u8, others: u16, before: u16, after: u16,
        chunk in vec(any::<u8>(), 1..=466),
    ) {
        let part_size = u32::from(before) + u32::from(after) + chunk.len() as u32;
        let message_size = part_size + if part_count == 1 { 0 } else { u32::from(others) };
        let (part_index, chunk_offset) = (index % part_count, before.into());
        let frame = DataFrame { session_id, message_id, part_count, part_index, message_size, part_size, chunk_offset, chunk: &chunk };
        comes_back!(DataFrame, frame);
    }

    #[test]
    fn control_frames_come_back(kind in 1..=5_u8, session_id: u64, hash: u64) {
        let session_id = if kind == 1 { 0 } else { session_id };
        let frame = ControlFrame::of(kind, session_id, (kind == 5).then_some(hash)).unwrap();
        comes_back!(ControlFrame, frame);
    }

    #[test]
    fn nanomq_messages_come_back_and_every_flipped_bit_of_a_payload_is_found(
        id: u64, timestamp_ns: u64, topic_id: u32, flags in 0..16_u32, payload in vec(any::<u8>(), 0..60),
    ) {
        let message = Message { id, timestamp_ns, topic_id, flags, payload: &payload };
        comes_back!(Message, message);
        let mut bytes = vec![0; message.encoded_length()];
        message.encode(&mut bytes).unwrap();
        // Bytes and their checksum, and the zeros.
        for bit in (24 * 8..28 * 8).chain(32 * 8..bytes.len() * 8) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Message::decode(&bytes).is_err(), "bit {}", bit);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn log_records_come_back_and_every_flipped_bit_is_found(record_type in 1..=3_u32, payload in vec(any::<u8>(), 0..60)) {
        let record = Record { record_type, payload: &payload };
        comes_back!(Record, record);
        let mut bytes = vec![0; record.encoded_length()];
        record.encode(&mut bytes).unwrap();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Record::decode(&bytes).is_err(), "bit {}", bit);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn tcp_frames_come_back(frame_type in 1..=6_u32, payload in vec(any::<u8>(), 0..60)) {
        comes_back!(TcpFrame, TcpFrame { frame_type, payload: &payload });
        comes_back!(TcpHeader, TcpHeader { frame_type, length: payload.len() as u32 });
    }
}

#[test]
fn a_packet_says_only_what_its_type_can_say() {
    let mut buffer = [0; 64];
    assert_eq!(packet(PacketType::Nak, &[0; 23]).encode(&mut buffer).unwrap_err().field, "payload_length");
    assert_eq!(packet(PacketType::Heartbeat, &[0]).encode(&mut buffer).unwrap_err().field, "payload_length");
    let fragment = NetworkPacket { is_fragment: true, ..packet(PacketType::Setup, &[]) };
    assert_eq!(fragment.encode(&mut buffer).unwrap_err().field, "reserved");
    packet(PacketType::Data, &[]).encode(&mut buffer).unwrap();
    for (at, value, field) in [(0, 2, "version"), (1, 5, "type"), (21, 1, "payload_length")] {
        let mut bytes = buffer;
        bytes[at] = value;
        assert_eq!(NetworkPacket::decode(&bytes).unwrap_err().field, field);
    }
}

#[test]
fn a_nak_near_the_end_of_all_sequences_is_refused() {
    let mut buffer = [0; 24];
    let body = NakBody { from_sequence: u64::MAX - 4, count: 4, ..NakBody::default() };
    assert_eq!(body.encode(&mut buffer), Ok(24));
    assert_eq!(NakBody { count: 5, ..body }.encode(&mut buffer).unwrap_err().field, "from_sequence");
    assert_eq!(NakBody { count: 0, ..body }.encode(&mut buffer).unwrap_err().field, "count");
}

#[test]
fn a_fragment_that_does_not_fit_its_message_is_refused() {
    let sound = Fragment { total_length: 10, fragment_offset: 8, message_id: 5, payload: &[1, 2] };
    let mut buffer = [0; 18];
    assert_eq!(sound.encode(&mut buffer), Ok(18));
    assert_eq!(buffer[14], zigbolt::END);
    for (forged, field) in [
        (Fragment { fragment_offset: 9, ..sound }, "fragment_offset"),
        (Fragment { fragment_offset: u32::MAX, ..sound }, "fragment_offset"),
        (Fragment { total_length: 1, fragment_offset: 0, ..sound }, "fragment_offset"),
        (Fragment { payload: &[], ..sound }, "fragment_length"),
    ] {
        assert_eq!(forged.encode(&mut buffer).unwrap_err().field, field);
    }
    buffer[14] = zigbolt::BEGIN;
    assert_eq!(Fragment::decode(&buffer).unwrap_err().field, "flags");
    assert_eq!(zigbolt::reassembly_key(0x0102_0304, 0x0506_0708), 0x0102_0304_0506_0708);
}

#[test]
fn every_lie_of_an_nbmq_frame_is_refused() {
    let sound = DataFrame {
        session_id: 1,
        message_id: 2,
        part_count: 3,
        part_index: 2,
        message_size: 1_000,
        part_size: 500,
        chunk_offset: 466,
        chunk: &[9; 34],
    };
    let mut buffer = [0; 600];
    assert_eq!(sound.encode(&mut buffer), Ok(68));
    for (lie, field) in [
        (DataFrame { part_count: 0, ..sound }, "part_count"),
        (DataFrame { part_index: 3, ..sound }, "part_index"),
        (DataFrame { part_size: 1_001, ..sound }, "part_size"),
        (DataFrame { part_count: 1, part_index: 0, ..sound }, "part_size"),
        (DataFrame { part_size: 499, ..sound }, "chunk_offset"),
        (DataFrame { chunk_offset: 467, ..sound }, "chunk_offset"),
        (DataFrame { chunk_offset: u32::MAX, ..sound }, "chunk_offset"),
        (DataFrame { part_size: 33, chunk_offset: 0, ..sound }, "chunk_size"),
        (DataFrame { chunk: &[], ..sound }, "chunk_size"),
        (DataFrame { chunk_offset: 0, chunk: &[0; 467], ..sound }, "chunk_size"),
    ] {
        assert_eq!(lie.encode(&mut buffer).unwrap_err().field, field);
        assert_eq!(buffer[68..], [0; 532], "nothing was written");
    }
    assert_eq!(DataFrame::decode(&buffer[..69]).unwrap_err().field, "chunk_size");
    buffer[29] = 35;
    assert_eq!(DataFrame::decode(&buffer[..68]).unwrap_err().fault, Fault::Truncated);
    let empty =
        DataFrame { part_count: 1, part_index: 0, message_size: 0, part_size: 0, chunk_offset: 0, chunk: &[], ..sound };
    assert_eq!(empty.encode(&mut buffer), Ok(34));
}

#[test]
fn control_frames_are_as_long_as_their_kind() {
    let mut bytes = [0; 18];
    assert_eq!(ControlFrame::Ack { session_id: 7, frame_hash: 0x0102 }.encode(&mut bytes), Ok(18));
    assert_eq!(bytes, [1, 5, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 2]);
    bytes[1] = 4;
    assert_eq!(ControlFrame::decode(&bytes).unwrap_err().field, "datagram");
    bytes[1] = 1;
    assert_eq!(ControlFrame::decode(&bytes[..10]).unwrap_err().field, "session");
    bytes[1] = 6;
    assert_eq!(ControlFrame::decode(&bytes[..10]).unwrap_err().field, "kind");
    assert!(ControlFrame::of(4, 7, Some(1)).is_err());
    assert!(ControlFrame::of(5, 7, None).is_err());
}

#[test]
fn hashes_are_those_of_the_published_test_vectors() {
    assert_eq!(nbmq::fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(nbmq::fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(nbmq::fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    let parts: [&[u8]; 2] = [b"foo", b"bar"];
    assert_eq!(nbmq::message_id(parts, 1), nbmq::fnv1a64(b"foobar\0\0\0\0\0\0\0\x01"));
    assert_eq!(nbmq::session_id(2, "127.0.0.1:4000"), nbmq::fnv1a64(b"\0\0\0\0\0\0\0\x02127.0.0.1:4000"));
    assert_eq!(nanomq::crc32(b""), 0);
    assert_eq!(nanomq::crc32(b"123456789"), 0xcbf4_3926);
}

#[test]
fn a_reader_of_tcp_makes_no_room_for_what_is_too_long() {
    let header = TcpHeader { frame_type: 1, length: nanomq::TCP_PAYLOAD_LENGTH_MAX + 1 };
    assert_eq!(header.encode(&mut [0; 8]).unwrap_err().field, "length");
    assert_eq!(TcpHeader::decode(&[7, 0, 0, 0, 0, 0, 0, 0]).unwrap_err().field, "type");
}
