//! Where the same four bytes came before: the newest place for each hash, and the place before each place.

use std::ops::Range;

/// Places further back cannot be said in two bytes.
const OFFSET_MAX: usize = 65_535;
/// Places that are tried for one position.
const TRIES_MAX: usize = 32;
/// Bytes that are hashed.
const KEY_LENGTH: usize = 4;

/// Places are stored with one added, 0 for none.
pub(super) struct Chains<'a> {
    bytes: &'a [u8],
    newest: Vec<u32>,
    before: Vec<u32>,
    shift: u32,
}

impl<'a> Chains<'a> {
    /// Without any place. Takes 8 bytes for each of `bytes`, 512 KiB at most.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let length = bytes.len().clamp(64, OFFSET_MAX + 1).next_power_of_two();
        Self { bytes, newest: vec![0; length], before: vec![0; length], shift: 32 - length.trailing_zeros() }
    }

    fn slot(&self, at: usize) -> Option<usize> {
        let key = u32::from_le_bytes(*self.bytes.get(at..)?.first_chunk::<KEY_LENGTH>()?);
        Some((key.wrapping_mul(0x9E37_79B1) >> self.shift) as usize)
    }

    /// Note these places.
    pub(super) fn insert(&mut self, places: Range<usize>) {
        let mask = self.before.len() - 1;
        for at in places {
            let Some(slot) = self.slot(at) else { return };
            self.before[at & mask] = std::mem::replace(&mut self.newest[slot], at as u32 + 1);
        }
    }

    /// Offset and length of the longest copy for the bytes from `at` on, among the newest [`TRIES_MAX`] places.
    pub(super) fn longest(&self, at: usize, length_max: usize) -> Option<(usize, usize)> {
        let mask = self.before.len() - 1;
        let wanted = &self.bytes[at..self.bytes.len().min(at + length_max)];
        let mut place = self.newest[self.slot(at)?] as usize;
        let mut best = (0, 0);
        for _ in 0..TRIES_MAX {
            // A place of the ring that was taken by a later one would be too far back.
            if place == 0 || at - (place - 1) > OFFSET_MAX || best.1 == wanted.len() {
                break;
            }
            let from = place - 1;
            if self.bytes[from + best.1] == wanted[best.1] {
                let length = shared(&self.bytes[from..], wanted);
                best = if length > best.1 { (at - from, length) } else { best };
            }
            place = self.before[from & mask] as usize;
        }
        (best.1 > 0).then_some(best)
    }
}

/// How many bytes both begin with.
fn shared(left: &[u8], right: &[u8]) -> usize {
    let (left_words, right_words) = (left.as_chunks::<8>().0, right.as_chunks::<8>().0);
    let same = left_words.iter().zip(right_words).take_while(|(left, right)| left == right).count() * 8;
    same + left[same..].iter().zip(&right[same..]).take_while(|(left, right)| left == right).count()
}
