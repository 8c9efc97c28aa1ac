//! Owner slots: one producer each, with a note of the claim that it is about to make.
//!
//! ```text
//! byte 0       8         16           24             32
//!      +-------+---------+------------+--------------+--------+
//!      | owner | beat_ns | generation | position + 1 | length |   … to 128
//!      +-------+---------+------------+--------------+--------+
//! ```
//!
//! Every store into a slot is a release: a producer that is killed between two of them leaves the earlier ones behind, and no later one.

use super::super::end::{End, EndState};
use super::super::page::PAGE_LENGTH;
use crate::memory::{Region, SharedWord};
use crate::sync::Ordering;

/// Bytes of a slot: a pair of cache lines, since its owner writes into it with every claim.
pub(crate) const SLOT_LENGTH: usize = if cfg!(loom) { 40 } else { 128 };
const GENERATION: usize = 16;
const POSITION: usize = 24;
const LENGTH: usize = 32;
const NO_NOTE: u64 = 0;

/// The note of one slot.
#[derive(Debug)]
pub(crate) struct Slot {
    position: SharedWord,
    length: SharedWord,
}

impl Slot {
    /// Says which claim is tried next.
    #[inline]
    pub(crate) fn note(&self, position: u64, length: usize) {
        self.position.store(NO_NOTE, Ordering::Release);
        self.length.store(length as u64, Ordering::Release);
        self.position.store(position + 1, Ordering::Release);
    }

    /// Forgets it: the claim failed, or its header is written.
    #[inline]
    pub(crate) fn clear(&self) {
        self.position.store(NO_NOTE, Ordering::Release);
    }
}

/// All slots of a ring.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    page: Region,
    count: usize,
}

/// A claim that was noted at a position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub(super) length: u64,
    pub(super) owner: EndState,
}

impl Slots {
    pub(crate) fn new(page: &Region, count: usize) -> Self {
        Self { page: page.clone(), count }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Offset of a slot's owner word in the page.
    pub(crate) fn offset(slot: usize) -> usize {
        PAGE_LENGTH + slot * SLOT_LENGTH
    }

    fn load(&self, slot: usize, field: usize) -> u64 {
        self.page.word(Self::offset(slot) + field).load(Ordering::Acquire)
    }

    pub(crate) fn owner(&self, slot: usize) -> EndState {
        EndState::of(self.load(slot, 0))
    }

    pub(super) fn generation(&self, slot: usize) -> u64 {
        self.load(slot, GENERATION)
    }

    /// Takes the first slot that is free and whose note nobody needs. Returns it, its number and its new generation.
    pub(super) fn take(&self, head: &SharedWord, tail: &SharedWord) -> Option<(End, usize, u64, Slot)> {
        (0..self.count).find_map(|slot| {
            let found = self.load(slot, 0);
            if !EndState::of(found).is_free() || self.is_evidence(slot, head, tail) {
                return None;
            }
            let end = End::swap(&self.page, Self::offset(slot), found)?;
            let word = |field| self.page.word(Self::offset(slot) + field);
            let generation = self.generation(slot).wrapping_add(1);
            // Before any claim: a frame of the last owner names an older generation from here on.
            word(GENERATION).store(generation, Ordering::Release);
            let notes = Slot { position: word(POSITION), length: word(LENGTH) };
            notes.clear();
            Some((end, slot, generation, notes))
        })
    }

    /// Whether a dead owner's note may be all that tells how much it claimed: its position was claimed and not consumed.
    fn is_evidence(&self, slot: usize, head: &SharedWord, tail: &SharedWord) -> bool {
        let note = self.load(slot, POSITION);
        if note == NO_NOTE {
            return false;
        }
        let position = note - 1;
        head.load(Ordering::Acquire) <= position && tail.load(Ordering::Acquire) != position
    }

    /// The claims that were noted at a position.
    pub(super) fn notes_at(&self, position: u64) -> Vec<Note> {
        (0..self.count)
            .filter(|slot| self.load(*slot, POSITION) == position + 1)
            .map(|slot| Note { length: self.load(slot, LENGTH), owner: self.owner(slot) })
            .collect()
    }

    pub(super) fn is_noted(&self, position: u64) -> bool {
        (0..self.count).any(|slot| self.load(slot, POSITION) == position + 1)
    }
}
