//! Memory that others may read and write at the same time.
//!
//! # The rule
//!
//! Shared memory is nothing but words: a [`Region`] is a slice of 64-bit atomics, and **every** access to it, payload
//! bytes included, is an atomic load or store of one aligned word. So no `&[u8]` or `&mut [u8]` to shared memory
//! ever exists, a peer that writes where it must not (or that is hostile) makes values wrong but never behaviour
//! undefined, and rings need no `unsafe`. What a word says (a length, a position, an owner) is loaded **once** into a
//! private variable, checked, and only then used as an index. Payloads are copied out before a caller sees them.
//! Word copies cost as much as `memcpy` for messages of market-data size (`examples/ring_rate.rs` measures it).
//!
//! The exceptions are named: [`Region::as_ptr`] for bindings, and the futex word, which the kernel reads.
//!
//! # What cannot be protected
//!
//! A file that is truncated while it is mapped makes later accesses a SIGBUS. Files are allocated in full before they are mapped
//! (so a full file system is an error at creation), are 0600 in a 0700 directory of the same user, and
//! [`Segment::verify_length`] finds a truncated file; but a process of the same user can still cut it in between.

pub(crate) mod barrier;
mod region;
pub(crate) mod words;

#[cfg(not(loom))]
mod directory;
#[cfg(not(loom))]
mod lock;
#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
mod placement;
pub mod process;
#[cfg(not(loom))]
mod segment;

pub use region::Region;
pub(crate) use region::SharedWord;

#[cfg(not(loom))]
pub use directory::{SegmentDirectory, SegmentName};
#[cfg(not(loom))]
pub use lock::LOCK_WAIT;
#[cfg(not(loom))]
pub use mapping::HugePages;
#[cfg(not(loom))]
pub use placement::Placement;
#[cfg(not(loom))]
pub use segment::{Head, Segment, SegmentOptions};
