//! How ever-growing positions fall onto a buffer: a ring that wraps, or three terms that rotate.

use super::frame::PAYLOAD_LENGTH_MAX;
use crate::Error;

/// Smallest capacity of a ring, in bytes.
pub const CAPACITY_MIN: usize = 64;
/// Smallest term, in bytes.
pub const TERM_LENGTH_MIN: usize = if cfg!(loom) { 64 } else { 4096 };
/// Largest capacity and term, in bytes.
pub const LENGTH_MAX: usize = 1 << 30;
/// Terms of a log buffer.
pub const TERM_COUNT: usize = 3;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::RingGeometry {}
    impl Sealed for super::TermGeometry {}
}

/// Where positions lie. Implemented by [`RingGeometry`] and [`TermGeometry`] alone.
pub trait Geometry: sealed::Sealed + Copy + Send + std::fmt::Debug {
    /// Byte index of a position in the buffer.
    fn index(self, position: u64) -> usize;
    /// Bytes from a position to where a frame must end at the latest.
    fn contiguous(self, position: u64) -> usize;
    /// Most bytes that a producer gets ahead of its consumer.
    fn window(self) -> u64;
    /// Most bytes that may lie between consumer and producer in a sound buffer.
    fn span(self) -> u64;
    /// Bytes of the buffer.
    fn buffer_length(self) -> usize;
    /// Longest payload.
    fn payload_length_max(self) -> usize;
}

/// One buffer of a power of two; frames never wrap, padding fills what is left at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingGeometry {
    capacity: usize,
}

impl RingGeometry {
    /// # Errors
    /// [`Error::InvalidTermLength`] unless the capacity is a power of two from 64 bytes to 1 GiB.
    pub fn new(capacity: usize) -> Result<Self, Error> {
        check_length("ring capacity", "a power of two from 64 bytes to 1 GiB", capacity, CAPACITY_MIN)?;
        Ok(Self { capacity })
    }
}

impl Geometry for RingGeometry {
    #[inline]
    fn index(self, position: u64) -> usize {
        position as usize & (self.capacity - 1)
    }

    #[inline]
    fn contiguous(self, position: u64) -> usize {
        self.capacity - self.index(position)
    }

    /// One word less than the capacity: the word behind the last frame is always free to be zeroed.
    #[inline]
    fn window(self) -> u64 {
        self.capacity as u64 - 8
    }

    #[inline]
    fn span(self) -> u64 {
        self.capacity as u64
    }

    fn buffer_length(self) -> usize {
        self.capacity
    }

    fn payload_length_max(self) -> usize {
        PAYLOAD_LENGTH_MAX.min(self.capacity / 8)
    }
}

/// Three terms in turn. The producer gets two terms ahead at most, so one term is always free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermGeometry {
    term_length: usize,
    shift: u32,
}

impl TermGeometry {
    /// # Errors
    /// [`Error::InvalidTermLength`] unless the term length is a power of two from 4096 bytes to 1 GiB.
    pub fn new(term_length: usize) -> Result<Self, Error> {
        check_length("term length", "a power of two from 4096 bytes to 1 GiB", term_length, TERM_LENGTH_MIN)?;
        Ok(Self { term_length, shift: term_length.trailing_zeros() })
    }

    /// Bytes of one term.
    #[must_use]
    pub fn term_length(self) -> usize {
        self.term_length
    }
}

impl Geometry for TermGeometry {
    #[inline]
    fn index(self, position: u64) -> usize {
        let term = ((position >> self.shift) % TERM_COUNT as u64) as usize;
        term * self.term_length + (position as usize & (self.term_length - 1))
    }

    #[inline]
    fn contiguous(self, position: u64) -> usize {
        self.term_length - (position as usize & (self.term_length - 1))
    }

    #[inline]
    fn window(self) -> u64 {
        2 * self.term_length as u64
    }

    #[inline]
    fn span(self) -> u64 {
        (TERM_COUNT * self.term_length) as u64
    }

    fn buffer_length(self) -> usize {
        TERM_COUNT * self.term_length
    }

    fn payload_length_max(self) -> usize {
        PAYLOAD_LENGTH_MAX.min(self.term_length / 8)
    }
}

fn check_length(what: &'static str, expected: &'static str, length: usize, min: usize) -> Result<(), Error> {
    if length.is_power_of_two() && (min..=LENGTH_MAX).contains(&length) {
        return Ok(());
    }
    Err(Error::InvalidTermLength { what, expected, actual: length as u64 })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn positions_rotate_through_three_terms() {
        let terms = TermGeometry::new(4096).unwrap();
        let seen: Vec<_> = [0, 4096, 8192, 12_288, 4104].map(|p| (terms.index(p), terms.contiguous(p))).to_vec();
        assert_eq!(seen, [(0, 4096), (4096, 4096), (8192, 4096), (0, 4096), (4104, 4088)]);
    }

    #[test]
    fn lengths_that_are_no_power_of_two_or_out_of_bounds_are_refused() {
        for length in [0, 1, 32, 65, 96, LENGTH_MAX + 1, LENGTH_MAX * 2] {
            assert!(RingGeometry::new(length).is_err(), "{length}");
        }
        for length in [0, 64, 2048, 4097, LENGTH_MAX * 2] {
            assert!(TermGeometry::new(length).is_err(), "{length}");
        }
        assert_eq!(TermGeometry::new(LENGTH_MAX).unwrap().payload_length_max(), PAYLOAD_LENGTH_MAX);
        assert_eq!(RingGeometry::new(64).unwrap().payload_length_max(), 8);
    }
}
