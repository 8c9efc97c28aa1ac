//! LZ4 frames that say their length. Written with independent blocks of 64 KiB and a checksum of the content.

use std::io::{Read, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::refused;
use crate::wire::WireError;
use crate::wire::bytes::head;
use crate::wire::fault::{count, exactly, holds, within};

/// The first four bytes.
pub(super) const MAGIC: u32 = 0x184D_2204;
/// Magic, flags, block size, content size, checksum of these.
const HEADER_LENGTH: usize = 15;
const HAS_BLOCK_CHECKSUMS: u8 = 0x10;
const HAS_CONTENT_SIZE: u8 = 0x08;
const HAS_CONTENT_CHECKSUM: u8 = 0x04;
/// A block that is stored as it is.
const IS_STORED: u32 = 0x8000_0000;
const BLOCK_LENGTH: usize = 1 << 16;
/// A byte of a block makes 255 at most.
const RATIO_MAX: u64 = 255;

/// Header, each block with its length and as it is, end mark, checksum.
pub(super) fn compress_bound(length: usize) -> usize {
    HEADER_LENGTH + length + 4 * length.div_ceil(BLOCK_LENGTH) + 8
}

pub(super) fn compress_into(bytes: &[u8], buffer: &mut [u8]) -> Result<usize, WireError> {
    let got = buffer.len();
    let short = WireError::truncated("buffer", 0, compress_bound(bytes.len()), got);
    let info = FrameInfo::new()
        .content_size(Some(bytes.len() as u64))
        .content_checksum(true)
        .block_size(BlockSize::Max64KB)
        .block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, buffer);
    encoder.write_all(bytes).map_err(|_| short)?;
    let left = encoder.finish().map_err(|_| short)?.len();
    Ok(got - left)
}

pub(super) fn declared_length(frame: &[u8]) -> Result<u64, WireError> {
    let (start, rest) = head::<HEADER_LENGTH>(frame, "frame_header")?;
    let [m0, m1, m2, m3, flags, _, size @ .., _] = *start;
    exactly("magic", 0, u32::from_le_bytes([m0, m1, m2, m3]), MAGIC)?;
    holds(flags & HAS_CONTENT_SIZE != 0, "flags", 4, "a frame that says its length (bit 8)", flags)?;
    let length = u64::from_le_bytes(size);
    within("original", 6, length, 0, (rest.len() as u64).saturating_mul(RATIO_MAX))?;
    Ok(length)
}

/// Where the frame ends, by the lengths of its blocks. The library takes the end of the bytes for an end mark, this does not.
fn end(frame: &[u8]) -> Result<usize, WireError> {
    let (start, _) = head::<HEADER_LENGTH>(frame, "frame_header")?;
    let checksum_of = |flag: u8| if start[4] & flag == 0 { 0 } else { 4 };
    let mut at = HEADER_LENGTH;
    loop {
        let rest = frame.get(at..).unwrap_or_default();
        let (block, _) = head(rest, "block_length").map_err(|error| error.behind(at))?;
        let length = (u32::from_le_bytes(*block) & !IS_STORED) as usize;
        if length == 0 {
            return Ok(at + 4 + checksum_of(HAS_CONTENT_CHECKSUM));
        }
        at += 4 + length + checksum_of(HAS_BLOCK_CHECKSUMS);
    }
}

pub(super) fn decompress(frame: &[u8], length: usize) -> Result<Vec<u8>, WireError> {
    let damaged = refused("blocks", HEADER_LENGTH, "a sound LZ4 frame", "damaged bytes");
    let end = end(frame)?;
    exactly("end", end.min(frame.len()), count(frame.len()), count(end))?;
    let mut decoder = FrameDecoder::new(frame);
    let mut out = super::room(6, length)?;
    out.resize(length, 0);
    decoder.read_exact(&mut out).map_err(|_| damaged)?;
    // End mark and checksum are read when more is asked for.
    let more = decoder.read(&mut [0]).map_err(|_| damaged)?;
    exactly("original", 6, count(length + more), count(length))?;
    Ok(out)
}
