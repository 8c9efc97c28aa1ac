//! Proof that a claim is lost: who made it, that it is dead, and how much it claimed.
//!
//! A header in progress names slot and generation: if the slot has another generation by now, or its owner is dead or has left, nobody
//! will commit it. (A slot is taken again only after its owner left or died, and leaving ends its claim first.)
//!
//! Without a header there are the notes. Everybody who tried to claim at this position has noted it, one of them won, and the
//! winner's note stays until its header is written. If all who noted it are dead, the winner is. Its length is told by
//! where the next claim begins: at the tail, at a position that somebody has noted (only positions that were the tail
//! are noted), or where a header stands. Inside the winner's claim is nothing but zeros, since it died before it wrote; so of
//! the noted lengths, the **shortest** that ends at such a place is the winner's.
//! The order of reading matters: tail, notes, headers. Whoever claimed at a place before the tail that was read had noted it, and
//! whoever cleared that note had written its header before.

use super::super::end::EndState;
use super::super::frame::GENERATION_MASK;
use super::super::geometry::{Geometry, RingGeometry};
use super::slots::Slots;
use crate::memory::words::WORD;
use crate::memory::{Region, SharedWord};
use crate::sync::Ordering;

/// What the notes tell about a claim without a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// Nothing that would prove anything.
    None,
    /// One who may have made the claim lives, or cannot be proven dead.
    Alive,
    /// Its producer is dead; it claimed this many bytes.
    Lost(usize),
}

impl Slots {
    /// Whether the producer of a claim with a header is proven to never commit it.
    pub(super) fn has_lost(&self, slot: usize, generation: u64) -> bool {
        let is_same = || self.generation(slot) & GENERATION_MASK == generation;
        // Owner first: were the slot taken again in between, the generation would tell, or the new owner lives.
        slot < self.count() && (self.owner(slot).is_free() || !is_same())
    }
}

/// Looks for proof about the claim at `head`, which has no header.
pub(super) fn lost_claim(
    slots: &Slots,
    buffer: &Region,
    geometry: RingGeometry,
    head: u64,
    tail_word: &SharedWord,
) -> Evidence {
    let tail = tail_word.load(Ordering::Acquire);
    let notes = slots.notes_at(head);
    if tail <= head || notes.is_empty() {
        return Evidence::None;
    }
    if !notes.iter().all(|note| note.owner.is_free() && note.owner != EndState::Vacant) {
        return Evidence::Alive;
    }
    let room = (geometry.contiguous(head) as u64).min(tail - head);
    let is_boundary = |length: u64| {
        let next = head + length;
        let header = || buffer.words()[geometry.index(next) / WORD].load(Ordering::Acquire);
        next == tail || slots.is_noted(next) || header() != 0
    };
    let length = notes
        .iter()
        .map(|note| note.length)
        .filter(|length| (WORD as u64..=room).contains(length) && length.is_multiple_of(WORD as u64))
        .filter(|length| is_boundary(*length))
        .min();
    length.map_or(Evidence::None, |length| Evidence::Lost(length as usize))
}
