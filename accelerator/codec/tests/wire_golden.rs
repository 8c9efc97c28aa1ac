//! Golden frames in `proto/golden/wire`, packed by hand: this library reads from them what their index says, and writes them.

use std::fs;
use std::path::PathBuf;

use relay_accel_codec::wire::Flyweight;
use relay_accel_codec::wire::aeron::control::StatusMessage;
use relay_accel_codec::wire::aeron::data::DataHeader;
use relay_accel_codec::wire::aeron::error::ErrorHeader;
use relay_accel_codec::wire::aeron::{
    DataFrame, ErrorFrame, NakFrame, PadFrame, ResolutionEntry, ResolutionFrame, RttFrame, SetupFrame,
    StatusMessageFrame,
};
use relay_accel_codec::wire::compression::Compression;
use relay_accel_codec::wire::nanomq::{Message, Record, TcpFrame};
use relay_accel_codec::wire::nbmq::{self, ControlFrame};
use relay_accel_codec::wire::zigbolt::{Fragment, NakBody, NetworkPacket, PacketType};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../proto/golden/wire")
}

fn bytes_of(name: &str) -> Vec<u8> {
    fs::read(folder().join(format!("{name}.bin"))).unwrap()
}

macro_rules! golden {
    ($name:literal, $type:ident, $value:expr) => {{
        let (bytes, value) = (bytes_of($name), $value);
        assert_eq!($type::decode(&bytes), Ok(value), "{}", $name);
        let mut written = vec![0xcc; bytes.len()];
        assert_eq!(value.encode(&mut written), Ok(bytes.len()), "{}", $name);
        assert_eq!(written, bytes, "{}", $name);
    }};
}

fn place() -> DataHeader {
    DataHeader { flags: 0xc0, term_offset: 4_096, session_id: -7, stream_id: 1_001, term_id: 3, reserved_value: 0 }
}

#[test]
fn aeron_frames_of_terms() {
    let header = DataHeader { term_id: i32::MAX, reserved_value: 11, ..place() };
    golden!("aeron_data", DataFrame, DataFrame { header, payload: Some(b"sixteen bytes it") });
    let header = DataHeader { flags: 0xe0, term_offset: 64, ..place() };
    golden!("aeron_heartbeat", DataFrame, DataFrame { header, payload: None });
    let header = DataHeader { term_offset: 61_440, ..place() };
    golden!("aeron_pad", PadFrame, PadFrame { header, frame_length: 4_096 });
}

#[test]
fn aeron_frames_of_control() {
    let header = StatusMessage {
        flags: 0x80,
        session_id: -7,
        stream_id: 1_001,
        consumption_term_id: 3,
        consumption_term_offset: 8_192,
        receiver_window: 131_072,
        receiver_id: -2,
    };
    golden!("aeron_status_message", StatusMessageFrame, StatusMessageFrame { header, group_tag: None });
    let header = StatusMessage { flags: 0, consumption_term_id: i32::MIN, ..header };
    golden!("aeron_status_message_tagged", StatusMessageFrame, StatusMessageFrame { header, group_tag: Some(99) });
    let (session_id, stream_id) = (-7, 1_001);
    let nak = NakFrame { flags: 0, session_id, stream_id, term_id: 3, term_offset: 4_096, length: 1_408 };
    golden!("aeron_nak", NakFrame, nak);
    let setup = SetupFrame {
        flags: 0x40,
        term_offset: 128,
        session_id,
        stream_id,
        initial_term_id: i32::MAX,
        active_term_id: i32::MIN,
        term_length: 65_536,
        mtu: 1_408,
        ttl: 4,
    };
    golden!("aeron_setup", SetupFrame, setup);
    let echo_timestamp_ns = 1_700_000_000_000_000_000;
    let rtt =
        RttFrame { flags: 0x80, session_id, stream_id, echo_timestamp_ns, reception_delta_ns: 2_500, receiver_id: 77 };
    golden!("aeron_rtt", RttFrame, rtt);
}

#[test]
fn aeron_errors_and_resolutions() {
    let header = ErrorHeader { flags: 0, session_id: -7, stream_id: 1_001, receiver_id: 77, error_code: 5 };
    golden!("aeron_error", ErrorFrame, ErrorFrame { header, group_tag: None, text: "no such stream: café".as_bytes() });
    let header = ErrorHeader { flags: 8, ..header };
    golden!("aeron_error_tagged", ErrorFrame, ErrorFrame { header, group_tag: Some(-3), text: b"" });
    let bytes = bytes_of("aeron_resolution");
    golden!("aeron_resolution", ResolutionFrame, ResolutionFrame::of(0, &bytes[8..]).unwrap());
    let (first, second) = ("127.0.0.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
    let expected = [
        ResolutionEntry { flags: 0x80, udp_port: 8_050, age_in_ms: 0, address: first, name: b"alpha" },
        ResolutionEntry { flags: 0, udp_port: 8_051, age_in_ms: 1_500, address: second, name: b"bet" },
    ];
    assert!(ResolutionFrame::decode(&bytes).unwrap().entries().eq(expected));
}

#[test]
fn frames_of_the_original_channel() {
    let packet = NetworkPacket {
        packet_type: PacketType::Data,
        session_id: 0xdead_beef,
        stream_id: 42,
        sequence: 1 << 63,
        is_fragment: true,
        payload: b"bytes",
    };
    golden!("zigbolt_packet", NetworkPacket, packet);
    golden!("zigbolt_nak", NakBody, NakBody { session_id: 0xdead_beef, stream_id: 42, from_sequence: 1_000, count: 3 });
    let fragment = Fragment { total_length: 10, fragment_offset: 7, message_id: 9, payload: b"end" };
    golden!("zigbolt_fragment", Fragment, fragment);
}

#[test]
fn frames_of_nbmq() {
    use nbmq::DataFrame;
    let frame = DataFrame {
        session_id: u64::MAX,
        message_id: 0x0102_0304_0506_0708,
        part_count: 3,
        part_index: 1,
        message_size: 1_000,
        part_size: 470,
        chunk_offset: 466,
        chunk: b"tail",
    };
    golden!("nbmq_data", DataFrame, frame);
    golden!("nbmq_connect", ControlFrame, ControlFrame::Connect);
    let frame_hash = nbmq::fnv1a64(b"foobar");
    golden!("nbmq_ack", ControlFrame, ControlFrame::Ack { session_id: 7, frame_hash });
}

#[test]
fn frames_of_nanomq() {
    let (timestamp_ns, payload) = (1_700_000_000_000_000_001, &b"123456789"[..]);
    golden!("nanomq_message", Message, Message { id: 1, timestamp_ns, topic_id: 12, flags: 12, payload });
    let empty = Message { id: 2, timestamp_ns: 0, topic_id: 12, flags: 0, payload: b"" };
    golden!("nanomq_message_empty", Message, empty);
    golden!("nanomq_record", Record, Record { record_type: 1, payload });
    golden!("nanomq_tcp", TcpFrame, TcpFrame { frame_type: 1, payload });
}

#[test]
fn a_compressed_frame() {
    let frame = bytes_of("compressed_token");
    assert_eq!(Compression::Token.decompress(&frame, 17).as_deref(), Ok(&b"abababababab-tail"[..]));
    assert_eq!(Compression::Token.compress(b"abababababab-tail"), Ok(frame));
}

#[test]
fn every_file_is_in_the_index_and_in_a_test() {
    let (index, tests) = (fs::read_to_string(folder().join("index.json")).unwrap(), include_str!("wire_golden.rs"));
    for entry in fs::read_dir(folder()).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if let Some(name) = file.strip_suffix(".bin") {
            assert!(index.contains(&format!("\"file\": \"{file}\"")), "{file}");
            assert!(tests.contains(&format!("\"{name}\"")), "{file}");
        }
    }
}
