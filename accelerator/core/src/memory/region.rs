//! A range of words that stays mapped as long as anybody holds it.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use super::words::WORD;
use crate::sync::AtomicU64;

/// A range of 64-bit atomic words on the heap or in a segment. Clones share the memory and keep it alive.
#[derive(Clone)]
pub struct Region {
    first: NonNull<AtomicU64>,
    count: usize,
    owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: a region is a shared slice of atomics, which are Sync; the owner that keeps them alive is Send and Sync.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// One pair of cache lines: processors fetch lines in pairs.
#[cfg(not(loom))]
#[repr(align(128))]
struct LinePair {
    _words: [AtomicU64; 16],
}

impl Region {
    /// Zeroed memory of this process, aligned to 128 bytes, rounded up to whole words.
    #[must_use]
    #[cfg(not(loom))]
    pub fn heap(length_bytes: usize) -> Self {
        let lines: Vec<LinePair> = (0..length_bytes.div_ceil(size_of::<LinePair>()))
            .map(|_| LinePair { _words: [const { AtomicU64::new(0) }; 16] })
            .collect();
        let owner = Arc::new(lines);
        let first = NonNull::from(owner.as_slice()).cast();
        Self { first, count: length_bytes.div_ceil(WORD), owner }
    }

    /// Zeroed memory inside a loom model.
    #[must_use]
    #[cfg(loom)]
    pub fn heap(length_bytes: usize) -> Self {
        let words: Vec<AtomicU64> = (0..length_bytes.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect();
        let owner = Arc::new(words);
        let first = NonNull::from(owner.as_slice()).cast();
        Self { first, count: length_bytes.div_ceil(WORD), owner }
    }

    /// A region over memory that `owner` keeps readable and writable.
    ///
    /// # Safety
    /// `first` is aligned to 8 and `count` words from it stay mapped, readable and writable until `owner` is dropped.
    /// No reference other than to atomics is ever made to them.
    #[cfg(not(loom))]
    pub(crate) unsafe fn from_raw(first: NonNull<AtomicU64>, count: usize, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self { first, count, owner }
    }

    /// Length in bytes, a multiple of 8.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        self.count * WORD
    }

    /// The part from `offset` on, `length` bytes, both multiples of 8.
    ///
    /// # Panics
    /// If the part lies outside or is not aligned: offsets come from this crate's layouts, never from shared memory.
    #[must_use]
    pub fn part(&self, offset: usize, length: usize) -> Self {
        assert!(offset.is_multiple_of(WORD) && length.is_multiple_of(WORD), "parts are whole words");
        let part = &self.words()[offset / WORD..(offset + length) / WORD];
        Self { first: NonNull::from(part).cast(), count: part.len(), owner: Arc::clone(&self.owner) }
    }

    /// All words.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: `first` and `count` describe words that `owner` keeps mapped; atomics may be shared with anybody.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }

    /// The word at a byte offset, kept alive on its own.
    ///
    /// # Panics
    /// As [`Region::part`].
    pub(crate) fn word(&self, offset: usize) -> SharedWord {
        SharedWord { region: self.part(offset, WORD) }
    }

    /// First byte, for bindings that must hand memory to another language. The bytes change under the reader.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.first.as_ptr().cast()
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("length_bytes", &self.length_bytes()).finish_non_exhaustive()
    }
}

/// One word of a region.
#[derive(Clone, Debug)]
pub(crate) struct SharedWord {
    region: Region,
}

impl Deref for SharedWord {
    type Target = AtomicU64;

    #[inline]
    fn deref(&self) -> &AtomicU64 {
        // SAFETY: the region has exactly one word, which its owner keeps mapped.
        unsafe { self.region.first.as_ref() }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn a_part_outlives_the_whole_and_shares_its_words() {
        let whole = Region::heap(256);
        let part = whole.part(128, 64);
        whole.words()[16].store(7, Ordering::Relaxed);
        drop(whole);
        assert_eq!(part.words()[0].load(Ordering::Relaxed), 7);
        assert_eq!(part.length_bytes(), 64);
    }

    #[test]
    fn heap_memory_begins_on_a_pair_of_cache_lines() {
        assert_eq!(Region::heap(8).as_ptr() as usize % 128, 0);
    }

    #[test]
    #[should_panic(expected = "range")]
    fn a_part_outside_of_the_region_is_refused() {
        let _ = Region::heap(64).part(56, 16);
    }
}
