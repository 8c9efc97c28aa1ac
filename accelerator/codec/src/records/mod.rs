//! Fixed records: packed little-endian structs of a known length, a multiple of 8 bytes, without pointers.
//!
//! [`fixed_record!`](crate::fixed_record) declares one: a value with an encoder, and a view over bytes that copies nothing.
//! Offsets and length are checked when the program is compiled, lengths of buffers and bytes of enums when it runs.
//!
//! ```
//! use relay_accel_codec::records::{BookSide, FixedRecord, TickMessage, TickView};
//!
//! let tick = TickMessage { timestamp_ns: 1, symbol_id: 7, price: -5, volume: 10, side: BookSide::Ask };
//! let mut buffer = [0; 40];
//! assert_eq!(tick.encode(&mut buffer, 8)?, 40);
//! let view = TickView::wrap(&buffer[8..])?;
//! assert_eq!((view.price(), view.side()), (-5, BookSide::Ask));
//! # Ok::<(), relay_accel_codec::records::RecordError>(())
//! ```
//! Layout: `proto/spec/0015-fixed-records-and-decimals.md`.

mod declare;
mod field;
mod market;

use thiserror::Error as ThisError;

pub use declare::checked_layout;
pub use field::{Field, FieldPlace, checked, field};
pub use market::{BookSide, OrderKind, OrderMessage, OrderSide, OrderView, TickMessage, TickView};

/// Why bytes are no record, or a record does not go into a buffer.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum RecordError {
    #[error("byte {offset}: expected {length} bytes, {left} are left")]
    Short { offset: usize, length: usize, left: usize },
    #[error("expected whole records of {length} bytes, got {actual} bytes")]
    NotWhole { length: usize, actual: usize },
    #[error("byte {offset}: {field} is {value}, expected one of {allowed}")]
    Unknown { offset: usize, field: &'static str, value: u8, allowed: &'static str },
}

impl RecordError {
    /// The same, with offsets counted from `base` bytes earlier.
    fn behind(mut self, base: usize) -> Self {
        if let Self::Short { offset, .. } | Self::Unknown { offset, .. } = &mut self {
            *offset += base;
        }
        self
    }
}

/// A record of one length; made by [`fixed_record!`](crate::fixed_record).
pub trait FixedRecord: Copy {
    /// Length in bytes, padding counted; a multiple of 8.
    const LENGTH: usize;
    /// The fields, by offset.
    const FIELDS: &'static [FieldPlace];

    /// Read the record at the start of `bytes`; padding is ignored.
    ///
    /// # Errors
    /// [`RecordError`] when `bytes` is too short, or an enum's byte is unknown.
    fn decode(bytes: &[u8]) -> Result<Self, RecordError>;

    /// Write the record into bytes of its length, padding as zero.
    ///
    /// # Panics
    /// When `bytes` is shorter.
    fn write(&self, bytes: &mut [u8]);

    /// Write the record at `offset` of a buffer; return where it ends.
    ///
    /// # Errors
    /// [`RecordError::Short`]: nothing was written.
    fn encode(&self, buffer: &mut [u8], offset: usize) -> Result<usize, RecordError> {
        let left = buffer.len().saturating_sub(offset);
        if left < Self::LENGTH {
            return Err(RecordError::Short { offset, length: Self::LENGTH, left });
        }
        let end = offset + Self::LENGTH;
        self.write(&mut buffer[offset..end]);
        Ok(end)
    }

    /// Write records back to back from the start of a buffer; return where they end.
    ///
    /// # Errors
    /// [`RecordError::Short`]: nothing was written.
    fn encode_all(records: &[Self], buffer: &mut [u8]) -> Result<usize, RecordError> {
        let end = records.len().saturating_mul(Self::LENGTH);
        if end > buffer.len() {
            return Err(RecordError::Short { offset: 0, length: end, left: buffer.len() });
        }
        for (record, bytes) in records.iter().zip(buffer.chunks_exact_mut(Self::LENGTH)) {
            record.write(bytes);
        }
        Ok(end)
    }

    /// Read records that stand back to back.
    ///
    /// # Errors
    /// [`RecordError`] with the offset in all of `bytes`: the last is cut off, or an enum's byte is unknown.
    fn decode_all(bytes: &[u8]) -> Result<Vec<Self>, RecordError> {
        if !bytes.len().is_multiple_of(Self::LENGTH) {
            return Err(RecordError::NotWhole { length: Self::LENGTH, actual: bytes.len() });
        }
        let places = (0..).step_by(Self::LENGTH);
        let decoded = bytes.chunks_exact(Self::LENGTH).zip(places);
        decoded.map(|(one, at)| Self::decode(one).map_err(|error| error.behind(at))).collect()
    }
}
