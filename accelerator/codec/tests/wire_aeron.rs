//! Aeron's frames: whatever values they have come back; what is cut, forged or too long is refused.

mod wire_support;

use std::net::IpAddr;

use proptest::prelude::*;
use relay_accel_codec::wire::aeron::{
    DataFrame, ErrorFrame, Frame, FrameHeader, NakFrame, PadFrame, ResolutionEntry, ResolutionFrame, RttFrame,
    SetupFrame, StatusMessageFrame, TermPositions, control::StatusMessage, data::DataHeader, error::ErrorHeader,
    frames,
};
use relay_accel_codec::wire::{Expected, Fault, Flyweight, Got};
use wire_support::comes_back;

fn offsets() -> impl Strategy<Value = i32> {
    (0..i32::MAX / 32).prop_map(|count| count * 32)
}

prop_compose! {
    fn data_headers()(flags: u8, term_offset in offsets(), session_id: i32, stream_id: i32, term_id: i32, reserved_value: i64) -> DataHeader {
        DataHeader { flags, term_offset, session_id, stream_id, term_id, reserved_value }
    }
}

prop_compose! {
    fn setups()(
        flags: u8, session_id: i32, stream_id: i32, initial_term_id: i32, terms in 0..=i32::MAX,
        shift in 16..=30, offset in 0..=2_048_i32, mtu in 1..=2_047_i32, ttl: i32,
    ) -> SetupFrame {
        let active_term_id = initial_term_id.wrapping_add(terms);
        let (term_length, term_offset, mtu) = (1 << shift, offset * 32, mtu * 32);
        SetupFrame { flags, term_offset, session_id, stream_id, initial_term_id, active_term_id, term_length, mtu, ttl }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn data_comes_back(header in data_headers(), payload in prop::option::of(prop::collection::vec(any::<u8>(), 0..100))) {
        comes_back!(DataFrame, DataFrame { header, payload: payload.as_deref() });
    }

    #[test]
    fn padding_comes_back(header in data_headers(), frame_length in 32..=i32::MAX) {
        comes_back!(PadFrame, PadFrame { header, frame_length });
    }

    #[test]
    fn status_messages_come_back(
        flags: u8, session_id: i32, stream_id: i32, consumption_term_id: i32, consumption_term_offset in 0..=i32::MAX,
        receiver_window in 0..=i32::MAX, receiver_id: i64, group_tag: Option<i64>,
    ) {
        let header = StatusMessage {
            flags, session_id, stream_id, consumption_term_id, consumption_term_offset, receiver_window, receiver_id,
        };
        comes_back!(StatusMessageFrame, StatusMessageFrame { header, group_tag });
    }

    #[test]
    fn naks_come_back(
        flags: u8, session_id: i32, stream_id: i32, term_id: i32, term_offset in 0..=i32::MAX, length in 1..=i32::MAX,
    ) {
        comes_back!(NakFrame, NakFrame { flags, session_id, stream_id, term_id, term_offset, length });
    }

    #[test]
    fn setups_come_back(setup in setups()) {
        comes_back!(SetupFrame, setup);
    }

    #[test]
    fn rtt_measurements_come_back(
        flags: u8, session_id: i32, stream_id: i32, echo_timestamp_ns: i64, reception_delta_ns: i64, receiver_id: i64,
    ) {
        let frame = RttFrame { flags, session_id, stream_id, echo_timestamp_ns, reception_delta_ns, receiver_id };
        comes_back!(RttFrame, frame);
    }

    #[test]
    fn errors_come_back(
        flags: u8, session_id: i32, stream_id: i32, receiver_id: i64, error_code: i32, group_tag: Option<i64>,
        text in prop::collection::vec(any::<u8>(), 0..=60),
    ) {
        let flags = flags & !8 | if group_tag.is_some() { 8 } else { 0 };
        let header = ErrorHeader { flags, session_id, stream_id, receiver_id, error_code };
        comes_back!(ErrorFrame, ErrorFrame { header, group_tag, text: &text });
    }

    #[test]
    fn resolutions_come_back(
        entries in prop::collection::vec(
            (any::<u8>(), any::<u16>(), 0..=i32::MAX, any::<IpAddr>(), prop::collection::vec(any::<u8>(), 0..=20)), 0..4,
        ),
        flags: u8,
    ) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (flags, udp_port, age_in_ms, address, name) in &entries {
            let (flags, udp_port, age_in_ms, address) = (*flags, *udp_port, *age_in_ms, *address);
            let entry = ResolutionEntry { flags, udp_port, age_in_ms, address, name };
            comes_back!(ResolutionEntry, entry);
            let at = bytes.len();
            bytes.resize(at + entry.encoded_length(), 0);
            entry.encode(&mut bytes[at..]).unwrap();
            expected.push(entry);
        }
        let frame = ResolutionFrame::of(flags, &bytes).unwrap();
        comes_back!(ResolutionFrame, frame);
        prop_assert_eq!(frame.entries().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_datagram_is_walked_to_its_end_and_no_further(
        header in data_headers(), sizes in prop::collection::vec(0..100_usize, 1..6), pad in prop::option::of(32..4_096_i32),
    ) {
        let payload = [7; 100];
        let mut datagram = Vec::new();
        let mut expected = Vec::new();
        for size in sizes {
            let frame = Frame::Data(DataFrame { header, payload: Some(&payload[..size]) });
            expected.push((datagram.len(), frame));
            append(&mut datagram, &frame);
        }
        if let Some(frame_length) = pad {
            let frame = Frame::Pad(PadFrame { header, frame_length });
            expected.push((datagram.len(), frame));
            append(&mut datagram, &frame);
        }
        let found: Result<Vec<_>, _> = frames(&datagram).collect();
        prop_assert_eq!(found.as_ref(), Ok(&expected));
        for cut in 0..datagram.len() {
            let walked: Vec<_> = frames(&datagram[..cut]).collect();
            let (last, whole) = walked.split_last().map_or((None, &[][..]), |(last, whole)| (Some(last), whole));
            prop_assert!(whole.iter().zip(&expected).all(|(got, wanted)| got.as_ref() == Ok(wanted)));
            prop_assert!(last.is_none_or(|last| last.is_err() || expected.contains(last.as_ref().unwrap())));
        }
    }

    #[test]
    fn positions_come_back_also_where_term_ids_wrap(initial: i32, shift in 16..=30, terms in 0..=i32::MAX, offset: u32) {
        let positions = TermPositions::new(initial, 1 << shift).unwrap();
        let offset = (offset % (1_u32 << shift)) as i32;
        let term_id = initial.wrapping_add(terms);
        let position = positions.position(term_id, offset);
        prop_assert_eq!(position, i64::from(terms) * (1_i64 << shift) + i64::from(offset));
        prop_assert_eq!(positions.term_at(position), (term_id, offset));
    }
}

fn append(datagram: &mut Vec<u8>, frame: &Frame<'_>) {
    let at = datagram.len();
    datagram.resize(at + frame.encoded_length().next_multiple_of(32), 0);
    frame.encode(&mut datagram[at..]).unwrap();
}

#[test]
fn a_refusal_names_field_offset_what_was_expected_and_what_it_was() {
    let nak = NakFrame { length: 64, ..NakFrame::default() };
    let mut bytes = [0; NakFrame::LENGTH];
    nak.encode(&mut bytes).unwrap();
    bytes[24..28].copy_from_slice(&(-5_i32).to_le_bytes());
    let refused = NakFrame::decode(&bytes).unwrap_err();
    assert_eq!((refused.fault, refused.field, refused.offset), (Fault::Invalid, "length", 24));
    assert_eq!((refused.expected, refused.got), (Expected::Within(1, i32::MAX.into()), Got::Number(-5)));
    assert_eq!(refused.to_string(), "length at byte 24: expected 1 to 2147483647, got -5");
    let refused = NakFrame::decode(&bytes[..27]).unwrap_err();
    assert_eq!(
        (refused.fault, refused.to_string().as_str()),
        (Fault::Truncated, "frame_length at byte 0: expected 28 bytes, got 27 bytes")
    );
}

#[test]
fn frames_of_another_version_type_or_length_are_refused() {
    let rtt = RttFrame::default();
    let mut whole = [0; 48];
    rtt.encode(&mut whole).unwrap();
    for (at, value, field) in
        [(4, 1, "version"), (6, 2, "type"), (0, 39, "frame_length"), (0, 41, "frame_length"), (3, 0x80, "frame_length")]
    {
        let mut bytes = whole;
        bytes[at] = value;
        assert_eq!(RttFrame::decode(&bytes).unwrap_err().field, field, "byte {at} = {value}");
    }
    whole[6] = 11;
    assert_eq!(Frame::decode(&whole).unwrap_err().field, "type");
    assert_eq!(FrameHeader::decode(&whole).map(|header| header.frame_type), Ok(11));
}

#[test]
fn a_heartbeat_is_alone_in_its_datagram() {
    let mut bytes = [0; 64];
    let beat = DataFrame { header: DataHeader { flags: 0xc0, ..DataHeader::default() }, payload: None };
    assert_eq!(beat.encode(&mut bytes), Ok(32));
    assert_eq!(bytes[..4], [0; 4]);
    assert_eq!(DataFrame::decode(&bytes[..32]), Ok(beat));
    assert_eq!(DataFrame::decode(&bytes).unwrap_err().field, "datagram");
    assert_eq!(frames(&bytes).count(), 1);
}

#[test]
fn a_setup_that_contradicts_itself_is_refused() {
    let sound =
        SetupFrame { term_length: 1 << 16, mtu: 1_408, initial_term_id: 7, active_term_id: 7, ..SetupFrame::default() };
    let mut buffer = [0; 40];
    assert_eq!(sound.encode(&mut buffer), Ok(40));
    for (forged, field) in [
        (SetupFrame { term_length: 65_537, ..sound }, "term_length"),
        (SetupFrame { term_length: 1 << 15, ..sound }, "term_length"),
        (SetupFrame { term_offset: 8, ..sound }, "term_offset"),
        (SetupFrame { term_offset: (1 << 16) + 32, ..sound }, "term_offset"),
        (SetupFrame { active_term_id: 6, ..sound }, "active_term_id"),
        (SetupFrame { mtu: 1_409, ..sound }, "mtu"),
        (SetupFrame { mtu: 1 << 16, ..sound }, "mtu"),
    ] {
        assert_eq!(forged.encode(&mut buffer).unwrap_err().field, field);
    }
}

#[test]
fn positions_saturate_outside_of_the_stream() {
    let positions = TermPositions::new(i32::MAX, 1 << 16).unwrap();
    assert_eq!(positions.shift(), 16);
    assert_eq!(positions.position(i32::MIN, 32), 65_568);
    assert_eq!(positions.position(i32::MAX - 1, 32), 0);
    assert_eq!(positions.position(i32::MAX, i32::MAX), 1 << 16);
    assert_eq!(positions.position(i32::MAX, -1), 0);
    assert_eq!(positions.term_at(-1), (i32::MAX, 0));
    assert_eq!(positions.term_at(i64::MAX), (i32::MAX - 1 + i32::MIN, 65_535));
    assert!(TermPositions::new(0, 1 << 15).is_err());
    assert!(TermPositions::new(0, 3 << 20).is_err());
}
