//! `NanoMQ`: message header, record of the write-ahead log, frame on TCP. Little-endian.
//!
//! ```text
//! message   0 u64 id   8 u64 timestamp_ns   16 topic_id   20 size   24 crc32   28 flags   32 zeros   64 payload
//! record    0 'NMQ!'   4 length   8 crc32   12 type   16 payload
//! TCP       0 type   4 length   8 payload
//! ```

use super::bytes::{Number, Order, head, layout, room};
use super::fault::{checksum, count, exactly, holds, within};
use super::{Flyweight, WireError};

/// The payload is compressed.
pub const COMPRESSED: u32 = 1;
/// The payload is encrypted.
pub const ENCRYPTED: u32 = 2;
/// The message outlives the broker.
pub const PERSISTENT: u32 = 4;
/// The message goes before others.
pub const PRIORITY: u32 = 8;
/// `NMQ!`, the start of a record.
pub const MAGIC: u32 = u32::from_le_bytes(*b"NMQ!");
/// The longest payload of a frame on TCP, in bytes: a reader makes room for it before it has come.
pub const TCP_PAYLOAD_LENGTH_MAX: u32 = 1 << 24;
const FLAGS: u32 = COMPRESSED | ENCRYPTED | PERSISTENT | PRIORITY;

/// CRC-32 (IEEE 802.3), 0 for no bytes.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

layout! {
    /// The header as it is on the wire, without its zeros.
    MessageHeader: 64 bytes, Little, {
        /// Number of the message in its topic, from 1 on.
        id: u64 = 0,
        /// When it was published, in nanoseconds since 1970.
        timestamp_ns: u64 = 8,
        /// Which topic.
        topic_id: u32 = 16,
        /// Bytes of the payload.
        size: u32 = 20,
        /// [`crc32`] of the payload.
        crc32: u32 = 24,
        /// Bits: [`COMPRESSED`], [`ENCRYPTED`], [`PERSISTENT`], [`PRIORITY`].
        flags: u32 = 28,
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Number of the message in its topic, from 1 on.
    pub id: u64,
    /// When it was published, in nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Which topic.
    pub topic_id: u32,
    /// Bits: [`COMPRESSED`], [`ENCRYPTED`], [`PERSISTENT`], [`PRIORITY`].
    pub flags: u32,
    /// What it says.
    pub payload: &'a [u8],
}

impl<'a> Flyweight<'a> for Message<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (start, rest) = head(bytes, "message_header")?;
        let MessageHeader { id, timestamp_ns, topic_id, size, crc32: said, flags } = MessageHeader::read(start);
        holds(flags & !FLAGS == 0, "flags", 28, "bits 1, 2, 4 and 8", flags)?;
        let odd = start[32..].iter().find(|byte| **byte != 0);
        exactly("zeros", 32, odd.copied().unwrap_or(0), 0)?;
        let payload = rest.get(..size as usize).ok_or(WireError::truncated("size", 20, size as usize, rest.len()))?;
        checksum("crc32", 24, said, crc32(payload))?;
        Ok(Self { id, timestamp_ns, topic_id, flags, payload })
    }

    fn encoded_length(&self) -> usize {
        MessageHeader::LENGTH + self.payload.len()
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        holds(self.flags & !FLAGS == 0, "flags", 28, "bits 1, 2, 4 and 8", self.flags)?;
        within("size", 20, count(self.payload.len()), 0, u32::MAX)?;
        let length = self.encoded_length();
        let place = room(buffer, length)?;
        let &Self { id, timestamp_ns, topic_id, flags, payload } = self;
        let (size, crc32) = (payload.len() as u32, crc32(payload));
        MessageHeader { id, timestamp_ns, topic_id, size, crc32, flags }.write(place);
        place[MessageHeader::LENGTH..].copy_from_slice(payload);
        Ok(length)
    }
}

layout! {
    /// The header of a record as it is in the file.
    RecordHeader: 16 bytes, Little, {
        /// [`MAGIC`].
        magic: u32 = 0,
        /// Bytes of the payload.
        length: u32 = 4,
        /// CRC-32 of the header with zeros in this place, then the payload.
        crc32: u32 = 8,
        /// 1 data, 2 commit, 3 padding.
        record_type: u32 = 12,
    }
}

/// A record of the write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// 1 data, 2 commit, 3 padding.
    pub record_type: u32,
    /// What it holds.
    pub payload: &'a [u8],
}

fn record_crc32(header: RecordHeader, payload: &[u8]) -> u32 {
    let mut bytes = [0; RecordHeader::LENGTH];
    RecordHeader { crc32: 0, ..header }.write(&mut bytes);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes);
    hasher.update(payload);
    hasher.finalize()
}

impl<'a> Flyweight<'a> for Record<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (start, rest) = head(bytes, "record_header")?;
        let header = RecordHeader::read(start);
        exactly("magic", 0, header.magic, MAGIC)?;
        let length = header.length as usize;
        let payload = rest.get(..length).ok_or(WireError::truncated("length", 4, length, rest.len()))?;
        checksum("crc32", 8, header.crc32, record_crc32(header, payload))?;
        within("type", 12, header.record_type, 1, 3)?;
        Ok(Self { record_type: header.record_type, payload })
    }

    fn encoded_length(&self) -> usize {
        RecordHeader::LENGTH + self.payload.len()
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        within("type", 12, self.record_type, 1, 3)?;
        within("length", 4, count(self.payload.len()), 0, u32::MAX)?;
        let place = room(buffer, self.encoded_length())?;
        let length = self.payload.len() as u32;
        let header = RecordHeader { magic: MAGIC, length, crc32: 0, record_type: self.record_type };
        RecordHeader { crc32: record_crc32(header, self.payload), ..header }.write(place);
        place[RecordHeader::LENGTH..].copy_from_slice(self.payload);
        Ok(self.encoded_length())
    }
}

layout! {
    /// The header of a frame on TCP: what a reader has before the payload.
    TcpHeader: 8 bytes, Little, {
        /// 1 PUBLISH, 2 SUBSCRIBE, 3 UNSUBSCRIBE, 4 ACK, 5 DATA, 6 ERROR.
        frame_type: u32 = 0,
        /// Bytes of the payload, at most [`TCP_PAYLOAD_LENGTH_MAX`].
        length: u32 = 4,
    }
}

/// A frame on TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpFrame<'a> {
    /// 1 PUBLISH, 2 SUBSCRIBE, 3 UNSUBSCRIBE, 4 ACK, 5 DATA, 6 ERROR.
    pub frame_type: u32,
    /// What it holds.
    pub payload: &'a [u8],
}

impl TcpHeader {
    fn check(self) -> Result<(), WireError> {
        within("type", 0, self.frame_type, 1, 6)?;
        within("length", 4, self.length, 0, TCP_PAYLOAD_LENGTH_MAX)
    }
}

impl Flyweight<'_> for TcpHeader {
    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let header = Self::read(head(bytes, "tcp_header")?.0);
        header.check()?;
        Ok(header)
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

impl<'a> Flyweight<'a> for TcpFrame<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let header = TcpHeader::decode(bytes)?;
        let (length, rest) = (header.length as usize, &bytes[TcpHeader::LENGTH..]);
        let payload = rest.get(..length).ok_or(WireError::truncated("length", 4, length, rest.len()))?;
        Ok(Self { frame_type: header.frame_type, payload })
    }

    fn encoded_length(&self) -> usize {
        TcpHeader::LENGTH + self.payload.len()
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        within("length", 4, count(self.payload.len()), 0, TCP_PAYLOAD_LENGTH_MAX)?;
        let header = TcpHeader { frame_type: self.frame_type, length: self.payload.len() as u32 };
        header.check()?;
        let place = room(buffer, self.encoded_length())?;
        header.frame_type.write(place, 0, Order::Little);
        header.length.write(place, 4, Order::Little);
        place[TcpHeader::LENGTH..].copy_from_slice(self.payload);
        Ok(self.encoded_length())
    }
}
