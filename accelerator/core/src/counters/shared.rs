//! Counters in a named segment: what another process shows.

use std::ops::Deref;

use super::CounterSet;
use crate::Error;
use crate::memory::{HugePages, SegmentDirectory, SegmentName, SegmentOptions};
use crate::ring::segment::{Kind, Metadata, PagedSegment};
use crate::ring::shared::{KIND_COUNTERS, RING_MAGIC, RING_VERSION, field, segment_of_a_ring};
use crate::ring::{CreateOptions, EndState, page};

const COUNTERS: Kind = Kind {
    magic: RING_MAGIC,
    version: RING_VERSION,
    number: KIND_COUNTERS,
    name: "set of counters",
    lengths: |metadata| Ok((0, CounterSet::length(metadata.length as usize)?)),
    owners: |_| vec![],
};

/// A set of counters in a named segment. It is stale when its creator is dead.
#[derive(Clone, Debug)]
pub struct SharedCounters {
    paged: PagedSegment,
    set: CounterSet,
}

impl SharedCounters {
    /// Makes a set of `count` counters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] on the count, and as [`crate::ring::IpcChannel::create`].
    pub fn create(
        directory: &SegmentDirectory,
        name: &SegmentName,
        count: usize,
        options: CreateOptions,
    ) -> Result<Self, Error> {
        CounterSet::length(count)?;
        let metadata = Metadata { length: field(count), item_length: 0, slot_count: 0 };
        Self::of(PagedSegment::create(directory, name, COUNTERS, metadata, options)?)
    }

    /// Opens a set, to read or to count in; its size is the creator's.
    ///
    /// # Errors
    /// As [`crate::ring::IpcChannel::open`], and [`Error::WrongKind`].
    pub fn open(directory: &SegmentDirectory, name: &SegmentName, options: SegmentOptions) -> Result<Self, Error> {
        Self::of(PagedSegment::open(directory, name, COUNTERS, options)?)
    }

    fn of(paged: PagedSegment) -> Result<Self, Error> {
        let set = CounterSet::over(&paged.paged.buffer, paged.metadata.length as usize)?;
        Ok(Self { paged, set })
    }
}

impl Deref for SharedCounters {
    type Target = CounterSet;

    fn deref(&self) -> &CounterSet {
        &self.set
    }
}

segment_of_a_ring!([] SharedCounters);
