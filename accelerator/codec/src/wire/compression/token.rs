//! The archive's own format: runs of literals, and copies of what came at most 65,535 bytes before. Little-endian.
//!
//! ```text
//!  0            4          8            12      16
//! +------------+----------+------------+-------+---------+
//! | magic      | original | compressed | crc32 | tokens  |     compressed = bytes of the tokens, crc32 of the original bytes
//! +------------+----------+------------+-------+---------+
//! 0x00 u16 length, literals     0x01 u16 offset u16 length: a copy, which may overlap itself     0x02: the end
//! ```

use super::chains::Chains;
use crate::wire::bytes::{head, layout};
use crate::wire::fault::{checksum, count, exactly, holds, within};
use crate::wire::{Expected, WireError};

/// The first four bytes.
pub const MAGIC: u32 = 0x5A42_4C5A;
/// The most that a frame can hold, in bytes.
pub const ORIGINAL_LENGTH_MAX: usize = 1 << 30;
/// The longest literal run or copy, in bytes.
pub const RUN_LENGTH_MAX: usize = 65_535;
/// Bytes of a copy's token.
const COPY_LENGTH: usize = 5;
/// Bytes of a literal run's token, without the literals.
const LITERALS_LENGTH: usize = 3;
/// Places without a copy after which the steps get longer: noise is not worth a look at every byte.
const PATIENCE: usize = 64;
/// The longest step, in bytes.
const STRIDE_MAX: usize = 16;
const LITERALS: u8 = 0;
const COPY: u8 = 1;
const END: u8 = 2;

layout! {
    /// What a frame begins with.
    TokenHeader: 16 bytes, Little, {
        /// [`MAGIC`].
        magic: u32 = 0,
        /// Bytes before compression.
        original: u32 = 4,
        /// Bytes of the tokens.
        compressed: u32 = 8,
        /// CRC-32 (IEEE) of the bytes before compression.
        crc32: u32 = 12,
    }
}

/// Bytes that a frame of `length` bytes has at most: header, one token for every 65,535 literals, end.
///
/// A copy is taken only where it is no longer than its bytes as literals: five bytes, and three more where it cuts a run.
pub fn compress_bound(length: usize) -> usize {
    TokenHeader::LENGTH + length + LITERALS_LENGTH * length.div_ceil(RUN_LENGTH_MAX) + 1
}

/// Where tokens are written to.
struct Tokens<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl Tokens<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let (end, got) = (self.at + bytes.len(), self.buffer.len());
        let place = self.buffer.get_mut(self.at..end).ok_or(WireError::truncated("buffer", 0, end, got))?;
        place.copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    fn literals(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for run in bytes.chunks(RUN_LENGTH_MAX) {
            let [low, high] = (run.len() as u16).to_le_bytes();
            self.put(&[LITERALS, low, high])?;
            self.put(run)?;
        }
        Ok(())
    }

    fn copy(&mut self, offset: usize, length: usize) -> Result<(), WireError> {
        let ([o0, o1], [l0, l1]) = ((offset as u16).to_le_bytes(), (length as u16).to_le_bytes());
        self.put(&[COPY, o0, o1, l0, l1])
    }
}

/// See [`super::Compression::compress_into`]. Time grows with the length alone: at most 32 places are tried for each byte.
pub(super) fn compress_into(bytes: &[u8], buffer: &mut [u8]) -> Result<usize, WireError> {
    within("original", 4, count(bytes.len()), 0, count(ORIGINAL_LENGTH_MAX))?;
    let got = buffer.len();
    let (header, rest) = buffer.split_at_mut_checked(TokenHeader::LENGTH).ok_or(WireError::truncated(
        "buffer",
        0,
        TokenHeader::LENGTH,
        got,
    ))?;
    let mut tokens = Tokens { buffer: rest, at: 0 };
    write_tokens(bytes, &mut tokens)
        .map_err(|error| WireError { expected: Expected::Bytes(compress_bound(bytes.len())), ..error })?;
    let (original, compressed) = (bytes.len() as u32, tokens.at as u32);
    TokenHeader { magic: MAGIC, original, compressed, crc32: crc32fast::hash(bytes) }.write(header);
    Ok(TokenHeader::LENGTH + tokens.at)
}

fn write_tokens(bytes: &[u8], tokens: &mut Tokens<'_>) -> Result<(), WireError> {
    let mut chains = Chains::new(bytes);
    let (mut literals_from, mut at) = (0, 0);
    while at < bytes.len() {
        let cost = COPY_LENGTH + if literals_from < at { LITERALS_LENGTH } else { 0 };
        match chains.longest(at, RUN_LENGTH_MAX) {
            Some((offset, length)) if length > cost => {
                tokens.literals(&bytes[literals_from..at])?;
                tokens.copy(offset, length)?;
                chains.insert(at..at + length);
                at += length;
                literals_from = at;
            }
            _ => {
                chains.insert(at..at + 1);
                at += ((at - literals_from) / PATIENCE).clamp(1, STRIDE_MAX);
            }
        }
    }
    tokens.literals(&bytes[literals_from..])?;
    tokens.put(&[END])
}

fn opened(frame: &[u8]) -> Result<(TokenHeader, &[u8]), WireError> {
    let (start, tokens) = head(frame, "frame_header")?;
    let header = TokenHeader::read(start);
    exactly("magic", 0, header.magic, MAGIC)?;
    if header.compressed as usize > tokens.len() {
        return Err(WireError::truncated("compressed", 8, header.compressed as usize, tokens.len()));
    }
    exactly("compressed", 8, header.compressed, count(tokens.len()))?;
    let most = (u64::from(header.compressed) / COPY_LENGTH as u64 + 1) * RUN_LENGTH_MAX as u64;
    within("original", 4, header.original, 0, most.min(ORIGINAL_LENGTH_MAX as u64))?;
    Ok((header, tokens))
}

pub(super) fn declared_length(frame: &[u8]) -> Result<u64, WireError> {
    Ok(opened(frame)?.0.original.into())
}

/// See [`super::Compression::decompress`]; `length` is the checked length of the header.
pub(super) fn decompress(frame: &[u8], length: usize) -> Result<Vec<u8>, WireError> {
    let (header, tokens) = opened(frame)?;
    let mut out = super::room(4, length)?;
    let mut rest = tokens;
    loop {
        let at = frame.len() - rest.len();
        let (token, behind) = head::<1>(rest, "token").map_err(|error| error.behind(at))?;
        rest = match token[0] {
            LITERALS => literals(&mut out, behind, length),
            COPY => copy(&mut out, behind, length),
            kind => {
                holds(kind == END, "token", at, "0 (literals), 1 (copy) or 2 (end)", kind)?;
                exactly("end", at, count(behind.len()), 0)?;
                break;
            }
        }
        .map_err(|error| error.behind(at + 1))?;
    }
    exactly("original", 4, header.original, count(out.len()))?;
    checksum("crc32", 12, header.crc32, crc32fast::hash(&out))?;
    Ok(out)
}

/// A length of a token: one byte at least, and no more than are missing.
fn run(at: usize, bytes: [u8; 2], out: &[u8], length_max: usize) -> Result<usize, WireError> {
    let length = u16::from_le_bytes(bytes);
    within("length", at, length, 1, count(length_max - out.len()))?;
    Ok(length.into())
}

fn literals<'a>(out: &mut Vec<u8>, bytes: &'a [u8], length_max: usize) -> Result<&'a [u8], WireError> {
    let (length, rest) = head::<2>(bytes, "length")?;
    let length = run(0, *length, out, length_max)?;
    let (run, rest) = rest.split_at_checked(length).ok_or(WireError::truncated("literals", 2, length, rest.len()))?;
    out.extend_from_slice(run);
    Ok(rest)
}

fn copy<'a>(out: &mut Vec<u8>, bytes: &'a [u8], length_max: usize) -> Result<&'a [u8], WireError> {
    let (&[o0, o1, l0, l1], rest) = head::<4>(bytes, "offset")?;
    let offset = u16::from_le_bytes([o0, o1]);
    within("offset", 0, offset, 1, count(out.len()))?;
    let from = out.len() - usize::from(offset);
    let mut left = run(2, [l0, l1], out, length_max)?;
    // What was copied can be copied again: the source doubles with every turn.
    while left > 0 {
        let part = left.min(out.len() - from);
        out.extend_from_within(from..from + part);
        left -= part;
    }
    Ok(rest)
}
