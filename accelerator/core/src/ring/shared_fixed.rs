//! A ring of fixed items in a named segment.

use super::bell::Bell;
use super::end::EndState;
use super::fixed::{FixedConsumer, FixedGeometry, FixedProducer};
use super::page;
use super::segment::{CreateOptions, Kind, Metadata, PagedSegment};
use super::shared::{KIND_FIXED, RING_MAGIC, RING_VERSION, field, segment_of_a_ring};
use crate::Error;
use crate::memory::{HugePages, SegmentDirectory, SegmentName, SegmentOptions};

const FIXED: Kind = Kind {
    magic: RING_MAGIC,
    version: RING_VERSION,
    number: KIND_FIXED,
    name: "ring of fixed items",
    lengths: |metadata| Ok((0, geometry(metadata)?.buffer_length())),
    owners: |_| vec![page::PRODUCER_OWNER, page::CONSUMER_OWNER],
};

fn geometry(metadata: Metadata) -> Result<FixedGeometry, Error> {
    FixedGeometry::new(metadata.item_length as usize, metadata.length as usize)
}

/// A ring of items of one size in a named segment.
#[derive(Clone, Debug)]
pub struct SharedFixedRing {
    paged: PagedSegment,
    geometry: FixedGeometry,
}

impl SharedFixedRing {
    /// Makes a ring of `item_count` items of `item_length` bytes.
    ///
    /// # Errors
    /// As [`super::IpcChannel::create`].
    pub fn create(
        directory: &SegmentDirectory,
        name: &SegmentName,
        item_length: usize,
        item_count: usize,
        options: CreateOptions,
    ) -> Result<Self, Error> {
        let geometry = FixedGeometry::new(item_length, item_count)?;
        let metadata = Metadata { length: field(item_count), item_length: field(item_length), slot_count: 0 };
        Ok(Self { paged: PagedSegment::create(directory, name, FIXED, metadata, options)?, geometry })
    }

    /// Opens a ring; the sizes are the creator's.
    ///
    /// # Errors
    /// As [`super::IpcChannel::open`], and [`Error::WrongKind`].
    pub fn open(directory: &SegmentDirectory, name: &SegmentName, options: SegmentOptions) -> Result<Self, Error> {
        let paged = PagedSegment::open(directory, name, FIXED, options)?;
        Ok(Self { geometry: geometry(paged.metadata)?, paged })
    }

    /// Takes the writing end.
    ///
    /// # Errors
    /// [`Error::EndTaken`], [`Error::CorruptChannel`].
    pub fn producer(&self) -> Result<FixedProducer, Error> {
        FixedProducer::attach(&self.paged.paged, self.geometry)
    }

    /// Takes the reading end.
    ///
    /// # Errors
    /// [`Error::EndTaken`].
    pub fn consumer(&self) -> Result<FixedConsumer, Error> {
        FixedConsumer::attach(&self.paged.paged, self.geometry)
    }

    /// Bytes of one item.
    #[must_use]
    pub fn item_length(&self) -> usize {
        self.geometry.item_length
    }

    /// Items that fit.
    #[must_use]
    pub fn item_count(&self) -> usize {
        self.geometry.item_count
    }

    /// Hangs up a bell for a reader that sleeps in a poller.
    ///
    /// # Errors
    /// [`Error::NoFreeSlot`], [`Error::System`].
    pub fn bell(&self) -> Result<Bell, Error> {
        Bell::hang(&self.paged.paged)
    }

    /// Who holds the writing end.
    #[must_use]
    pub fn producer_state(&self) -> EndState {
        self.paged.owner(page::PRODUCER_OWNER)
    }

    /// Who holds the reading end.
    #[must_use]
    pub fn consumer_state(&self) -> EndState {
        self.paged.owner(page::CONSUMER_OWNER)
    }
}

segment_of_a_ring!([] SharedFixedRing);
