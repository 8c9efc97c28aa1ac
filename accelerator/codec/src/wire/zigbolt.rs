//! Headers of `ZigBolt`'s reliable channel. Little-endian, packed.
//!
//! ```text
//!  0     1      2         6        10         18               22         25
//! +-----+------+---------+--------+----------+----------------+----------+---------
//! | ver | type | session | stream | sequence | payload_length | reserved | payload      reserved[0] bit 0: fragment
//! +-----+------+---------+--------+----------+----------------+----------+---------
//! NAK body      0 session   4 stream   8 u64 from_sequence   16 count   20 zero
//! fragment      0 total_length   4 fragment_offset   8 message_id   12 u16 fragment_length   14 flags   15 reserved   16 bytes
//! ```

use super::bytes::{head, layout, room};
use super::fault::{count, exactly, holds, within};
use super::{Expected, Flyweight, WireError};

/// Version of the header.
pub const VERSION: u8 = 1;
/// First fragment of a message.
pub const BEGIN: u8 = 1;
/// Last fragment of a message.
pub const END: u8 = 2;
const IS_FRAGMENT: u8 = 1;

/// What a packet is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketType {
    /// A message or a fragment of one.
    #[default]
    Data = 0,
    /// Packets that the receiver misses: a [`NakBody`].
    Nak = 1,
    /// How far the receiver has everything: the sequence. No payload.
    Heartbeat = 2,
    /// The sender begins.
    Setup = 3,
    /// The sender ends.
    Teardown = 4,
}

impl PacketType {
    /// The type of this number.
    pub fn of(number: u8) -> Option<Self> {
        [Self::Data, Self::Nak, Self::Heartbeat, Self::Setup, Self::Teardown].get(usize::from(number)).copied()
    }
}

layout! {
    /// The header as it is on the wire.
    NetworkHeader: 25 bytes, Little, {
        /// 1.
        version: u8 = 0,
        /// A [`PacketType`].
        packet_type: u8 = 1,
        /// Which sender.
        session_id: u32 = 2,
        /// Which stream.
        stream_id: u32 = 6,
        /// Which packet; in a heartbeat the receiver's contiguous position.
        sequence: u64 = 10,
        /// Bytes behind the header.
        payload_length: u32 = 18,
        /// Bit 0: the payload is a fragment.
        reserved: u8 = 22,
    }
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkPacket<'a> {
    /// What it is.
    pub packet_type: PacketType,
    /// Which sender.
    pub session_id: u32,
    /// Which stream.
    pub stream_id: u32,
    /// Which packet; in a heartbeat the receiver's contiguous position.
    pub sequence: u64,
    /// The payload is a [`Fragment`].
    pub is_fragment: bool,
    /// What it carries.
    pub payload: &'a [u8],
}

impl<'a> Flyweight<'a> for NetworkPacket<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (start, rest) = head(bytes, "network_header")?;
        let header = NetworkHeader::read(start);
        exactly("version", 0, header.version, VERSION)?;
        let unknown = WireError::invalid("type", 1, Expected::Within(0, 4), header.packet_type);
        let length = header.payload_length as usize;
        let payload = rest.get(..length).ok_or(WireError::truncated("payload_length", 18, length, rest.len()))?;
        let packet = Self {
            packet_type: PacketType::of(header.packet_type).ok_or(unknown)?,
            session_id: header.session_id,
            stream_id: header.stream_id,
            sequence: header.sequence,
            is_fragment: header.reserved & IS_FRAGMENT != 0,
            payload,
        };
        packet.check()?;
        Ok(packet)
    }

    fn encoded_length(&self) -> usize {
        NetworkHeader::LENGTH + self.payload.len()
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        self.check()?;
        let length = self.encoded_length();
        let packet = room(buffer, length)?;
        let header = NetworkHeader {
            version: VERSION,
            packet_type: self.packet_type as u8,
            session_id: self.session_id,
            stream_id: self.stream_id,
            sequence: self.sequence,
            payload_length: self.payload.len() as u32,
            reserved: u8::from(self.is_fragment),
        };
        header.write(packet);
        packet[NetworkHeader::LENGTH..].copy_from_slice(self.payload);
        Ok(length)
    }
}

impl NetworkPacket<'_> {
    fn check(&self) -> Result<(), WireError> {
        let length = count(self.payload.len());
        let is_data = self.packet_type == PacketType::Data;
        holds(is_data || !self.is_fragment, "reserved", 22, "a fragment in data packets alone", 1)?;
        match self.packet_type {
            PacketType::Nak => exactly("payload_length", 18, length, count(NakBody::LENGTH)),
            PacketType::Heartbeat => exactly("payload_length", 18, length, 0),
            _ => within("payload_length", 18, length, 0, u32::MAX),
        }
    }
}

layout! {
    /// Which packets a receiver misses.
    NakBody: 24 bytes, Little, {
        /// Which sender.
        session_id: u32 = 0,
        /// Which stream.
        stream_id: u32 = 4,
        /// The first one that is missing.
        from_sequence: u64 = 8,
        /// How many, one at least.
        count: u32 = 16,
    }
}

impl NakBody {
    fn check(&self) -> Result<(), WireError> {
        within("count", 16, self.count, 1, u32::MAX)?;
        let is_so = self.from_sequence.checked_add(self.count.into()).is_some();
        holds(is_so, "from_sequence", 8, "a sequence with all that are missing below 2^64", self.from_sequence)
    }
}

impl Flyweight<'_> for NakBody {
    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let (start, _) = head(bytes, "nak_body")?;
        exactly("zero", 20, u32::from_le_bytes([start[20], start[21], start[22], start[23]]), 0)?;
        let body = Self::read(start);
        body.check()?;
        Ok(body)
    }

    fn encoded_length(&self) -> usize {
        Self::LENGTH
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        self.check()?;
        self.write(room(buffer, Self::LENGTH)?);
        Ok(Self::LENGTH)
    }
}

layout! {
    /// Where in which message a fragment stands.
    FragmentHeader: 16 bytes, Little, {
        /// Bytes of the message.
        total_length: u32 = 0,
        /// Bytes of the message before this fragment.
        fragment_offset: u32 = 4,
        /// Which message of the stream.
        message_id: u32 = 8,
        /// Bytes of the fragment.
        fragment_length: u16 = 12,
        /// Bits: [`BEGIN`], [`END`].
        flags: u8 = 14,
    }
}

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// Bytes of the message.
    pub total_length: u32,
    /// Bytes of the message before this fragment.
    pub fragment_offset: u32,
    /// Which message of the stream.
    pub message_id: u32,
    /// The bytes, at most 65,535.
    pub payload: &'a [u8],
}

/// The key under which fragments of one message are gathered, within a session.
pub fn reassembly_key(stream_id: u32, message_id: u32) -> u64 {
    u64::from(stream_id) << 32 | u64::from(message_id)
}

impl Fragment<'_> {
    /// [`BEGIN`] and [`END`], as offset and lengths have them.
    pub fn flags(&self) -> u8 {
        let end = u64::from(self.fragment_offset) + self.payload.len() as u64;
        let begins = if self.fragment_offset == 0 { BEGIN } else { 0 };
        begins | if end == u64::from(self.total_length) { END } else { 0 }
    }

    fn check(&self) -> Result<(), WireError> {
        let length = count(self.payload.len());
        let least = i128::from(self.total_length > 0);
        within("fragment_length", 12, length, least, u16::MAX)?;
        within("fragment_offset", 4, self.fragment_offset, 0, i128::from(self.total_length) - length)
    }
}

impl<'a> Flyweight<'a> for Fragment<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (start, rest) = head(bytes, "fragment_header")?;
        let FragmentHeader { total_length, fragment_offset, message_id, fragment_length, flags } =
            FragmentHeader::read(start);
        let length = usize::from(fragment_length);
        let payload = rest.get(..length).ok_or(WireError::truncated("fragment_length", 12, length, rest.len()))?;
        let fragment = Self { total_length, fragment_offset, message_id, payload };
        fragment.check()?;
        exactly("flags", 14, flags, fragment.flags())?;
        Ok(fragment)
    }

    fn encoded_length(&self) -> usize {
        FragmentHeader::LENGTH + self.payload.len()
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        self.check()?;
        let (length, flags) = (self.encoded_length(), self.flags());
        let place = room(buffer, length)?;
        let &Self { total_length, fragment_offset, message_id, payload } = self;
        let fragment_length = payload.len() as u16;
        FragmentHeader { total_length, fragment_offset, message_id, fragment_length, flags }.write(place);
        place[FragmentHeader::LENGTH..].copy_from_slice(payload);
        Ok(length)
    }
}
