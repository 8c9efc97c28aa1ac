//! Copies between private bytes and shared words. Every access is one relaxed atomic word.
//!
//! Order comes from the positions around them: a producer's release store follows, a consumer's acquire load precedes.

use crate::sync::{AtomicU64, Ordering};

/// Bytes of one word.
pub(crate) const WORD: usize = 8;

/// Words that are copied without a look at the lengths in between: a message of 64 bytes.
const BLOCK: usize = 8;

/// Stores `bytes` into the words from their beginning; the rest of the last word becomes zero.
///
/// # Panics
/// If `words` is shorter than `bytes`.
#[inline]
pub(crate) fn copy_in(words: &[AtomicU64], bytes: &[u8]) {
    let words = &words[..bytes.len().div_ceil(WORD)];
    let (values, tail) = bytes.as_chunks::<WORD>();
    if !tail.is_empty() {
        let mut value = [0; WORD];
        value[..tail.len()].copy_from_slice(tail);
        words[words.len() - 1].store(u64::from_le_bytes(value), Ordering::Relaxed);
    }
    let words = &words[..values.len()];
    let (value_blocks, value_rest) = values.as_chunks::<BLOCK>();
    let (word_blocks, word_rest) = words.as_chunks::<BLOCK>();
    for (block, values) in word_blocks.iter().zip(value_blocks) {
        for (word, value) in block.iter().zip(values) {
            word.store(u64::from_le_bytes(*value), Ordering::Relaxed);
        }
    }
    for (word, value) in word_rest.iter().zip(value_rest) {
        word.store(u64::from_le_bytes(*value), Ordering::Relaxed);
    }
}

/// Stores `bytes` at a byte offset; bytes of the first and last word outside of the range keep their value.
///
/// # Panics
/// If the range lies outside of `words`.
pub(crate) fn copy_in_at(words: &[AtomicU64], offset: usize, bytes: &[u8]) {
    assert!(offset + bytes.len() <= words.len() * WORD, "range outside of the claim");
    if offset.is_multiple_of(WORD) && bytes.len().is_multiple_of(WORD) {
        return copy_in(&words[offset / WORD..], bytes);
    }
    for (at, byte) in (offset..).zip(bytes) {
        let word = &words[at / WORD];
        let shift = (at % WORD) * 8;
        let kept = word.load(Ordering::Relaxed) & !(0xff << shift);
        word.store(kept | u64::from(*byte) << shift, Ordering::Relaxed);
    }
}

/// Loads as many words as `bytes` has room for; the last may be partial.
///
/// # Panics
/// If `words` is shorter than `bytes`.
#[inline]
pub(crate) fn copy_out(words: &[AtomicU64], bytes: &mut [u8]) {
    let words = &words[..bytes.len().div_ceil(WORD)];
    let (values, tail) = bytes.as_chunks_mut::<WORD>();
    if !tail.is_empty() {
        let value = words[words.len() - 1].load(Ordering::Relaxed).to_le_bytes();
        tail.copy_from_slice(&value[..tail.len()]);
    }
    let words = &words[..values.len()];
    let (value_blocks, value_rest) = values.as_chunks_mut::<BLOCK>();
    let (word_blocks, word_rest) = words.as_chunks::<BLOCK>();
    for (block, values) in word_blocks.iter().zip(value_blocks) {
        for (word, value) in block.iter().zip(values) {
            *value = word.load(Ordering::Relaxed).to_le_bytes();
        }
    }
    for (word, value) in word_rest.iter().zip(value_rest) {
        *value = word.load(Ordering::Relaxed).to_le_bytes();
    }
}

/// Appends the beginning of `words`, `length` bytes of it. Nothing is filled with zeros first, as a slice would have to be.
///
/// # Panics
/// If `words` is shorter than `length`.
#[inline]
pub(crate) fn append(bytes: &mut Vec<u8>, words: &[AtomicU64], length: usize) {
    let words = &words[..length.div_ceil(WORD)];
    bytes.reserve(words.len() * WORD);
    let start = bytes.len();
    let (blocks, rest) = words.as_chunks::<BLOCK>();
    for block in blocks {
        let mut values = [[0; WORD]; BLOCK];
        for (value, word) in values.iter_mut().zip(block) {
            *value = word.load(Ordering::Relaxed).to_le_bytes();
        }
        bytes.extend_from_slice(values.as_flattened());
    }
    for word in rest {
        bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    bytes.truncate(start + length);
}

/// Stores zero into every word.
#[inline]
pub(crate) fn zero(words: &[AtomicU64]) {
    for word in words {
        word.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(u64::MAX)).collect()
    }

    #[test]
    fn bytes_come_back_and_the_rest_of_the_last_word_is_zero() {
        let shared = words(3);
        copy_in(&shared, b"hello world");
        let mut back = [1; 16];
        copy_out(&shared, &mut back);
        assert_eq!(&back, b"hello world\0\0\0\0\0");
        assert_eq!(shared[2].load(Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn appending_is_copying_out_behind_what_is_there() {
        let shared: Vec<AtomicU64> = (0..20).map(|n| AtomicU64::new(n * 0x0101_0101_0101_0101)).collect();
        for length in 0..=160 {
            let (mut appended, mut copied) = (b"before".to_vec(), vec![0; length]);
            append(&mut appended, &shared, length);
            copy_out(&shared, &mut copied);
            assert_eq!(appended, [b"before".as_slice(), &copied].concat());
        }
    }

    #[test]
    fn an_unaligned_range_leaves_its_neighbours_alone() {
        let shared = words(2);
        copy_in_at(&shared, 6, b"abcd");
        let mut back = [0; 16];
        copy_out(&shared, &mut back);
        assert_eq!(back[..6], [255; 6]);
        assert_eq!(&back[6..10], b"abcd");
        assert_eq!(back[10..], [255; 6]);
    }

    #[test]
    fn nothing_is_copied_for_no_bytes() {
        copy_in(&words(0), b"");
        copy_out(&words(0), &mut []);
    }
}
