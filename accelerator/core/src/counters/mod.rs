//! Counters that other processes can read while they are counted.
//!
//! ```text
//! byte 0        8          12      16             24                88       128
//!      +--------+----------+-------+--------------+-----------------+--------+
//!      | value  | type_id  | state | label_length | label, UTF-8    | (zero) |    one line each, 64 a set by default
//!      | i64    | i32      | i32   | u64          | 64 bytes        |        |
//!      +--------+----------+-------+--------------+-----------------+--------+
//!
//! state    0 free ── CAS ──► 1 being made ── release ──► 2 in use ── free ──► 0
//! ```
//!
//! A counter is taken by compare-and-swap on (type, state) and appears, with its label, when it is in use. Counting is one relaxed
//! atomic addition, or a plain load and store where one thread counts. Nothing is read back, so a forged set misleads a
//! reader's eyes and nothing else; labels are read with their lengths checked.

mod label;
mod set;
#[cfg(not(loom))]
mod shared;
mod standard;

pub use label::{LABEL_LENGTH_MAX, is_label};
pub use set::{COUNTER_COUNT_DEFAULT, Counter, CounterSet, CounterValue};
#[cfg(not(loom))]
pub use shared::SharedCounters;
pub use standard::{STANDARD, StandardCounter, standard};
