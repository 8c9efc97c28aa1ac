//! The metadata page: where its words are.
//!
//! ```text
//! byte 0         8        12       16     20     24     28
//!      +---------+--------+--------+------+------+------+
//!      | magic   | version| length | kind | item | slots|      length: term or capacity in bytes, or items
//!      +---------+--------+--------+------+------+------+
//!  128 | tail    |                                            the producer's line
//!  256 | head    | cleaning |                                 the consumer's line
//!  512 | creator | epoch_ns |                                 own additions from here on
//!  640 | producer owner | producer beat_ns |
//!  768 | consumer owner | consumer beat_ns |
//!  896 | consumer waiter |                                    the consumer sleeps on it
//! 1024 | producer waiter |                                    producers sleep on it
//! 1152 | owners of the consumers' bells, 16 words |
//! 4096 | owner slots (many producers only), then the buffer
//! ```
//!
//! Inside a loom model the words lie side by side: a model pays for every word.

#[cfg(not(loom))]
use super::bell::BellPlace;
use crate::memory::Region;

const fn at(real: usize, model: usize) -> usize {
    if cfg!(loom) { model } else { real }
}

#[cfg(not(loom))]
pub(crate) const MAGIC: usize = 0;
#[cfg(not(loom))]
pub(crate) const VERSION_AND_LENGTH: usize = 8;
#[cfg(not(loom))]
pub(crate) const KIND_AND_ITEM: usize = 16;
#[cfg(not(loom))]
pub(crate) const SLOTS: usize = 24;
pub(crate) const TAIL: usize = at(128, 0);
pub(crate) const HEAD: usize = at(256, 8);
pub(crate) const CLEANING: usize = at(264, 16);
#[cfg(not(loom))]
pub(crate) const CREATOR: usize = 512;
#[cfg(not(loom))]
pub(crate) const EPOCH: usize = 520;
pub(crate) const PRODUCER_OWNER: usize = at(640, 24);
pub(crate) const CONSUMER_OWNER: usize = at(768, 32);
pub(crate) const CONSUMER_WAITER: usize = at(896, 40);
pub(crate) const PRODUCER_WAITER: usize = at(1024, 48);
/// Owners of the bells: readers that sleep in a poller.
#[cfg(not(loom))]
pub(crate) const BELL_OWNERS: usize = 1152;
/// Bytes of the page.
pub const PAGE_LENGTH: usize = at(4096, 56);

/// A page and the buffer behind it.
#[derive(Clone, Debug)]
pub(crate) struct Paged {
    pub(crate) page: Region,
    pub(crate) buffer: Region,
    /// Where readers that sleep in a poller are woken; `None` for memory without a name.
    #[cfg(not(loom))]
    pub(crate) bells: Option<BellPlace>,
}

impl Paged {
    /// Splits a region whose length was checked.
    pub(crate) fn split(region: &Region, slots_length: usize, buffer_length: usize) -> Self {
        let page = region.part(0, PAGE_LENGTH + slots_length);
        Self {
            page,
            buffer: region.part(PAGE_LENGTH + slots_length, buffer_length),
            #[cfg(not(loom))]
            bells: None,
        }
    }

    /// A page and a buffer on the heap, for threads.
    pub(crate) fn heap(slots_length: usize, buffer_length: usize) -> Self {
        Self::split(&Region::heap(PAGE_LENGTH + slots_length + buffer_length), slots_length, buffer_length)
    }
}
