//! One transmitter, any number of receivers, none of whom can hold it up.
//!
//! The transmitter overwrites what is old; each receiver has a cursor of its own in private memory. A receiver that was
//! overtaken notices it, counts it, and goes on with the newest record. It copies first and trusts the copy only when the
//! transmitter had not begun to overwrite it.
//!
//! ```text
//! 0                        capacity                                   capacity + 512
//! +------------------------+-------------+------+--------+-----------+
//! | records, padded to 8   | tail_intent | tail | latest | (unused)  |   trailer: one pair of cache lines each
//! +------------------------+-------------+------+--------+-----------+
//!
//! record   +----------------+-------------+------------------
//!          | payload_length | msg_type_id | payload … to 8          type 0: padding, whose length is its whole size
//!          +----------------+-------------+------------------
//! ```
//!
//! | transmitter | receiver |
//! |---|---|
//! | `tail_intent` = end (relaxed) | copy the record (relaxed) |
//! | fence(release) | fence(acquire) |
//! | write the record (relaxed), latest | `tail_intent` ≤ cursor + capacity? then the copy is whole |
//! | tail = end (release) | |
//!
//! A release *store* of the intent would not do: later writes may move before it. The fences pair: a receiver that copied any
//! word of the new record sees the intent that announced it (`src/models/broadcast.rs`).

mod layout;
mod receiver;
#[cfg(not(loom))]
mod shared;
mod transmitter;

pub use layout::{CAPACITY_MIN, TRAILER_LENGTH, payload_length_max};
pub use receiver::{Received, Receiver, ReceiverCounts};
#[cfg(not(loom))]
pub use shared::SharedBroadcast;
pub use transmitter::{Transmitter, TransmitterCounts};

use crate::Error;
use crate::ring::page::Paged;

/// A broadcast over memory of this process, for threads.
///
/// # Errors
/// [`Error::InvalidTermLength`] unless the capacity is a power of two from 512 bytes to 1 GiB.
pub fn broadcast(capacity: usize) -> Result<(Transmitter, Receiver), Error> {
    let paged = Paged::heap(0, layout::length(capacity)?);
    Ok((Transmitter::attach(&paged, capacity)?, Receiver::attach(&paged, capacity)?))
}
