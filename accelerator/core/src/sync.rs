//! Atomics of the standard library, or loom's under `cfg(loom)`, so that the models run the very code that ships.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
