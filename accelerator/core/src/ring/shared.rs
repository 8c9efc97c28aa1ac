//! Rings and channels in named segments, for processes that were started separately.

use super::bell::Bell;
use super::consumer::FrameConsumer;
use super::end::EndState;
use super::geometry::{Geometry, RingGeometry, TermGeometry};
use super::page;
use super::producer::FrameProducer;
use super::segment::{CreateOptions, Kind, Metadata, PagedSegment};
use crate::Error;
use crate::memory::{HugePages, SegmentDirectory, SegmentName, SegmentOptions};

/// Magic of an IPC channel.
pub const CHANNEL_MAGIC: u64 = 0x5A49_4742_4F4C_5421;
/// Version of its layout.
pub const CHANNEL_VERSION: u32 = 2;
/// Magic of a ring's segment: `MRLYRING` read as a big-endian number.
pub const RING_MAGIC: u64 = 0x4D52_4C59_5249_4E47;
/// Version of its layout.
pub const RING_VERSION: u32 = 1;

pub(super) const KIND_SPSC: u32 = 1;
pub(super) const KIND_MPSC: u32 = 2;
pub(super) const KIND_FIXED: u32 = 3;
pub(crate) const KIND_BROADCAST: u32 = 4;
pub(crate) const KIND_COUNTERS: u32 = 5;

fn no_slots(buffer_length: usize) -> (usize, usize) {
    (0, buffer_length)
}

const CHANNEL: Kind = Kind {
    magic: CHANNEL_MAGIC,
    version: CHANNEL_VERSION,
    number: 0,
    name: "channel",
    lengths: |metadata| Ok(no_slots(TermGeometry::new(metadata.length as usize)?.buffer_length())),
    owners: |_| vec![page::PRODUCER_OWNER, page::CONSUMER_OWNER],
};

const SPSC: Kind = Kind {
    magic: RING_MAGIC,
    version: RING_VERSION,
    number: KIND_SPSC,
    name: "ring of one producer",
    lengths: |metadata| Ok(no_slots(RingGeometry::new(metadata.length as usize)?.buffer_length())),
    owners: |_| vec![page::PRODUCER_OWNER, page::CONSUMER_OWNER],
};

/// A length that does not fit its field becomes one that every check refuses.
pub(crate) fn field(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A named segment with a frame buffer, one producer end and one consumer end.
#[derive(Clone, Debug)]
pub struct SharedFrames<G: Geometry> {
    pub(super) paged: PagedSegment,
    geometry: G,
}

/// An IPC channel: a log buffer of three terms in a named segment.
pub type IpcChannel = SharedFrames<TermGeometry>;
/// A byte ring of one producer in a named segment.
pub type SharedRing = SharedFrames<RingGeometry>;

impl IpcChannel {
    /// Makes a channel of three terms of `term_length` bytes.
    ///
    /// # Errors
    /// [`Error::InvalidTermLength`], [`Error::AlreadyExists`], [`Error::NoSpace`], [`Error::LockBusy`] (where a stale segment
    /// is to be replaced), [`Error::System`].
    pub fn create(
        directory: &SegmentDirectory,
        name: &SegmentName,
        term_length: usize,
        options: CreateOptions,
    ) -> Result<Self, Error> {
        let geometry = TermGeometry::new(term_length)?;
        let metadata = Metadata { length: field(term_length), item_length: 0, slot_count: 0 };
        Ok(Self { paged: PagedSegment::create(directory, name, CHANNEL, metadata, options)?, geometry })
    }

    /// Opens a channel; the term length is the creator's.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotReady`], [`Error::InvalidChannel`], [`Error::UnsupportedVersion`],
    /// [`Error::InvalidTermLength`], [`Error::TermLengthMismatch`], [`Error::AccessDenied`], [`Error::System`].
    pub fn open(directory: &SegmentDirectory, name: &SegmentName, options: SegmentOptions) -> Result<Self, Error> {
        let paged = PagedSegment::open(directory, name, CHANNEL, options)?;
        Ok(Self { geometry: TermGeometry::new(paged.metadata.length as usize)?, paged })
    }

    /// Bytes of one term.
    #[must_use]
    pub fn term_length(&self) -> usize {
        self.geometry.term_length()
    }
}

impl SharedRing {
    /// Makes a ring of `capacity` bytes.
    ///
    /// # Errors
    /// As [`IpcChannel::create`].
    pub fn create(
        directory: &SegmentDirectory,
        name: &SegmentName,
        capacity: usize,
        options: CreateOptions,
    ) -> Result<Self, Error> {
        let geometry = RingGeometry::new(capacity)?;
        let metadata = Metadata { length: field(capacity), item_length: 0, slot_count: 0 };
        Ok(Self { paged: PagedSegment::create(directory, name, SPSC, metadata, options)?, geometry })
    }

    /// Opens a ring; the capacity is the creator's.
    ///
    /// # Errors
    /// As [`IpcChannel::open`], and [`Error::WrongKind`].
    pub fn open(directory: &SegmentDirectory, name: &SegmentName, options: SegmentOptions) -> Result<Self, Error> {
        let paged = PagedSegment::open(directory, name, SPSC, options)?;
        Ok(Self { geometry: RingGeometry::new(paged.metadata.length as usize)?, paged })
    }

    /// Bytes of the ring.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.geometry.buffer_length()
    }
}

impl<G: Geometry> SharedFrames<G> {
    /// Takes the writing end.
    ///
    /// # Errors
    /// [`Error::EndTaken`], [`Error::CorruptChannel`].
    pub fn producer(&self) -> Result<FrameProducer<G>, Error> {
        FrameProducer::attach(&self.paged.paged, self.geometry)
    }

    /// Takes the reading end.
    ///
    /// # Errors
    /// [`Error::EndTaken`].
    pub fn consumer(&self) -> Result<FrameConsumer<G>, Error> {
        FrameConsumer::attach(&self.paged.paged, self.geometry)
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

    /// When the ends last beat, producer and consumer; 0 for never.
    #[must_use]
    pub fn beats_ns(&self) -> (u64, u64) {
        (self.paged.word(page::PRODUCER_OWNER + 8), self.paged.word(page::CONSUMER_OWNER + 8))
    }
}

/// What every segment of a ring can be asked.
macro_rules! segment_of_a_ring {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Who made the segment.
            #[must_use]
            pub fn creator(&self) -> EndState {
                self.paged.creator()
            }

            /// Nanoseconds since 1970 at which it was made: tells a segment from a later one of the same name.
            #[must_use]
            pub fn epoch_ns(&self) -> u64 {
                self.paged.word(page::EPOCH)
            }

            /// Whether its creator and all who held an end are proven dead or have left.
            #[must_use]
            pub fn is_stale(&self) -> bool {
                self.paged.is_stale()
            }

            /// Whether the name still leads to this segment.
            #[must_use]
            pub fn is_named(&self) -> bool {
                self.paged.segment.is_named()
            }

            /// Removes the name, if it still leads here. Who has the segment open keeps it.
            ///
            /// # Errors
            /// [`Error::LockBusy`] after a second; [`Error::System`].
            pub fn unlink(&self) -> Result<bool, Error> {
                self.unlink_within(crate::memory::LOCK_WAIT)
            }

            /// The same, and waits for others that change the directory for at most so long.
            ///
            /// # Errors
            /// [`Error::LockBusy`]: the name stays, for whoever removes what is stale. [`Error::System`].
            pub fn unlink_within(&self, wait: std::time::Duration) -> Result<bool, Error> {
                self.paged.unlink(wait)
            }

            /// Looks whether the file was cut.
            ///
            /// # Errors
            /// [`Error::TermLengthMismatch`].
            pub fn verify_length(&self) -> Result<(), Error> {
                self.paged.segment.verify_length()
            }

            /// Whether huge pages were had.
            #[must_use]
            pub fn huge_pages(&self) -> &HugePages {
                self.paged.huge_pages()
            }
        }
    };
}
pub(crate) use segment_of_a_ring;

segment_of_a_ring!([G: Geometry] SharedFrames<G>);
