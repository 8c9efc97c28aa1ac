//! Compressed frames: whole byte strings, each with its length and a checksum.
//!
//! | format | first four bytes | what it is |
//! |---|---|---|
//! | [`Compression::Token`] | `5A4C425A` | the archive's own: [`token`] |
//! | [`Compression::Lz4`] | `04224D18` | an LZ4 frame: quick both ways |
//! | [`Compression::Zstd`] | `28B52FFD` | a Zstandard frame: smallest (feature `zstd`) |
//!
//! Layouts: `proto/spec/0017-compressed-frames.md`.

mod chains;
mod lz4;
pub mod token;
#[cfg(feature = "zstd")]
mod zstandard;

use super::fault::{count, within};
use super::{Expected, Fault, Got, WireError};

/// How the bytes of a frame are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// The archive's own tokens.
    Token,
    /// An LZ4 frame with length and checksum.
    Lz4,
    /// A Zstandard frame with length and checksum.
    Zstd,
}

impl Compression {
    /// All formats; whether they are built in is another question: [`Compression::is_built_in`].
    pub const ALL: [Self; 3] = [Self::Token, Self::Lz4, Self::Zstd];

    /// The name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// Whether this build has it.
    pub fn is_built_in(self) -> bool {
        self != Self::Zstd || cfg!(feature = "zstd")
    }

    /// The format of a frame, by its first four bytes; `None` for other bytes.
    pub fn of_frame(frame: &[u8]) -> Option<Self> {
        let magic = u32::from_le_bytes(*frame.first_chunk()?);
        Self::ALL.into_iter().find(|format| format.magic() == magic)
    }

    fn magic(self) -> u32 {
        match self {
            Self::Token => token::MAGIC,
            Self::Lz4 => lz4::MAGIC,
            Self::Zstd => 0xFD2F_B528,
        }
    }

    /// Bytes that a frame of `length` bytes has at most, whatever they are.
    pub fn compress_bound(self, length: usize) -> usize {
        match self {
            Self::Token => token::compress_bound(length),
            Self::Lz4 => lz4::compress_bound(length),
            #[cfg(feature = "zstd")]
            Self::Zstd => zstandard::compress_bound(length),
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => length,
        }
    }

    /// Write the frame of `bytes` to the start of `buffer`, and return its length.
    ///
    /// # Errors
    /// The buffer is too short ([`Compression::compress_bound`] is always enough; its content is undefined then), the bytes
    /// are too many (1 GiB for tokens), or the format is not built in.
    pub fn compress_into(self, bytes: &[u8], buffer: &mut [u8]) -> Result<usize, WireError> {
        match self {
            Self::Token => token::compress_into(bytes, buffer),
            Self::Lz4 => lz4::compress_into(bytes, buffer),
            #[cfg(feature = "zstd")]
            Self::Zstd => zstandard::compress_into(bytes, buffer),
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => Err(not_built_in()),
        }
    }

    /// The frame of `bytes`.
    ///
    /// # Errors
    /// As of [`Compression::compress_into`], but for the buffer.
    pub fn compress(self, bytes: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut frame = vec![0; self.compress_bound(bytes.len())];
        let length = self.compress_into(bytes, &mut frame)?;
        frame.truncate(length);
        Ok(frame)
    }

    /// How many bytes a frame says that it holds. Nothing of it is decompressed or believed yet.
    ///
    /// # Errors
    /// Its header is cut off or damaged, says no length, or a length that so few bytes cannot hold.
    pub fn declared_length(self, frame: &[u8]) -> Result<u64, WireError> {
        match self {
            Self::Token => token::declared_length(frame),
            Self::Lz4 => lz4::declared_length(frame),
            #[cfg(feature = "zstd")]
            Self::Zstd => zstandard::declared_length(frame),
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => Err(not_built_in()),
        }
    }

    /// The bytes of a frame, which is all of `frame`.
    ///
    /// Memory for the declared length is taken once it is known to be at most `length_max`, and no more than that for the
    /// result; LZ4 needs two of the frame's blocks (4 MiB at most each) beside it, Zstandard its tables.
    ///
    /// # Errors
    /// The frame holds more than `length_max` bytes, is cut, damaged or followed by something, or the format is not built in.
    pub fn decompress(self, frame: &[u8], length_max: usize) -> Result<Vec<u8>, WireError> {
        let length = self.declared_length(frame)?;
        within("original", self.length_offset(), length, 0, count(length_max))?;
        match self {
            Self::Token => token::decompress(frame, length as usize),
            Self::Lz4 => lz4::decompress(frame, length as usize),
            #[cfg(feature = "zstd")]
            Self::Zstd => zstandard::decompress(frame, length as usize),
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => Err(not_built_in()),
        }
    }

    fn length_offset(self) -> usize {
        match self {
            Self::Token => 4,
            Self::Lz4 => 6,
            Self::Zstd => 5,
        }
    }
}

/// Room for the bytes of a frame; what memory cannot hold is refused, as any other length that is too great.
fn room(offset: usize, length: usize) -> Result<Vec<u8>, WireError> {
    let mut room = Vec::new();
    let refusal = |_| WireError {
        fault: Fault::Invalid,
        field: "original",
        offset,
        expected: Expected::Words("as many bytes as memory has room for"),
        got: Got::Bytes(length),
    };
    room.try_reserve_exact(length).map_err(refusal)?;
    Ok(room)
}

#[cfg(not(feature = "zstd"))]
fn not_built_in() -> WireError {
    refused("magic", 0, "token or lz4: this build has no Zstandard", "zstd")
}

/// Something that a library says of a frame.
fn refused(field: &'static str, offset: usize, expected: &'static str, got: &'static str) -> WireError {
    let (expected, got) = (Expected::Words(expected), Got::Words(got));
    WireError { fault: Fault::Invalid, field, offset, expected, got }
}
