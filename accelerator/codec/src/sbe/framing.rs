//! The Simple Open Framing Header: six bytes, always big-endian, before a message.
//!
//! ```text
//!  0               4       6
//! +---------------+-------+----------
//! | message_length| type  | message …      message_length counts these six bytes, too
//! +---------------+-------+----------
//! ```

use thiserror::Error as ThisError;

use super::layout::ByteOrder;

/// A framing header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sofh {
    /// Bytes of header and message.
    pub message_length: u32,
    /// What the message is.
    pub encoding_type: u16,
}

/// Why bytes are no frame.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum FramingError {
    #[error("framing header: expected 6 bytes, {0} are left")]
    Short(usize),
    #[error("framing header: expected a message length of 6 or more within {left} bytes, found {length}")]
    Length { length: u32, left: usize },
    #[error("framing header: expected encoding type {expected:#06x}, found {actual:#06x}")]
    Encoding { expected: u16, actual: u16 },
}

impl Sofh {
    /// Bytes of the header.
    pub const LENGTH: usize = 6;

    /// The encoding type of SBE 1.0 in this byte order.
    pub fn encoding_type_of(order: ByteOrder) -> u16 {
        match order {
            ByteOrder::Little => 0xEB50,
            ByteOrder::Big => 0x5BE0,
        }
    }

    /// Read the frame that starts with `bytes`: what is in it, without the header.
    ///
    /// # Errors
    /// The header is cut off, its length leads out of `bytes`, or it holds something else than SBE in this order.
    pub fn frame(bytes: &[u8], order: ByteOrder) -> Result<&[u8], FramingError> {
        let Some((head, _)) = bytes.split_first_chunk::<{ Self::LENGTH }>() else {
            return Err(FramingError::Short(bytes.len()));
        };
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let (expected, actual) = (Self::encoding_type_of(order), u16::from_be_bytes([head[4], head[5]]));
        if actual != expected {
            return Err(FramingError::Encoding { expected, actual });
        }
        bytes
            .get(Self::LENGTH..length as usize)
            .filter(|_| length as usize >= Self::LENGTH)
            .ok_or(FramingError::Length { length, left: bytes.len() })
    }

    /// The six bytes.
    pub fn bytes(self) -> [u8; Self::LENGTH] {
        let (length, kind) = (self.message_length.to_be_bytes(), self.encoding_type.to_be_bytes());
        [length[0], length[1], length[2], length[3], kind[0], kind[1]]
    }
}
