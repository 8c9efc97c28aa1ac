//! Frames and headers of other systems: bytes in, checked values out, and back. No I/O, no state.
//!
//! | module | what it is |
//! |---|---|
//! | [`aeron`] | Aeron's UDP protocol: frames, positions, a walk over the frames of a datagram |
//! | [`zigbolt`] | `ZigBolt`'s channel: packets, NAK bodies, fragments |
//! | [`nbmq`] | nbmq: data and control frames, hashes |
//! | [`nanomq`] | `NanoMQ`: messages, log records, TCP frames |
//! | [`compression`] | frames of compressed bytes: token, LZ4, Zstd |
//!
//! A decoder takes bytes that a stranger sent: it reads nothing past their end, allocates nothing that they ask for, and
//! refuses what contradicts itself with a [`WireError`] that names field, offset, what was expected and what it was.
//!
//! Layouts: `proto/spec/0016-wire-flyweights.md`, `0017-compressed-frames.md`.

pub mod aeron;
mod bytes;
pub mod compression;
mod fault;
pub mod nanomq;
pub mod nbmq;
pub mod zigbolt;

pub use fault::{Expected, Fault, Got, WireError};

/// A value with one layout: what [`Flyweight::encode`] wrote, [`Flyweight::decode`] reads.
pub trait Flyweight<'a>: Sized {
    /// Read the value that `bytes` begin with; what follows it is not looked at.
    ///
    /// # Errors
    /// The bytes end too early, or a field has a value that it cannot have.
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError>;

    /// Bytes that [`Flyweight::encode`] writes.
    fn encoded_length(&self) -> usize;

    /// Write the value to the start of `buffer`, and return how many bytes that took.
    ///
    /// # Errors
    /// A field has a value that it cannot have, or the buffer is too short; it is as it was, then.
    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError>;
}
