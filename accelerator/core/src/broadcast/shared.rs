//! A broadcast in a named segment.

use super::{Receiver, Transmitter, layout};
use crate::Error;
use crate::memory::{HugePages, SegmentDirectory, SegmentName, SegmentOptions};
use crate::ring::segment::{Kind, Metadata, PagedSegment};
use crate::ring::shared::{KIND_BROADCAST, RING_MAGIC, RING_VERSION, field, segment_of_a_ring};
use crate::ring::{Bell, CreateOptions, EndState, page};

const BROADCAST: Kind = Kind {
    magic: RING_MAGIC,
    version: RING_VERSION,
    number: KIND_BROADCAST,
    name: "broadcast",
    lengths: |metadata| Ok((0, layout::length(metadata.length as usize)?)),
    owners: |_| vec![page::PRODUCER_OWNER],
};

/// A broadcast in a named segment: one transmitter, and receivers that come and go.
#[derive(Clone, Debug)]
pub struct SharedBroadcast {
    paged: PagedSegment,
    capacity: usize,
}

impl SharedBroadcast {
    /// Makes a broadcast of `capacity` bytes.
    ///
    /// # Errors
    /// As [`crate::ring::IpcChannel::create`].
    pub fn create(
        directory: &SegmentDirectory,
        name: &SegmentName,
        capacity: usize,
        options: CreateOptions,
    ) -> Result<Self, Error> {
        layout::length(capacity)?;
        let metadata = Metadata { length: field(capacity), item_length: 0, slot_count: 0 };
        Ok(Self { paged: PagedSegment::create(directory, name, BROADCAST, metadata, options)?, capacity })
    }

    /// Opens a broadcast; the capacity is the creator's.
    ///
    /// # Errors
    /// As [`crate::ring::IpcChannel::open`], and [`Error::WrongKind`].
    pub fn open(directory: &SegmentDirectory, name: &SegmentName, options: SegmentOptions) -> Result<Self, Error> {
        let paged = PagedSegment::open(directory, name, BROADCAST, options)?;
        Ok(Self { capacity: paged.metadata.length as usize, paged })
    }

    /// Takes the writing end.
    ///
    /// # Errors
    /// [`Error::EndTaken`], [`Error::CorruptChannel`].
    pub fn transmitter(&self) -> Result<Transmitter, Error> {
        Transmitter::attach(&self.paged.paged, self.capacity)
    }

    /// Begins a reading end behind the last record.
    ///
    /// # Errors
    /// None that a segment which was opened gives.
    pub fn receiver(&self) -> Result<Receiver, Error> {
        Receiver::attach(&self.paged.paged, self.capacity)
    }

    /// Hangs up a bell for a receiver that sleeps in a poller.
    ///
    /// # Errors
    /// [`Error::NoFreeSlot`], [`Error::System`].
    pub fn bell(&self) -> Result<Bell, Error> {
        Bell::hang(&self.paged.paged)
    }

    /// Bytes of the buffer.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Who holds the writing end.
    #[must_use]
    pub fn transmitter_state(&self) -> EndState {
        self.paged.owner(page::PRODUCER_OWNER)
    }
}

segment_of_a_ring!([] SharedBroadcast);
