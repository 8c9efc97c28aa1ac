//! A ring of many producers in a named segment.

use super::bell::Bell;
use super::end::EndState;
use super::mpsc::{self, Mpsc, MpscConsumer, MpscProducer, Slots};
use super::page;
use super::segment::{CreateOptions, Kind, Metadata, PagedSegment};
use super::shared::{KIND_MPSC, RING_MAGIC, RING_VERSION, field, segment_of_a_ring};
use crate::Error;
use crate::memory::{HugePages, SegmentDirectory, SegmentName, SegmentOptions};

const MPSC: Kind = Kind {
    magic: RING_MAGIC,
    version: RING_VERSION,
    number: KIND_MPSC,
    name: "ring of many producers",
    lengths: |metadata| mpsc::lengths(metadata.length as usize, metadata.slot_count as usize),
    owners: |metadata| (0..metadata.slot_count as usize).map(Slots::offset).chain([page::CONSUMER_OWNER]).collect(),
};

/// A ring of many producers in a named segment.
#[derive(Clone, Debug)]
pub struct SharedMpscRing {
    paged: PagedSegment,
    ring: Mpsc,
}

impl SharedMpscRing {
    /// Makes a ring of `capacity` bytes for at most `slot_count` producers at a time.
    ///
    /// # Errors
    /// As [`super::IpcChannel::create`].
    pub fn create(
        directory: &SegmentDirectory,
        name: &SegmentName,
        capacity: usize,
        slot_count: usize,
        options: CreateOptions,
    ) -> Result<Self, Error> {
        mpsc::lengths(capacity, slot_count)?;
        let metadata = Metadata { length: field(capacity), item_length: 0, slot_count: field(slot_count) };
        Self::over(PagedSegment::create(directory, name, MPSC, metadata, options)?)
    }

    /// Opens a ring; capacity and slots are the creator's.
    ///
    /// # Errors
    /// As [`super::IpcChannel::open`], and [`Error::WrongKind`].
    pub fn open(directory: &SegmentDirectory, name: &SegmentName, options: SegmentOptions) -> Result<Self, Error> {
        Self::over(PagedSegment::open(directory, name, MPSC, options)?)
    }

    fn over(paged: PagedSegment) -> Result<Self, Error> {
        let Metadata { length, slot_count, .. } = paged.metadata;
        let ring = Mpsc::over(paged.paged.clone(), length as usize, slot_count as usize)?;
        Ok(Self { paged, ring })
    }

    /// Takes a slot.
    ///
    /// # Errors
    /// [`Error::NoFreeSlot`].
    pub fn producer(&self) -> Result<MpscProducer, Error> {
        self.ring.producer()
    }

    /// Takes the reading end.
    ///
    /// # Errors
    /// [`Error::EndTaken`], [`Error::CorruptChannel`].
    pub fn consumer(&self) -> Result<MpscConsumer, Error> {
        self.ring.consumer()
    }

    /// Bytes of the ring.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.capacity()
    }

    /// Producers it has room for.
    #[must_use]
    pub fn slot_count(&self) -> usize {
        self.ring.slot_count()
    }

    /// Hangs up a bell for a reader that sleeps in a poller.
    ///
    /// # Errors
    /// [`Error::NoFreeSlot`], [`Error::System`].
    pub fn bell(&self) -> Result<Bell, Error> {
        Bell::hang(&self.paged.paged)
    }

    /// Who holds the reading end.
    #[must_use]
    pub fn consumer_state(&self) -> EndState {
        self.paged.owner(page::CONSUMER_OWNER)
    }
}

segment_of_a_ring!([] SharedMpscRing);
