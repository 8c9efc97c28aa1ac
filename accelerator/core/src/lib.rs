//! The accelerator's core: memory that threads and processes share, and rings over it.
//!
//! | module | what it is |
//! |---|---|
//! | [`memory`] | regions of words, named segments, process identity, the fence of sleepers |
//! | [`ring`] | frames, byte rings (one or many producers), fixed-item ring, log buffer, IPC channel |
//! | [`broadcast`] | one transmitter, many receivers that cannot hold it up |
//! | [`counters`] | counters that other processes read |
//! | [`agent`] | loops that work in turns, and idle strategies |
//!
//! Layouts: `proto/spec/0012-memory-segments-and-rings.md`. Every atomic protocol has a loom model
//! (`src/models/`). Nothing here logs;
//! expected outcomes are values ([`ring::Refusal`], [`ring::Stop`]), the unexpected is an [`Error`].

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("the layouts are little-endian words of 64 bits: build for a 64-bit little-endian machine");

#[cfg(not(loom))]
pub mod agent;
pub mod broadcast;
pub mod counters;
mod error;
pub mod memory;
#[cfg(all(test, loom))]
mod models;
pub mod ring;
mod sync;

pub use error::{Code, Error};
