//! A set of counters over memory.

use super::label::{LABEL_LENGTH_MAX, is_label, shown};
use crate::Error;
use crate::memory::words::{WORD, copy_in, copy_out};
use crate::memory::{Region, SharedWord};
use crate::sync::Ordering;

/// Counters of a set where nothing else is asked for.
pub const COUNTER_COUNT_DEFAULT: usize = 64;
const COUNTER_COUNT_MAX: usize = 1 << 16;
/// Bytes of one counter: a pair of cache lines, so that no two are fetched together.
const LINE: usize = 128;
const VALUE: usize = 0;
const TYPE_AND_STATE: usize = 8;
const LABEL_LENGTH: usize = 16;
const LABEL: usize = 24;

const BEING_MADE: u32 = 1;
const IN_USE: u32 = 2;

const fn type_and_state(type_id: i32, state: u32) -> u64 {
    type_id as u32 as u64 | (state as u64) << 32
}

/// What a counter says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterValue {
    /// Its place in the set.
    pub index: usize,
    /// What kind of counter it is: [`super::standard`] or one's own from 1,000 on.
    pub type_id: i32,
    /// Its name, at most 64 characters. What no label has (see [`super::is_label`]) is replaced by U+FFFD: another process may have
    /// written anything there.
    pub label: String,
    /// Its value.
    pub value: i64,
}

/// Counters that share a region. Clones share the counters.
#[derive(Clone, Debug)]
pub struct CounterSet {
    region: Region,
    count: usize,
}

impl CounterSet {
    /// Bytes of a set.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless the count is 1 to 65,536.
    pub fn length(count: usize) -> Result<usize, Error> {
        if (1..=COUNTER_COUNT_MAX).contains(&count) {
            return Ok(count * LINE);
        }
        Err(Error::InvalidArgument { what: "counters", expected: "1 to 65,536", actual: count as u64 })
    }

    /// A set of this process alone.
    ///
    /// # Errors
    /// As [`CounterSet::length`].
    pub fn heap(count: usize) -> Result<Self, Error> {
        Ok(Self { region: Region::heap(Self::length(count)?), count })
    }

    /// A set over a region of at least its length.
    ///
    /// # Errors
    /// As [`CounterSet::length`].
    ///
    /// # Panics
    /// If the region is shorter.
    pub(crate) fn over(region: &Region, count: usize) -> Result<Self, Error> {
        Ok(Self { region: region.part(0, Self::length(count)?), count })
    }

    /// Counters that fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.count
    }

    /// Takes a free place for a new counter of value 0. Returns `None` when all are taken, or it is no label
    /// (see [`super::is_label`]).
    ///
    /// Two threads that ask for one label get two counters: ask once, and share it.
    #[must_use]
    pub fn allocate(&self, type_id: i32, label: &str) -> Option<Counter> {
        if !is_label(label) {
            return None;
        }
        for index in 0..self.count {
            let state = self.word(index, TYPE_AND_STATE);
            let being_made = type_and_state(type_id, BEING_MADE);
            // Acquire: pairs with the release of whoever freed the place.
            if state.compare_exchange(0, being_made, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            let words = self.line(index);
            words[VALUE / WORD].store(0, Ordering::Relaxed);
            words[LABEL_LENGTH / WORD].store(label.len() as u64, Ordering::Relaxed);
            copy_in(&words[LABEL / WORD..(LABEL + LABEL_LENGTH_MAX) / WORD], label.as_bytes());
            // Release: pairs with the readers' acquire, who see the label whole.
            state.store(type_and_state(type_id, IN_USE), Ordering::Release);
            return Some(Counter { value: self.word(index, VALUE), state, index });
        }
        None
    }

    /// The counter of a type and label, where there is one.
    #[must_use]
    pub fn find(&self, type_id: i32, label: &str) -> Option<Counter> {
        let found = self.snapshot().into_iter().find(|one| one.type_id == type_id && one.label == label)?;
        Some(self.counter(found.index))
    }

    /// What all counters in use say. Each value is whole; together they are of no one instant.
    #[must_use]
    pub fn snapshot(&self) -> Vec<CounterValue> {
        (0..self.count).filter_map(|index| self.read(index)).collect()
    }

    /// Sets all counters in use to 0.
    pub fn reset(&self) {
        for index in 0..self.count {
            if self.read(index).is_some() {
                self.word(index, VALUE).store(0, Ordering::Relaxed);
            }
        }
    }

    fn read(&self, index: usize) -> Option<CounterValue> {
        let words = self.line(index);
        let state = words[TYPE_AND_STATE / WORD].load(Ordering::Acquire);
        if (state >> 32) as u32 != IN_USE {
            return None;
        }
        let length = (words[LABEL_LENGTH / WORD].load(Ordering::Relaxed) as usize).min(LABEL_LENGTH_MAX);
        let mut label = [0; LABEL_LENGTH_MAX];
        copy_out(&words[LABEL / WORD..(LABEL + LABEL_LENGTH_MAX) / WORD], &mut label);
        Some(CounterValue {
            index,
            type_id: state as u32 as i32,
            label: shown(&label[..length]),
            value: words[VALUE / WORD].load(Ordering::Relaxed) as i64,
        })
    }

    fn counter(&self, index: usize) -> Counter {
        Counter { value: self.word(index, VALUE), state: self.word(index, TYPE_AND_STATE), index }
    }

    fn word(&self, index: usize, offset: usize) -> SharedWord {
        self.region.word(index * LINE + offset)
    }

    fn line(&self, index: usize) -> &[crate::sync::AtomicU64] {
        &self.region.words()[index * LINE / WORD..(index + 1) * LINE / WORD]
    }
}

/// One counter. Clones count together. Dropping it keeps the counter in the set; [`Counter::free`] gives it back.
#[derive(Clone, Debug)]
pub struct Counter {
    value: SharedWord,
    state: SharedWord,
    index: usize,
}

impl Counter {
    /// Adds, wrapping; returns the value before. Any number of threads may add.
    #[inline]
    pub fn add(&self, amount: i64) -> i64 {
        self.value.fetch_add(amount as u64, Ordering::Relaxed) as i64
    }

    /// Adds without a locked instruction: for a counter that one thread alone counts.
    #[inline]
    pub fn add_alone(&self, amount: i64) {
        self.value.store(self.value.load(Ordering::Relaxed).wrapping_add(amount as u64), Ordering::Relaxed);
    }

    /// Its value.
    #[inline]
    #[must_use]
    pub fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed) as i64
    }

    /// Sets it.
    #[inline]
    pub fn set(&self, value: i64) {
        self.value.store(value as u64, Ordering::Relaxed);
    }

    /// Sets it to 0 and returns what it was; nothing that is added meanwhile gets lost.
    pub fn take(&self) -> i64 {
        self.value.swap(0, Ordering::Relaxed) as i64
    }

    /// Its place in the set.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Gives its place back. Clones of it must not be used any more: they would count for whoever takes the place.
    pub fn free(self) {
        self.state.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_counter_appears_with_its_label_and_type_and_counts() {
        let set = CounterSet::heap(4).unwrap();
        let counter = set.allocate(1000, "relay.ticks").unwrap();
        assert_eq!(counter.add(5), 0);
        counter.add_alone(-7);
        let said = set.snapshot();
        assert_eq!(said, [CounterValue { index: 0, type_id: 1000, label: "relay.ticks".into(), value: -2 }]);
        assert_eq!(set.find(1000, "relay.ticks").unwrap().take(), -2);
        assert!(set.find(1001, "relay.ticks").is_none());
        assert_eq!(counter.get(), 0);
    }

    #[test]
    fn places_end_and_a_free_one_is_taken_again_with_nothing_left_of_the_old() {
        let set = CounterSet::heap(2).unwrap();
        let first = set.allocate(1, "a long label that stays behind").unwrap();
        first.set(9);
        set.allocate(2, "b").unwrap();
        assert!(set.allocate(3, "c").is_none());
        first.free();
        let third = set.allocate(3, "c").unwrap();
        assert_eq!((third.index(), third.get()), (0, 0));
        assert_eq!(set.snapshot()[0].label, "c");
        assert!(set.allocate(4, &"x".repeat(65)).is_none());
    }

    #[test]
    fn threads_that_allocate_together_get_places_of_their_own_and_lose_no_count() {
        let set = CounterSet::heap(64).unwrap();
        let shared = set.allocate(1, "shared").unwrap();
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (set, shared) = (set.clone(), shared.clone());
                thread::spawn(move || {
                    let own: Vec<_> = (0..7).map(|k| set.allocate(n, &format!("{n}.{k}")).unwrap().index()).collect();
                    (0..10_000).for_each(|_| _ = shared.add(1));
                    own
                })
            })
            .collect();
        let mut places: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 56);
        assert_eq!(shared.get(), 80_000);
        set.reset();
        assert_eq!(shared.get(), 0);
    }

    #[test]
    fn forged_label_lengths_and_bytes_are_read_as_far_as_they_go() {
        let set = CounterSet::heap(1).unwrap();
        let _ = set.allocate(1, "ok").unwrap();
        set.line(0)[LABEL_LENGTH / WORD].store(u64::MAX, Ordering::Relaxed);
        set.line(0)[LABEL / WORD].store(u64::MAX, Ordering::Relaxed);
        let label = set.snapshot().remove(0).label;
        assert_eq!((label.chars().count(), label.trim_matches('\u{fffd}')), (64, ""));
    }
}
