//! The first eight bytes of every frame.

use crate::wire::bytes::{head, layout, room};
use crate::wire::fault::{count, exactly, within};
use crate::wire::{Flyweight, WireError};

/// Frames begin at multiples of so many bytes, in a term and in a datagram.
pub const FRAME_ALIGNMENT: usize = 32;

/// The version of the protocol.
pub const VERSION: u8 = 0;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
#[expect(missing_docs, reason = "they are explained where their frames are")]
pub enum FrameType {
    Pad = 0,
    Data = 1,
    Nak = 2,
    StatusMessage = 3,
    Error = 4,
    Setup = 5,
    RttMeasurement = 6,
    Resolution = 7,
}

impl FrameType {
    /// All types, by number.
    pub const ALL: [Self; 8] = [
        Self::Pad,
        Self::Data,
        Self::Nak,
        Self::StatusMessage,
        Self::Error,
        Self::Setup,
        Self::RttMeasurement,
        Self::Resolution,
    ];

    /// The type of this number; `None` for one that has no frame here.
    pub fn of(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

layout! {
    /// The first eight bytes of every frame.
    FrameHeader: 8 bytes, Little, {
        /// Bytes of the frame with this header; 0 in a heartbeat of DATA.
        frame_length: i32 = 0,
        /// Version of the protocol, 0.
        version: u8 = 4,
        /// Bits whose meaning is the type's.
        flags: u8 = 5,
        /// What the frame is: [`FrameType`], or a number that has no frame here.
        frame_type: u16 = 6,
    }
}

impl FrameHeader {
    fn check(self) -> Result<(), WireError> {
        within("frame_length", 0, self.frame_length, 0, i32::MAX)?;
        exactly("version", 4, self.version, VERSION)
    }
}

impl Flyweight<'_> for FrameHeader {
    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let header = Self::read(head(bytes, "frame_header")?.0);
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

/// The head of a frame of this type and what is behind it, up to the frame's end.
pub(crate) fn framed<const N: usize>(bytes: &[u8], expected: FrameType) -> Result<(&[u8; N], &[u8]), WireError> {
    let header = FrameHeader::decode(bytes)?;
    exactly("type", 6, header.frame_type, expected as u16)?;
    within("frame_length", 0, header.frame_length, count(N), i32::MAX)?;
    let length = header.frame_length as usize;
    let short = WireError::truncated("frame_length", 0, length, bytes.len());
    bytes.get(..length).and_then(<[u8]>::split_first_chunk).ok_or(short)
}

/// Write the first eight bytes of a frame of `length` bytes.
pub(crate) fn begin(frame: &mut [u8], frame_type: FrameType, flags: u8, length: usize) {
    let header = FrameHeader { frame_length: length as i32, version: VERSION, flags, frame_type: frame_type as u16 };
    header.write(frame);
}

/// Refuse a place in a term where no frame can begin.
pub(crate) fn aligned(field: &'static str, offset: usize, value: i32) -> Result<(), WireError> {
    let is_so = value >= 0 && (value as usize).is_multiple_of(FRAME_ALIGNMENT);
    crate::wire::fault::holds(is_so, field, offset, "a multiple of 32, 0 or more", value)
}
