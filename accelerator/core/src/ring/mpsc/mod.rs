//! Byte ring with many producers and one consumer.
//!
//! A claim goes through four steps, each one store, and its producer may die between any two of them:
//!
//! | step | store | if its producer dies behind it |
//! |---|---|---|
//! | note | position and length in its own slot | nothing: the tail has not moved |
//! | claim | tail, by compare-and-swap | the notes tell who claimed and how much: [`unblock`] |
//! | header | in-progress header with slot and generation; the note is cleared | the header tells it |
//! | commit | the data header (release) | nothing: the frame is whole |
//!
//! The consumer stops at the first frame that is not committed. It turns a claim into padding only when its producer is **proven**
//! dead, never by time: a producer that was merely stopped may wake and write. It zeroes what it consumed before it
//! releases its position, so unclaimed memory is all zeros and a missing header can be told from a stale one.
//! Where producers are few, a ring each is simpler and faster.

mod claim;
mod consumer;
mod producer;
mod slots;
#[cfg(all(test, not(loom)))]
mod tests;
mod unblock;

pub use claim::MpscClaim;
pub use consumer::MpscConsumer;
#[cfg(test)]
pub(crate) use producer::Death;
pub use producer::{MpscProducer, MpscReservation};
pub(crate) use slots::{SLOT_LENGTH, Slots};

use super::frame::SLOT_COUNT_MAX;
use super::geometry::{Geometry, RingGeometry};
use super::page::Paged;
use crate::Error;

/// Slots are handed out in whole pages of 4096 bytes.
pub const SLOT_COUNT_STEP: usize = if cfg!(loom) { 1 } else { 4096 / SLOT_LENGTH };

/// A ring of many producers: where it lies and how it is cut.
#[derive(Clone, Debug)]
pub struct Mpsc {
    paged: Paged,
    geometry: RingGeometry,
    slot_count: usize,
}

/// Bytes of the slots and of the buffer.
pub(crate) fn lengths(capacity: usize, slot_count: usize) -> Result<(usize, usize), Error> {
    let geometry = RingGeometry::new(capacity)?;
    if slot_count == 0 || slot_count > SLOT_COUNT_MAX || !slot_count.is_multiple_of(SLOT_COUNT_STEP) {
        let expected = "a multiple of 32 from 32 to 1024";
        return Err(Error::InvalidTermLength { what: "producer slots", expected, actual: slot_count as u64 });
    }
    Ok((slot_count * SLOT_LENGTH, geometry.buffer_length()))
}

impl Mpsc {
    /// A ring on the heap, for threads.
    ///
    /// # Errors
    /// [`Error::InvalidTermLength`] unless `capacity` is a power of two from 64 bytes to 1 GiB and `slot_count` a multiple of 32 up to 1024.
    pub fn heap(capacity: usize, slot_count: usize) -> Result<Self, Error> {
        let (slots_length, buffer_length) = lengths(capacity, slot_count)?;
        Self::over(Paged::heap(slots_length, buffer_length), capacity, slot_count)
    }

    pub(crate) fn over(paged: Paged, capacity: usize, slot_count: usize) -> Result<Self, Error> {
        Ok(Self { paged, geometry: RingGeometry::new(capacity)?, slot_count })
    }

    /// Takes a slot; goes on as one more producer.
    ///
    /// # Errors
    /// [`Error::NoFreeSlot`].
    pub fn producer(&self) -> Result<MpscProducer, Error> {
        MpscProducer::attach(&self.paged, self.geometry, self.slot_count)
    }

    /// Takes the reading end.
    ///
    /// # Errors
    /// [`Error::EndTaken`], [`Error::CorruptChannel`].
    pub fn consumer(&self) -> Result<MpscConsumer, Error> {
        MpscConsumer::attach(&self.paged, self.geometry, self.slot_count)
    }

    #[cfg(test)]
    pub(crate) fn paged(&self) -> &Paged {
        &self.paged
    }

    /// Producers it has room for.
    #[must_use]
    pub fn slot_count(&self) -> usize {
        self.slot_count
    }

    /// Bytes of the ring.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.geometry.buffer_length()
    }
}
