//! Frames of nbmq, one a datagram. Big-endian.
//!
//! ```text
//!  0     1      2         10           18           19           20             24          28           30             34
//! +-----+------+---------+------------+------------+------------+--------------+-----------+------------+--------------+-----
//! |ver 1|kind 0| session | message_id | part_count | part_index | message_size | part_size | chunk_size | chunk_offset | data
//! +-----+------+---------+------------+------------+------------+--------------+-----------+------------+--------------+-----
//! control   0 version   1 kind   2 session   10 data: Ack alone, the 8 bytes of the frame's hash
//! ```

use super::bytes::{head, layout, room};
use super::fault::{count, exactly, holds, within};
use super::{Flyweight, WireError};

/// Version of the frames.
pub const VERSION: u8 = 1;
/// The longest frame, in bytes.
pub const FRAME_LENGTH_MAX: usize = 500;
/// The longest chunk of a part, in bytes.
pub const CHUNK_LENGTH_MAX: usize = FRAME_LENGTH_MAX - DataHeader::LENGTH;

layout! {
    /// Which bytes of which part of which message a frame carries.
    DataHeader: 34 bytes, Big, {
        /// 1.
        version: u8 = 0,
        /// 0.
        kind: u8 = 1,
        /// The receiver's name for the sender.
        session_id: u64 = 2,
        /// Which message: see [`message_id`].
        message_id: u64 = 10,
        /// Parts of the message, one at least.
        part_count: u8 = 18,
        /// Which part, from 0 on.
        part_index: u8 = 19,
        /// Bytes of all parts.
        message_size: u32 = 20,
        /// Bytes of the part.
        part_size: u32 = 24,
        /// Bytes of the chunk.
        chunk_size: u16 = 28,
        /// Bytes of the part before the chunk.
        chunk_offset: u32 = 30,
    }
}

/// A chunk of a part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFrame<'a> {
    /// The receiver's name for the sender.
    pub session_id: u64,
    /// Which message.
    pub message_id: u64,
    /// Parts of the message, one at least.
    pub part_count: u8,
    /// Which part, from 0 on.
    pub part_index: u8,
    /// Bytes of all parts.
    pub message_size: u32,
    /// Bytes of the part.
    pub part_size: u32,
    /// Bytes of the part before the chunk.
    pub chunk_offset: u32,
    /// The chunk, at most [`CHUNK_LENGTH_MAX`] bytes; empty in an empty part alone.
    pub chunk: &'a [u8],
}

impl DataFrame<'_> {
    fn check(&self) -> Result<(), WireError> {
        within("part_count", 18, self.part_count, 1, u8::MAX)?;
        within("part_index", 19, self.part_index, 0, self.part_count - 1)?;
        let least = if self.part_count == 1 { self.message_size } else { 0 };
        within("part_size", 24, self.part_size, least, self.message_size)?;
        let length = count(self.chunk.len());
        within("chunk_size", 28, length, u8::from(self.part_size > 0), count(CHUNK_LENGTH_MAX))?;
        within("chunk_size", 28, length, 0, self.part_size)?;
        within("chunk_offset", 30, self.chunk_offset, 0, i128::from(self.part_size) - length)
    }
}

impl<'a> Flyweight<'a> for DataFrame<'a> {
    /// A datagram is one frame: what stands behind it is a contradiction.
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (start, chunk) = head(bytes, "data_header")?;
        let header = DataHeader::read(start);
        exactly("version", 0, header.version, VERSION)?;
        exactly("kind", 1, header.kind, 0)?;
        let size = usize::from(header.chunk_size);
        if size > chunk.len() {
            return Err(WireError::truncated("chunk_size", 28, size, chunk.len()));
        }
        exactly("chunk_size", 28, header.chunk_size, count(chunk.len()))?;
        let DataHeader {
            session_id, message_id, part_count, part_index, message_size, part_size, chunk_offset, ..
        } = header;
        let frame =
            Self { session_id, message_id, part_count, part_index, message_size, part_size, chunk_offset, chunk };
        frame.check()?;
        Ok(frame)
    }

    fn encoded_length(&self) -> usize {
        DataHeader::LENGTH + self.chunk.len()
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        self.check()?;
        let length = self.encoded_length();
        let frame = room(buffer, length)?;
        let &Self { session_id, message_id, part_count, part_index, message_size, part_size, chunk_offset, chunk } =
            self;
        let (version, kind, chunk_size) = (VERSION, 0, chunk.len() as u16);
        let header = DataHeader {
            version,
            kind,
            session_id,
            message_id,
            part_count,
            part_index,
            message_size,
            part_size,
            chunk_size,
            chunk_offset,
        };
        header.write(frame);
        frame[DataHeader::LENGTH..].copy_from_slice(chunk);
        Ok(length)
    }
}

layout! {
    /// What a control frame begins with.
    ControlHeader: 10 bytes, Big, {
        /// 1.
        version: u8 = 0,
        /// 1 Connect, 2 Connected, 3 Disconnected, 4 Heartbeat, 5 Ack.
        kind: u8 = 1,
        /// The receiver's name for the sender; 0 in a Connect.
        session_id: u64 = 2,
    }
}

/// A frame without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// Give me a session.
    Connect,
    /// This is your session.
    Connected {
        /// The session.
        session_id: u64,
    },
    /// I know of no such session.
    Disconnected {
        /// The session.
        session_id: u64,
    },
    /// I am there.
    Heartbeat {
        /// The session.
        session_id: u64,
    },
    /// I have that data frame.
    Ack {
        /// The session.
        session_id: u64,
        /// [`fnv1a64`] of the whole data frame.
        frame_hash: u64,
    },
}

impl ControlFrame {
    /// Bytes of an Ack; of the others [`ControlHeader::LENGTH`].
    pub const ACK_LENGTH: usize = ControlHeader::LENGTH + size_of::<u64>();

    /// The frame of these numbers; `frame_hash` is there in an Ack alone.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn of(kind: u8, session_id: u64, frame_hash: Option<u64>) -> Result<Self, WireError> {
        within("kind", 1, kind, 1, 5)?;
        let has_hash = frame_hash.is_some();
        holds(has_hash == (kind == 5), "kind", 1, "5 with the hash of a frame, 1 to 4 without", kind)?;
        holds(kind != 1 || session_id == 0, "session", 2, "0 in a Connect", session_id)?;
        Ok(match (kind, frame_hash) {
            (1, _) => Self::Connect,
            (2, _) => Self::Connected { session_id },
            (3, _) => Self::Disconnected { session_id },
            (_, None) => Self::Heartbeat { session_id },
            (_, Some(frame_hash)) => Self::Ack { session_id, frame_hash },
        })
    }

    /// Kind, session and hash.
    pub fn parts(&self) -> (u8, u64, Option<u64>) {
        match *self {
            Self::Connect => (1, 0, None),
            Self::Connected { session_id } => (2, session_id, None),
            Self::Disconnected { session_id } => (3, session_id, None),
            Self::Heartbeat { session_id } => (4, session_id, None),
            Self::Ack { session_id, frame_hash } => (5, session_id, Some(frame_hash)),
        }
    }
}

impl Flyweight<'_> for ControlFrame {
    /// A datagram is one frame: what stands behind it is a contradiction.
    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let (start, data) = head(bytes, "control_header")?;
        let header = ControlHeader::read(start);
        exactly("version", 0, header.version, VERSION)?;
        within("kind", 1, header.kind, 1, 5)?;
        let length = if header.kind == 5 { 8 } else { 0 };
        if data.len() < length {
            return Err(WireError::truncated("data", 10, length, data.len()));
        }
        exactly("datagram", 0, count(bytes.len()), count(ControlHeader::LENGTH + length))?;
        let frame_hash = data.first_chunk().map(|hash| u64::from_be_bytes(*hash));
        Self::of(header.kind, header.session_id, frame_hash)
    }

    fn encoded_length(&self) -> usize {
        if matches!(self, Self::Ack { .. }) { Self::ACK_LENGTH } else { ControlHeader::LENGTH }
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        let frame = room(buffer, self.encoded_length())?;
        let (kind, session_id, frame_hash) = self.parts();
        ControlHeader { version: VERSION, kind, session_id }.write(frame);
        if let Some(hash) = frame_hash {
            frame[ControlHeader::LENGTH..].copy_from_slice(&hash.to_be_bytes());
        }
        Ok(self.encoded_length())
    }
}

/// FNV-1a of 64 bits.
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    fnv_more(0xcbf2_9ce4_8422_2325, bytes)
}

fn fnv_more(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A message's name: the hash of its parts, one behind the other, and of the sender's counter (big-endian).
pub fn message_id<'a>(parts: impl IntoIterator<Item = &'a [u8]>, counter: u64) -> u64 {
    let hash = parts.into_iter().fold(fnv1a64(b""), fnv_more);
    fnv_more(hash, &counter.to_be_bytes())
}

/// A peer's session: the hash of a number of the system's randomness (big-endian) and of `address`, as `127.0.0.1:4000`.
pub fn session_id(random: u64, address: &str) -> u64 {
    fnv_more(fnv1a64(&random.to_be_bytes()), address.as_bytes())
}
