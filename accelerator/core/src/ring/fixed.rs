//! Ring of items of one size: no headers, whole batches copied and released at once.
//!
//! Positions count items, not bytes; an item's index is its position modulo the (power of two) number of items.

use super::end::{End, EndState, Peer};
use super::geometry::LENGTH_MAX;
use super::outcome::{Refusal, Stop};
use super::page::{self, Paged};
use super::producer::POSITION_MAX;
use super::waiter::Waiter;
use crate::Error;
use crate::memory::words::{WORD, copy_in, copy_out};
use crate::memory::{Region, SharedWord};
use crate::sync::Ordering;

/// Size of items and ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedGeometry {
    pub(super) item_length: usize,
    pub(super) item_count: usize,
}

impl FixedGeometry {
    /// # Errors
    /// [`Error::InvalidTermLength`] unless items are multiples of 8 bytes, their number a power of two, and all of them at most 1 GiB.
    pub fn new(item_length: usize, item_count: usize) -> Result<Self, Error> {
        let refused =
            |what, expected, actual: usize| Err(Error::InvalidTermLength { what, expected, actual: actual as u64 });
        if item_length == 0 || !item_length.is_multiple_of(WORD) || item_length > LENGTH_MAX {
            return refused("item length", "a multiple of 8 bytes", item_length);
        }
        if !item_count.is_power_of_two() || item_count > LENGTH_MAX / item_length {
            return refused("item count", "a power of two, and at most 1 GiB in all", item_count);
        }
        Ok(Self { item_length, item_count })
    }

    pub(super) fn buffer_length(self) -> usize {
        self.item_length * self.item_count
    }

    /// Words of `count` items from `position` on, in at most two pieces.
    #[inline]
    fn pieces(self, position: u64, count: usize) -> [(usize, usize); 2] {
        let first = position as usize & (self.item_count - 1);
        let straight = count.min(self.item_count - first);
        let words = self.item_length / WORD;
        [(first * words, straight * words), (0, (count - straight) * words)]
    }
}

/// A ring on the heap, for two threads.
///
/// # Errors
/// As [`FixedGeometry::new`].
pub fn fixed(item_length: usize, item_count: usize) -> Result<(FixedProducer, FixedConsumer), Error> {
    let geometry = FixedGeometry::new(item_length, item_count)?;
    let paged = Paged::heap(0, geometry.buffer_length());
    Ok((FixedProducer::attach(&paged, geometry)?, FixedConsumer::attach(&paged, geometry)?))
}

/// The one writing end.
#[derive(Debug)]
pub struct FixedProducer {
    geometry: FixedGeometry,
    buffer: Region,
    tail_word: SharedWord,
    head_word: SharedWord,
    waiter: Waiter,
    consumer: Peer,
    end: End,
    tail: u64,
    head_seen: u64,
    corrupt: u64,
}

impl FixedProducer {
    pub(super) fn attach(paged: &Paged, geometry: FixedGeometry) -> Result<Self, Error> {
        let page = &paged.page;
        let end = End::take(page, page::PRODUCER_OWNER, "producer")?;
        let (tail_word, head_word) = (page.word(page::TAIL), page.word(page::HEAD));
        let (tail, head) = (tail_word.load(Ordering::Acquire), head_word.load(Ordering::Acquire));
        let span = geometry.item_count as u64;
        if head > tail || tail - head > span || tail > POSITION_MAX {
            return Err(Error::CorruptChannel { head, tail, span });
        }
        let waiter = Waiter::of_readers(paged);
        let consumer = Peer::new(page, page::CONSUMER_OWNER);
        let buffer = paged.buffer.clone();
        Ok(Self { geometry, buffer, tail_word, head_word, waiter, consumer, end, tail, head_seen: head, corrupt: 0 })
    }

    /// Writes as many whole items of `items` as there is room for, published by one store. Returns how many; bytes behind the last
    /// whole item are ignored.
    ///
    /// # Errors
    /// [`Refusal::BackPressured`] or [`Refusal::Closed`] if there is room for none, [`Refusal::Corrupt`], [`Refusal::Forked`].
    #[inline]
    pub fn push(&mut self, items: &[u8]) -> Result<usize, Refusal> {
        let asked = items.len() / self.geometry.item_length;
        let count = self.room(asked)?;
        let bytes = &items[..count * self.geometry.item_length];
        let [straight, wrapped] = self.geometry.pieces(self.tail, count);
        let words = self.buffer.words();
        let (front, back) = bytes.split_at(straight.1 * WORD);
        copy_in(&words[straight.0..straight.0 + straight.1], front);
        if !back.is_empty() {
            copy_in(&words[..wrapped.1], back);
        }
        if count > 0 {
            self.tail += count as u64;
            self.tail_word.store(self.tail, Ordering::Release);
            self.waiter.notify();
        }
        Ok(count)
    }

    #[inline]
    fn room(&mut self, asked: usize) -> Result<usize, Refusal> {
        let free = self.geometry.item_count - (self.tail - self.head_seen) as usize;
        if free >= asked && self.end.is_ours() { Ok(asked) } else { self.look_at_head(asked) }
    }

    #[cold]
    fn look_at_head(&mut self, asked: usize) -> Result<usize, Refusal> {
        if !self.end.is_ours() {
            return Err(Refusal::Forked);
        }
        let head = self.head_word.load(Ordering::Acquire);
        if head < self.head_seen || head > self.tail {
            self.corrupt += 1;
            return Err(Refusal::Corrupt);
        }
        self.head_seen = head;
        match self.geometry.item_count - (self.tail - head) as usize {
            0 if self.consumer.has_left() => Err(Refusal::Closed),
            0 => Err(Refusal::BackPressured),
            free => Ok(free.min(asked)),
        }
    }

    /// Items published since the ring was made.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// Bytes of one item.
    #[must_use]
    pub fn item_length(&self) -> usize {
        self.geometry.item_length
    }

    /// Who holds the other end.
    #[must_use]
    pub fn consumer_state(&self) -> EndState {
        self.consumer.state()
    }

    /// Impossible positions seen.
    #[must_use]
    pub fn corrupt_count(&self) -> u64 {
        self.corrupt
    }
}

/// The one reading end.
#[derive(Debug)]
pub struct FixedConsumer {
    geometry: FixedGeometry,
    buffer: Region,
    tail_word: SharedWord,
    head_word: SharedWord,
    waiter: Waiter,
    own_waiter: Waiter,
    producer: Peer,
    end: End,
    head: u64,
    tail_seen: u64,
    corrupt: u64,
}

impl FixedConsumer {
    pub(super) fn attach(paged: &Paged, geometry: FixedGeometry) -> Result<Self, Error> {
        let page = &paged.page;
        let end = End::take(page, page::CONSUMER_OWNER, "consumer")?;
        let head_word = page.word(page::HEAD);
        let head = head_word.load(Ordering::Acquire);
        Ok(Self {
            geometry,
            buffer: paged.buffer.clone(),
            tail_word: page.word(page::TAIL),
            head_word,
            waiter: Waiter::new(page, page::PRODUCER_WAITER),
            own_waiter: Waiter::new(page, page::CONSUMER_WAITER),
            producer: Peer::new(page, page::PRODUCER_OWNER),
            end,
            head,
            tail_seen: head,
            corrupt: 0,
        })
    }

    /// Copies as many items as are there and fit, released by one store. Returns how many.
    ///
    /// # Errors
    /// [`Stop::Empty`] or [`Stop::Closed`] if there is none, [`Stop::Corrupt`], [`Stop::Forked`].
    #[inline]
    pub fn pop(&mut self, items: &mut [u8]) -> Result<usize, Stop> {
        let asked = items.len() / self.geometry.item_length;
        if self.tail_seen - self.head < asked as u64 || !self.end.is_ours() {
            self.look_at_tail()?;
        }
        let count = asked.min((self.tail_seen - self.head) as usize);
        let bytes = &mut items[..count * self.geometry.item_length];
        let [straight, wrapped] = self.geometry.pieces(self.head, count);
        let words = self.buffer.words();
        let (front, back) = bytes.split_at_mut(straight.1 * WORD);
        copy_out(&words[straight.0..straight.0 + straight.1], front);
        if !back.is_empty() {
            copy_out(&words[..wrapped.1], back);
        }
        if count > 0 {
            self.head += count as u64;
            self.head_word.store(self.head, Ordering::Release);
            self.waiter.notify();
        }
        Ok(count)
    }

    #[inline]
    fn look_at_tail(&mut self) -> Result<(), Stop> {
        if !self.end.is_ours() {
            return Err(Stop::Forked);
        }
        let tail = self.tail_word.load(Ordering::Acquire);
        if tail < self.tail_seen || tail - self.head > self.geometry.item_count as u64 {
            self.corrupt += 1;
            return Err(Stop::Corrupt);
        }
        self.tail_seen = tail;
        if tail > self.head {
            return Ok(());
        }
        let left = self.producer.has_left() && self.tail_word.load(Ordering::Acquire) == self.head;
        Err(if left { Stop::Closed } else { Stop::Empty })
    }

    /// Items read since the ring was made.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// Bytes of one item.
    #[must_use]
    pub fn item_length(&self) -> usize {
        self.geometry.item_length
    }

    /// Who holds the other end.
    #[must_use]
    pub fn producer_state(&self) -> EndState {
        self.producer.state()
    }

    /// Impossible positions seen.
    #[must_use]
    pub fn corrupt_count(&self) -> u64 {
        self.corrupt
    }

    /// Sleeps until there is an item, a needless wake-up, or the end of `timeout`. Returns whether there is one.
    #[cfg(not(loom))]
    pub fn wait(&self, timeout: std::time::Duration) -> bool {
        self.own_waiter.wait(timeout, || self.is_ready())
    }

    /// Whether there is an item.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.tail_word.load(Ordering::Acquire) != self.head
    }
}
