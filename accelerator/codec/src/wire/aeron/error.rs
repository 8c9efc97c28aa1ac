//! ERR: a receiver tells the sender why it refuses a stream.
//!
//! ```text
//!  8            12           16            24          32           36            40
//! +------------+-----------+-------------+-----------+------------+-------------+------
//! | session_id | stream_id | receiver_id | group_tag | error_code | text_length | text
//! +------------+-----------+-------------+-----------+------------+-------------+------
//! ```

use super::header::{FrameType, begin, framed};
use crate::wire::bytes::{Number, Order, layout, room};
use crate::wire::fault::{count, exactly, within};
use crate::wire::{Flyweight, WireError};

/// The group tag has a meaning. Set by the encoder when there is one.
pub const HAS_GROUP_TAG: u8 = 0x08;
/// The longest text, in bytes.
pub const TEXT_LENGTH_MAX: usize = 1_023;
const GROUP_TAG: usize = 24;
const TEXT_LENGTH: usize = 36;

layout! {
    /// Who refuses what, and why.
    ErrorHeader: 40 bytes, Little, {
        /// Bits; [`HAS_GROUP_TAG`] follows the frame's tag.
        flags: u8 = 5,
        /// Which publication.
        session_id: i32 = 8,
        /// Which stream of the channel.
        stream_id: i32 = 12,
        /// Which receiver.
        receiver_id: i64 = 16,
        /// What is wrong.
        error_code: i32 = 32,
    }
}

/// The whole frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorFrame<'a> {
    /// Who refuses what, and why.
    pub header: ErrorHeader,
    /// The tag of the receiver's group.
    pub group_tag: Option<i64>,
    /// What is wrong, in words: at most [`TEXT_LENGTH_MAX`] bytes of a stranger's text.
    pub text: &'a [u8],
}

impl<'a> Flyweight<'a> for ErrorFrame<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (head, text) = framed(bytes, FrameType::Error)?;
        let length = i32::read(head, TEXT_LENGTH, Order::Little);
        within("text_length", TEXT_LENGTH, length, 0, count(TEXT_LENGTH_MAX))?;
        exactly("text_length", TEXT_LENGTH, length, count(text.len()))?;
        let header = ErrorHeader::read(head);
        let has_tag = header.flags & HAS_GROUP_TAG != 0;
        Ok(Self { header, group_tag: has_tag.then(|| i64::read(head, GROUP_TAG, Order::Little)), text })
    }

    fn encoded_length(&self) -> usize {
        ErrorHeader::LENGTH + self.text.len()
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        within("text_length", TEXT_LENGTH, count(self.text.len()), 0, count(TEXT_LENGTH_MAX))?;
        let has_tag = if self.group_tag.is_some() { HAS_GROUP_TAG } else { 0 };
        let length = self.encoded_length();
        let frame = room(buffer, length)?;
        self.header.write(frame);
        begin(frame, FrameType::Error, self.header.flags & !HAS_GROUP_TAG | has_tag, length);
        self.group_tag.unwrap_or(0).write(frame, GROUP_TAG, Order::Little);
        (self.text.len() as i32).write(frame, TEXT_LENGTH, Order::Little);
        frame[ErrorHeader::LENGTH..].copy_from_slice(self.text);
        Ok(length)
    }
}
