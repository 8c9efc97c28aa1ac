//! DATA and PAD: what fills terms.
//!
//! ```text
//!  8             12           16          20        24               32
//! +-------------+------------+-----------+---------+----------------+---------
//! | term_offset | session_id | stream_id | term_id | reserved_value | payload
//! +-------------+------------+-----------+---------+----------------+---------
//! ```

use super::header::{FrameHeader, FrameType, aligned, begin, framed};
use crate::wire::bytes::{head, layout, room};
use crate::wire::fault::{count, exactly, within};
use crate::wire::{Flyweight, WireError};

/// First fragment of a message.
pub const BEGIN: u8 = 0x80;
/// Last fragment of a message.
pub const END: u8 = 0x40;
/// The stream ends here (in heartbeats).
pub const END_OF_STREAM: u8 = 0x20;
/// The publisher took the stream back (in heartbeats).
pub const REVOKED: u8 = 0x10;

layout! {
    /// Where in which stream a frame of a term stands.
    DataHeader: 32 bytes, Little, {
        /// Bits: [`BEGIN`], [`END`], [`END_OF_STREAM`], [`REVOKED`].
        flags: u8 = 5,
        /// Bytes from the start of the term.
        term_offset: i32 = 8,
        /// Which publication.
        session_id: i32 = 12,
        /// Which stream of the channel.
        stream_id: i32 = 16,
        /// Which term of the stream.
        term_id: i32 = 20,
        /// The application's own.
        reserved_value: i64 = 24,
    }
}

/// A fragment of a message, or a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFrame<'a> {
    /// Where it stands.
    pub header: DataHeader,
    /// The bytes; `None` in a heartbeat, whose frame length says 0 and whose datagram is the header alone.
    pub payload: Option<&'a [u8]>,
}

/// Bytes of a term that hold no message. Its header alone travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PadFrame {
    /// Where it stands.
    pub header: DataHeader,
    /// Bytes of the term that it covers, its header with them.
    pub frame_length: i32,
}

impl<'a> Flyweight<'a> for DataFrame<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let is_heartbeat = FrameHeader::decode(bytes)?.frame_length == 0;
        let (header, payload) = if is_heartbeat {
            (heartbeat(bytes)?, None)
        } else {
            let (head, payload) = framed(bytes, FrameType::Data)?;
            (head, Some(payload))
        };
        let header = DataHeader::read(header);
        aligned("term_offset", 8, header.term_offset)?;
        Ok(Self { header, payload })
    }

    fn encoded_length(&self) -> usize {
        DataHeader::LENGTH + self.payload.map_or(0, <[u8]>::len)
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        let length = self.encoded_length();
        within("frame_length", 0, count(length), 0, i32::MAX)?;
        aligned("term_offset", 8, self.header.term_offset)?;
        let frame = room(buffer, length)?;
        self.header.write(frame);
        begin(frame, FrameType::Data, self.header.flags, if self.payload.is_some() { length } else { 0 });
        frame[DataHeader::LENGTH..].copy_from_slice(self.payload.unwrap_or_default());
        Ok(length)
    }
}

/// The header of a frame whose length says 0: nothing may be behind it.
fn heartbeat(bytes: &[u8]) -> Result<&[u8; DataHeader::LENGTH], WireError> {
    exactly("type", 6, FrameHeader::decode(bytes)?.frame_type, FrameType::Data as u16)?;
    let (header, rest) = head(bytes, "data_header")?;
    exactly("datagram", 0, count(bytes.len()), count(bytes.len() - rest.len()))?;
    Ok(header)
}

impl Flyweight<'_> for PadFrame {
    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let frame = FrameHeader::decode(bytes)?;
        exactly("type", 6, frame.frame_type, FrameType::Pad as u16)?;
        let header = DataHeader::read(head(bytes, "data_header")?.0);
        let pad = Self { header, frame_length: frame.frame_length };
        pad.check()?;
        Ok(pad)
    }

    fn encoded_length(&self) -> usize {
        DataHeader::LENGTH
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        self.check()?;
        let frame = room(buffer, DataHeader::LENGTH)?;
        self.header.write(frame);
        begin(frame, FrameType::Pad, self.header.flags, self.frame_length as usize);
        Ok(DataHeader::LENGTH)
    }
}

impl PadFrame {
    fn check(&self) -> Result<(), WireError> {
        within("frame_length", 0, self.frame_length, count(DataHeader::LENGTH), i32::MAX)?;
        aligned("term_offset", 8, self.header.term_offset)
    }
}
