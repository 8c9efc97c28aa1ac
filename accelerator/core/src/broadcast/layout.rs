//! Where things lie in a broadcast buffer, and what a record's header says.

use crate::Error;
use crate::memory::{Region, SharedWord};

/// Smallest capacity, in bytes.
pub const CAPACITY_MIN: usize = if cfg!(loom) { 64 } else { 512 };
/// Largest capacity, in bytes.
const CAPACITY_MAX: usize = 1 << 30;
/// Bytes of a record's header, and the alignment of records.
pub(super) const HEADER_LENGTH: usize = 8;
/// Bytes behind the records.
pub const TRAILER_LENGTH: usize = if cfg!(loom) { 24 } else { 4 * 128 };
const LINE: usize = if cfg!(loom) { 8 } else { 128 };

/// Longest payload of a buffer of this capacity, in bytes.
#[must_use]
pub const fn payload_length_max(capacity: usize) -> usize {
    capacity / 8 - HEADER_LENGTH
}

/// Bytes of a buffer with its trailer.
pub(super) fn length(capacity: usize) -> Result<usize, Error> {
    if capacity.is_power_of_two() && (CAPACITY_MIN..=CAPACITY_MAX).contains(&capacity) {
        return Ok(capacity + TRAILER_LENGTH);
    }
    let expected = "a power of two from 512 bytes to 1 GiB";
    Err(Error::InvalidTermLength { what: "broadcast capacity", expected, actual: capacity as u64 })
}

/// Bytes that a record takes, header and alignment included.
#[inline]
pub(super) const fn record_length(payload_length: usize) -> usize {
    (HEADER_LENGTH + payload_length).next_multiple_of(HEADER_LENGTH)
}

/// A header word: a record's payload length, or the whole size of padding (type 0).
#[inline]
pub(super) const fn header(length: usize, type_id: i32) -> u64 {
    length as u32 as u64 | (type_id as u32 as u64) << 32
}

/// The three positions behind the records. They only grow.
#[derive(Clone, Debug)]
pub(super) struct Trailer {
    /// Where the transmitter is about to have written to.
    pub(super) intent: SharedWord,
    /// Where it has written to.
    pub(super) tail: SharedWord,
    /// Where its last record begins.
    pub(super) latest: SharedWord,
}

impl Trailer {
    pub(super) fn of(region: &Region, capacity: usize) -> Self {
        let word = |line: usize| region.word(capacity + line * LINE);
        Self { intent: word(0), tail: word(1), latest: word(2) }
    }
}

/// What a header word says. Lengths are checked: they fit into `room`, the bytes to the end of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    Record { type_id: i32, payload_length: usize },
    Padding { length: usize },
    Invalid,
}

impl Header {
    #[inline]
    pub(super) fn parse(word: u64, room: usize, capacity: usize) -> Self {
        let (length, type_id) = (word as u32 as i32, (word >> 32) as i32);
        let Ok(length) = usize::try_from(length) else { return Self::Invalid };
        match type_id {
            0 if length == room => Self::Padding { length },
            1.. if length <= payload_length_max(capacity) && record_length(length) <= room => {
                Self::Record { type_id, payload_length: length }
            }
            _ => Self::Invalid,
        }
    }
}
