//! Zstandard frames that say their length. Written at level 3 with a checksum of the content.

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{self, get_frame_content_size};

use super::refused;
use crate::wire::WireError;
use crate::wire::fault::{count, exactly};

const LEVEL: i32 = 3;
const MAGIC: u32 = 0xFD2F_B528;

/// The library's bound, and the checksum that it leaves out.
pub(super) fn compress_bound(length: usize) -> usize {
    zstd_safe::compress_bound(length) + 4
}

pub(super) fn compress_into(bytes: &[u8], buffer: &mut [u8]) -> Result<usize, WireError> {
    let short = WireError::truncated("buffer", 0, compress_bound(bytes.len()), buffer.len());
    let mut compressor = Compressor::new(LEVEL).map_err(|_| no_memory())?;
    compressor.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).map_err(|_| no_memory())?;
    compressor.compress_to_buffer(bytes, buffer).map_err(|_| short)
}

pub(super) fn declared_length(frame: &[u8]) -> Result<u64, WireError> {
    let magic = frame.first_chunk().map(|magic| u32::from_le_bytes(*magic));
    exactly("magic", 0, magic.ok_or(WireError::truncated("magic", 0, 4, frame.len()))?, MAGIC)?;
    match get_frame_content_size(frame) {
        Ok(Some(length)) => Ok(length),
        Ok(None) => Err(refused("original", 5, "a frame that says its length", "no length")),
        Err(_) => Err(refused("frame_header", 4, "a whole Zstandard header", "cut or damaged bytes")),
    }
}

pub(super) fn decompress(frame: &[u8], length: usize) -> Result<Vec<u8>, WireError> {
    let damaged = refused("blocks", 5, "a whole and sound Zstandard frame", "damaged bytes");
    let end = zstd_safe::find_frame_compressed_size(frame).map_err(|_| damaged)?;
    exactly("end", end, count(frame.len() - end), 0)?;
    let mut out = super::room(5, length)?;
    let mut decompressor = Decompressor::new().map_err(|_| no_memory())?;
    let found = decompressor.decompress_to_buffer(frame, &mut out).map_err(|_| damaged)?;
    exactly("original", 5, count(found), count(length))?;
    Ok(out)
}

fn no_memory() -> WireError {
    refused("buffer", 0, "memory for the library's tables", "none")
}
