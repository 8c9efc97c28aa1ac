//! SM, NAK, SETUP and RTTM: what sender and receivers tell each other.
//!
//! ```text
//!        8            12           16                   20                       24                28           36
//! SM    | session_id | stream_id | consumption_term_id | consumption_term_offset | receiver_window | receiver_id | group_tag?
//! NAK   | session_id | stream_id | term_id             | term_offset             | length          |
//!        8             12           16          20                24               28            32    36    40
//! SETUP | term_offset | session_id | stream_id | initial_term_id | active_term_id | term_length | mtu | ttl |
//!        8            12           16                  24                   32            40
//! RTTM  | session_id | stream_id | echo_timestamp_ns | reception_delta_ns | receiver_id |
//! ```

use super::header::{FRAME_ALIGNMENT, FrameType, aligned, begin, framed};
use super::position::{TERM_LENGTH_MAX, TERM_LENGTH_MIN};
use crate::wire::bytes::{Number, Order, layout, room};
use crate::wire::fault::{count, exactly, holds, within};
use crate::wire::{Flyweight, WireError};

/// SM: the receiver has not seen a SETUP and asks for one.
pub const SEND_SETUP: u8 = 0x80;
/// SM: the receiver has read to the end of the stream.
pub const END_OF_STREAM: u8 = 0x40;
/// SETUP: the receiver shall answer with a response setup.
pub const SEND_RESPONSE_SETUP: u8 = 0x80;
/// SETUP: the sender takes its receivers for a group.
pub const GROUP: u8 = 0x40;
/// RTTM: an answer, not a question.
pub const REPLY: u8 = 0x80;
/// The longest datagram payload of the protocol, in bytes.
pub const MTU_MAX: i32 = 65_504;

layout! {
    /// SM: how far a receiver has read, and how much it has room for.
    StatusMessage: 36 bytes, Little, {
        /// Bits: [`SEND_SETUP`], [`END_OF_STREAM`].
        flags: u8 = 5,
        /// Which publication.
        session_id: i32 = 8,
        /// Which stream of the channel.
        stream_id: i32 = 12,
        /// The term up to which everything was read.
        consumption_term_id: i32 = 16,
        /// Bytes of that term that were read.
        consumption_term_offset: i32 = 20,
        /// Bytes that the sender may send from there on.
        receiver_window: i32 = 24,
        /// Which receiver.
        receiver_id: i64 = 28,
    }
}

/// SM with the tag of the group that a receiver counts itself to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusMessageFrame {
    /// What every SM says.
    pub header: StatusMessage,
    /// The group's tag; makes the frame eight bytes longer.
    pub group_tag: Option<i64>,
}

layout! {
    /// NAK: bytes that a receiver misses.
    NakFrame: 28 bytes, Little, {
        /// Bits without a meaning.
        flags: u8 = 5,
        /// Which publication.
        session_id: i32 = 8,
        /// Which stream of the channel.
        stream_id: i32 = 12,
        /// The term with the gap.
        term_id: i32 = 16,
        /// Where the gap begins, in bytes from the start of the term.
        term_offset: i32 = 20,
        /// Bytes of the gap.
        length: i32 = 24,
    }
}

layout! {
    /// SETUP: what a receiver has to know of a stream before its data.
    SetupFrame: 40 bytes, Little, {
        /// Bits: [`SEND_RESPONSE_SETUP`], [`GROUP`].
        flags: u8 = 5,
        /// Where the sender is in its term, in bytes.
        term_offset: i32 = 8,
        /// Which publication.
        session_id: i32 = 12,
        /// Which stream of the channel.
        stream_id: i32 = 16,
        /// The first term of the stream.
        initial_term_id: i32 = 20,
        /// The term that the sender is in.
        active_term_id: i32 = 24,
        /// Bytes of a term, a power of two from 65,536 to 1 GiB.
        term_length: i32 = 28,
        /// Bytes of the longest datagram, a multiple of 32.
        mtu: i32 = 32,
        /// Hops of multicast; 0 for what the system says.
        ttl: i32 = 36,
    }
}

layout! {
    /// RTTM: the question for the time to a receiver and back, and its answer.
    RttFrame: 40 bytes, Little, {
        /// Bits: [`REPLY`].
        flags: u8 = 5,
        /// Which publication.
        session_id: i32 = 8,
        /// Which stream of the channel.
        stream_id: i32 = 12,
        /// The asker's clock, in nanoseconds, given back as it is.
        echo_timestamp_ns: i64 = 16,
        /// Nanoseconds that the answerer kept the question.
        reception_delta_ns: i64 = 24,
        /// Which receiver.
        receiver_id: i64 = 32,
    }
}

macro_rules! fixed {
    ($name:ident, $kind:ident $(, $check:ident)?) => {
        impl Flyweight<'_> for $name {
            fn decode(bytes: &[u8]) -> Result<Self, WireError> {
                let (head, rest) = framed(bytes, FrameType::$kind)?;
                exactly("frame_length", 0, count(Self::LENGTH + rest.len()), count(Self::LENGTH))?;
                let frame = Self::read(head);
                $(frame.$check()?;)?
                Ok(frame)
            }

            fn encoded_length(&self) -> usize {
                Self::LENGTH
            }

            fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
                $(self.$check()?;)?
                let frame = room(buffer, Self::LENGTH)?;
                self.write(frame);
                begin(frame, FrameType::$kind, self.flags, Self::LENGTH);
                Ok(Self::LENGTH)
            }
        }
    };
}

fixed!(NakFrame, Nak, check);
fixed!(SetupFrame, Setup, check);
// Every value of an RTTM has a meaning: clocks begin where they like.
fixed!(RttFrame, RttMeasurement);

impl NakFrame {
    fn check(&self) -> Result<(), WireError> {
        within("term_offset", 20, self.term_offset, 0, i32::MAX)?;
        within("length", 24, self.length, 1, i32::MAX)
    }
}

impl SetupFrame {
    fn check(&self) -> Result<(), WireError> {
        within("term_length", 28, self.term_length, TERM_LENGTH_MIN, TERM_LENGTH_MAX)?;
        let is_power = self.term_length.unsigned_abs().is_power_of_two();
        holds(is_power, "term_length", 28, "a power of two", self.term_length)?;
        aligned("term_offset", 8, self.term_offset)?;
        within("term_offset", 8, self.term_offset, 0, self.term_length)?;
        let age = self.active_term_id.wrapping_sub(self.initial_term_id);
        holds(age >= 0, "active_term_id", 24, "the initial term or a later one", self.active_term_id)?;
        within("mtu", 32, self.mtu, FRAME_ALIGNMENT as i32, MTU_MAX)?;
        aligned("mtu", 32, self.mtu)
    }
}

impl StatusMessageFrame {
    /// Bytes of a frame with a tag.
    pub const TAGGED_LENGTH: usize = StatusMessage::LENGTH + size_of::<i64>();

    fn check(&self) -> Result<(), WireError> {
        within("consumption_term_offset", 20, self.header.consumption_term_offset, 0, i32::MAX)?;
        within("receiver_window", 24, self.header.receiver_window, 0, i32::MAX)
    }
}

impl Flyweight<'_> for StatusMessageFrame {
    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let (head, rest) = framed(bytes, FrameType::StatusMessage)?;
        let length = StatusMessage::LENGTH + rest.len();
        let is_known = rest.is_empty() || length == Self::TAGGED_LENGTH;
        holds(is_known, "frame_length", 0, "36, or 44 with a group tag", count(length))?;
        let group_tag = (!rest.is_empty()).then(|| i64::read(rest, 0, Order::Little));
        let frame = Self { header: StatusMessage::read(head), group_tag };
        frame.check()?;
        Ok(frame)
    }

    fn encoded_length(&self) -> usize {
        if self.group_tag.is_some() { Self::TAGGED_LENGTH } else { StatusMessage::LENGTH }
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        self.check()?;
        let length = self.encoded_length();
        let frame = room(buffer, length)?;
        self.header.write(frame);
        begin(frame, FrameType::StatusMessage, self.header.flags, length);
        if let Some(tag) = self.group_tag {
            tag.write(frame, StatusMessage::LENGTH, Order::Little);
        }
        Ok(length)
    }
}
