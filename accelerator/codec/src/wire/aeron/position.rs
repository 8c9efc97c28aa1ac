//! Where a byte is in its stream: as (term id, term offset), or as one position.
//!
//! `position = (term_id - initial_term_id) << shift | term_offset`, with `shift` = log2 of the term length. Term ids are i32
//! and wrap: the one after 2147483647 is -2147483648, and their distance from the initial one counts.

use crate::wire::WireError;
use crate::wire::fault::{holds, within};

/// The shortest term, in bytes.
pub const TERM_LENGTH_MIN: i32 = 1 << 16;
/// The longest term, in bytes.
pub const TERM_LENGTH_MAX: i32 = 1 << 30;

/// How one stream counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TermPositions {
    initial_term_id: i32,
    shift: u32,
}

impl TermPositions {
    /// Of a stream with this first term and this length of a term, in bytes.
    ///
    /// # Errors
    /// The length is no power of two from [`TERM_LENGTH_MIN`] to [`TERM_LENGTH_MAX`].
    pub fn new(initial_term_id: i32, term_length: i32) -> Result<Self, WireError> {
        within("term_length", 0, term_length, TERM_LENGTH_MIN, TERM_LENGTH_MAX)?;
        holds(term_length.unsigned_abs().is_power_of_two(), "term_length", 0, "a power of two", term_length)?;
        Ok(Self { initial_term_id, shift: term_length.trailing_zeros() })
    }

    /// log2 of the term length.
    pub fn shift(self) -> u32 {
        self.shift
    }

    /// The last position that a stream can reach: 2³¹ terms.
    pub fn position_max(self) -> i64 {
        1 << (31 + self.shift)
    }

    /// The position of a byte. Saturating: before the stream's first term it is 0, an offset outside of the term is its end.
    pub fn position(self, term_id: i32, term_offset: i32) -> i64 {
        let terms = i64::from(term_id.wrapping_sub(self.initial_term_id));
        if terms < 0 {
            return 0;
        }
        (terms << self.shift) + i64::from(term_offset).clamp(0, 1 << self.shift)
    }

    /// Term id and offset of a position. Saturating: of 0 when it is negative, of the last byte behind the end.
    pub fn term_at(self, position: i64) -> (i32, i32) {
        let position = position.clamp(0, self.position_max() - 1);
        let term_id = self.initial_term_id.wrapping_add((position >> self.shift) as i32);
        (term_id, (position & ((1 << self.shift) - 1)) as i32)
    }
}
