//! Frames as tuples, in the order of the fields of their classes in `relay_accel/wire`, and back.

use std::net::IpAddr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};
use relay_accel_codec::wire::aeron::control::StatusMessage;
use relay_accel_codec::wire::aeron::data::DataHeader;
use relay_accel_codec::wire::aeron::error::ErrorHeader;
use relay_accel_codec::wire::aeron::{
    DataFrame, ErrorFrame, Frame, FrameHeader, NakFrame, PadFrame, ResolutionEntry, ResolutionFrame, RttFrame,
    SetupFrame, StatusMessageFrame,
};
use relay_accel_codec::wire::nanomq::{Message, Record, TcpFrame, TcpHeader};
use relay_accel_codec::wire::zigbolt::{Fragment, NakBody, NetworkPacket, PacketType};
use relay_accel_codec::wire::{Expected, Fault, Flyweight, Got, WireError, nbmq};

type Tuple<'py> = PyResult<Bound<'py, PyTuple>>;
type Encoded = PyResult<Result<Vec<u8>, WireError>>;

/// A frame of one kind: to a tuple, and from one.
trait Tupled<'a>: Flyweight<'a> {
    fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py>;
}

fn to_vec<'a>(value: &impl Flyweight<'a>) -> Result<Vec<u8>, WireError> {
    let mut bytes = vec![0; value.encoded_length()];
    value.encode(&mut bytes)?;
    Ok(bytes)
}

macro_rules! anything {
    ($field:ident) => {
        _
    };
}

macro_rules! carried {
    ($payload:ident) => {
        PyBackedBytes
    };
}

/// A struct of numbers, and perhaps of the bytes that it carries, and how its bytes are made of a tuple.
macro_rules! tupled {
    ($type:ty as $name:ident, { $($field:ident),* } $(, $payload:ident)?) => {
        impl<'a> Tupled<'a> for $type {
            fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py> {
                ($(self.$field,)* $(PyBytes::new(py, self.$payload),)?).into_pyobject(py)
            }
        }

        fn $name(values: &Bound<'_, PyTuple>) -> Encoded {
            type Value<'a> = $type;
            let ($($field,)* $($payload,)?): ($(anything!($field),)* $(carried!($payload),)?) = values.extract()?;
            Ok(to_vec(&Value { $($field,)* $($payload: &$payload,)? }))
        }
    };
}

tupled!(FrameHeader as frame_header, { frame_length, version, flags, frame_type });
tupled!(NakFrame as nak, { session_id, stream_id, term_id, term_offset, length, flags });
tupled!(SetupFrame as setup, {
    term_offset, session_id, stream_id, initial_term_id, active_term_id, term_length, mtu, ttl, flags
});
tupled!(RttFrame as rtt, { session_id, stream_id, echo_timestamp_ns, reception_delta_ns, receiver_id, flags });
tupled!(NakBody as nak_body, { session_id, stream_id, from_sequence, count });
tupled!(Fragment<'a> as fragment, { total_length, fragment_offset, message_id }, payload);
tupled!(nbmq::DataFrame<'a> as nbmq_data, {
    session_id, message_id, part_count, part_index, message_size, part_size, chunk_offset
}, chunk);
tupled!(Message<'a> as message, { id, timestamp_ns, topic_id, flags }, payload);
tupled!(Record<'a> as record, { record_type }, payload);
tupled!(TcpHeader as tcp_header, { frame_type, length });
tupled!(TcpFrame<'a> as tcp, { frame_type }, payload);

impl<'a> Tupled<'a> for DataFrame<'a> {
    fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py> {
        let DataHeader { flags, term_offset, session_id, stream_id, term_id, reserved_value } = self.header;
        let payload = self.payload.map(|payload| PyBytes::new(py, payload));
        (term_offset, session_id, stream_id, term_id, payload, flags, reserved_value).into_pyobject(py)
    }
}

fn data(values: &Bound<'_, PyTuple>) -> Encoded {
    let (term_offset, session_id, stream_id, term_id, payload, flags, reserved_value) = values.extract()?;
    let payload: Option<PyBackedBytes> = payload;
    let header = DataHeader { flags, term_offset, session_id, stream_id, term_id, reserved_value };
    Ok(to_vec(&DataFrame { header, payload: payload.as_deref() }))
}

impl Tupled<'_> for PadFrame {
    fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py> {
        let DataHeader { flags, term_offset, session_id, stream_id, term_id, reserved_value } = self.header;
        (self.frame_length, term_offset, session_id, stream_id, term_id, flags, reserved_value).into_pyobject(py)
    }
}

fn pad(values: &Bound<'_, PyTuple>) -> Encoded {
    let (frame_length, term_offset, session_id, stream_id, term_id, flags, reserved_value) = values.extract()?;
    let header = DataHeader { flags, term_offset, session_id, stream_id, term_id, reserved_value };
    Ok(to_vec(&PadFrame { header, frame_length }))
}

impl Tupled<'_> for StatusMessageFrame {
    fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py> {
        let StatusMessage {
            flags,
            session_id,
            stream_id,
            consumption_term_id,
            consumption_term_offset,
            receiver_window,
            receiver_id,
        } = self.header;
        let consumption = (consumption_term_id, consumption_term_offset);
        let tag = self.group_tag;
        (session_id, stream_id, consumption.0, consumption.1, receiver_window, receiver_id, tag, flags)
            .into_pyobject(py)
    }
}

fn status_message(values: &Bound<'_, PyTuple>) -> Encoded {
    let (
        session_id,
        stream_id,
        consumption_term_id,
        consumption_term_offset,
        receiver_window,
        receiver_id,
        group_tag,
        flags,
    ) = values.extract()?;
    let header = StatusMessage {
        flags,
        session_id,
        stream_id,
        consumption_term_id,
        consumption_term_offset,
        receiver_window,
        receiver_id,
    };
    Ok(to_vec(&StatusMessageFrame { header, group_tag }))
}

impl<'a> Tupled<'a> for ErrorFrame<'a> {
    fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py> {
        let ErrorHeader { flags, session_id, stream_id, receiver_id, error_code } = self.header;
        let text = PyBytes::new(py, self.text);
        (session_id, stream_id, receiver_id, error_code, text, self.group_tag, flags).into_pyobject(py)
    }
}

fn error(values: &Bound<'_, PyTuple>) -> Encoded {
    let (session_id, stream_id, receiver_id, error_code, text, group_tag, flags) = values.extract()?;
    let text: PyBackedBytes = text;
    let header = ErrorHeader { flags, session_id, stream_id, receiver_id, error_code };
    Ok(to_vec(&ErrorFrame { header, group_tag, text: &text }))
}

impl<'a> Tupled<'a> for ResolutionFrame<'a> {
    fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py> {
        let rows: PyResult<Vec<_>> = self.entries().map(|entry| entry.tuple(py)).collect();
        (PyTuple::new(py, rows?)?, self.flags).into_pyobject(py)
    }
}

impl<'a> Tupled<'a> for ResolutionEntry<'a> {
    fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py> {
        let name = PyBytes::new(py, self.name);
        (self.address, self.udp_port, name, self.age_in_ms, self.flags).into_pyobject(py)
    }
}

fn resolution(values: &Bound<'_, PyTuple>) -> Encoded {
    let (rows, flags): (Vec<Bound<'_, PyTuple>>, u8) = values.extract()?;
    let mut entries = Vec::new();
    for row in rows {
        match resolution_entry(&row)? {
            Ok(entry) => entries.extend_from_slice(&entry),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(ResolutionFrame::of(flags, &entries).and_then(|frame| to_vec(&frame)))
}

fn resolution_entry(values: &Bound<'_, PyTuple>) -> Encoded {
    let (address, udp_port, name, age_in_ms, flags) = values.extract()?;
    let (address, name): (IpAddr, PyBackedBytes) = (address, name);
    Ok(to_vec(&ResolutionEntry { flags, udp_port, age_in_ms, address, name: &name }))
}

impl<'a> Tupled<'a> for NetworkPacket<'a> {
    fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py> {
        let &Self { packet_type, session_id, stream_id, sequence, is_fragment, payload } = self;
        (packet_type as u8, session_id, stream_id, sequence, PyBytes::new(py, payload), is_fragment).into_pyobject(py)
    }
}

fn packet(values: &Bound<'_, PyTuple>) -> Encoded {
    let (number, session_id, stream_id, sequence, payload, is_fragment) = values.extract()?;
    let (number, payload): (u8, PyBackedBytes) = (number, payload);
    let Some(packet_type) = PacketType::of(number) else {
        let (expected, got) = (Expected::Within(0, 4), Got::Number(number.into()));
        return Ok(Err(WireError { fault: Fault::Invalid, field: "type", offset: 1, expected, got }));
    };
    Ok(to_vec(&NetworkPacket { packet_type, session_id, stream_id, sequence, is_fragment, payload: &payload }))
}

impl Tupled<'_> for nbmq::ControlFrame {
    fn tuple<'py>(&self, py: Python<'py>) -> Tuple<'py> {
        self.parts().into_pyobject(py)
    }
}

fn control(values: &Bound<'_, PyTuple>) -> Encoded {
    let (kind, session_id, frame_hash) = values.extract()?;
    Ok(nbmq::ControlFrame::of(kind, session_id, frame_hash).and_then(|frame| to_vec(&frame)))
}

macro_rules! kinds {
    ($($name:literal => $type:ty, $encode:ident;)*) => {
        /// The fields of the frame that `bytes` begin with.
        pub(crate) fn tuple_of<'py>(py: Python<'py>, kind: &str, bytes: &[u8]) -> PyResult<Result<Bound<'py, PyTuple>, WireError>> {
            match kind {
                $($name => match <$type>::decode(bytes) {
                    Ok(value) => value.tuple(py).map(Ok),
                    Err(error) => Ok(Err(error)),
                },)*
                _ => Err(unknown(kind)),
            }
        }

        /// The bytes of a frame with these fields.
        pub(crate) fn bytes_of(kind: &str, values: &Bound<'_, PyTuple>) -> Encoded {
            match kind {
                $($name => $encode(values),)*
                _ => Err(unknown(kind)),
            }
        }
    };
}

kinds! {
    "aeron.header" => FrameHeader, frame_header;
    "aeron.data" => DataFrame, data;
    "aeron.pad" => PadFrame, pad;
    "aeron.status_message" => StatusMessageFrame, status_message;
    "aeron.nak" => NakFrame, nak;
    "aeron.setup" => SetupFrame, setup;
    "aeron.rtt" => RttFrame, rtt;
    "aeron.error" => ErrorFrame, error;
    "aeron.resolution" => ResolutionFrame, resolution;
    "aeron.resolution_entry" => ResolutionEntry, resolution_entry;
    "zigbolt.packet" => NetworkPacket, packet;
    "zigbolt.nak" => NakBody, nak_body;
    "zigbolt.fragment" => Fragment, fragment;
    "nbmq.data" => nbmq::DataFrame, nbmq_data;
    "nbmq.control" => nbmq::ControlFrame, control;
    "nanomq.message" => Message, message;
    "nanomq.record" => Record, record;
    "nanomq.tcp_header" => TcpHeader, tcp_header;
    "nanomq.tcp" => TcpFrame, tcp;
}

fn unknown(kind: &str) -> PyErr {
    PyValueError::new_err(format!("expected a kind of frame, got {kind:?}"))
}

/// Kind and fields of any of Aeron's frames.
pub(crate) fn frame_tuple<'py>(py: Python<'py>, frame: &Frame<'_>) -> PyResult<(&'static str, Bound<'py, PyTuple>)> {
    Ok(match frame {
        Frame::Pad(frame) => ("aeron.pad", frame.tuple(py)?),
        Frame::Data(frame) => ("aeron.data", frame.tuple(py)?),
        Frame::Nak(frame) => ("aeron.nak", frame.tuple(py)?),
        Frame::StatusMessage(frame) => ("aeron.status_message", frame.tuple(py)?),
        Frame::Error(frame) => ("aeron.error", frame.tuple(py)?),
        Frame::Setup(frame) => ("aeron.setup", frame.tuple(py)?),
        Frame::RttMeasurement(frame) => ("aeron.rtt", frame.tuple(py)?),
        Frame::Resolution(frame) => ("aeron.resolution", frame.tuple(py)?),
    })
}
