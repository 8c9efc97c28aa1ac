//! The one reading end of a ring of many producers.

use std::mem;

use super::super::batch::FrameBatch;
use super::super::consumer::Frame;
use super::super::end::{End, EndState};
use super::super::frame::{Header, frame_length};
use super::super::geometry::{Geometry, RingGeometry};
use super::super::outcome::{ConsumerCounts, Polled, Stop};
use super::super::page::{self, Paged};
use super::super::producer::POSITION_MAX;
use super::super::waiter::Waiter;
use super::slots::Slots;
use super::unblock::{Evidence, lost_claim};
use crate::Error;
use crate::memory::words::{WORD, zero};
use crate::memory::{Region, SharedWord};
use crate::sync::{Ordering, fence};

/// Padding frames that one poll skips before it lets its caller breathe.
const PADDING_COUNT_MAX: usize = 64;
/// Polls that find the same claim uncommitted before its producer is looked up.
const STUCK_POLL_COUNT: u32 = 1024;

/// The one reading end. Dropping it gives the end back.
#[derive(Debug)]
pub struct MpscConsumer {
    geometry: RingGeometry,
    buffer: Region,
    tail_word: SharedWord,
    head_word: SharedWord,
    cleaning_word: SharedWord,
    producer_waiter: Waiter,
    consumer_waiter: Waiter,
    slots: Slots,
    end: End,
    payload_length_max: usize,
    head: u64,
    released: u64,
    stuck_polls: u32,
    scratch: Vec<u8>,
    counts: ConsumerCounts,
}

impl MpscConsumer {
    pub(super) fn attach(paged: &Paged, geometry: RingGeometry, slot_count: usize) -> Result<Self, Error> {
        let page = &paged.page;
        let end = End::take(page, page::CONSUMER_OWNER, "consumer")?;
        let head_word = page.word(page::HEAD);
        let head = head_word.load(Ordering::Acquire);
        let mut consumer = Self {
            geometry,
            buffer: paged.buffer.clone(),
            tail_word: page.word(page::TAIL),
            head_word,
            cleaning_word: page.word(page::CLEANING),
            producer_waiter: Waiter::new(page, page::PRODUCER_WAITER),
            consumer_waiter: Waiter::new(page, page::CONSUMER_WAITER),
            slots: Slots::new(page, slot_count),
            end,
            payload_length_max: geometry.payload_length_max(),
            head,
            released: head,
            stuck_polls: 0,
            scratch: Vec::new(),
            counts: ConsumerCounts::default(),
        };
        consumer.finish_cleaning()?;
        Ok(consumer)
    }

    /// A consumer that died while it zeroed what it had consumed left word how far it was going to go.
    fn finish_cleaning(&mut self) -> Result<(), Error> {
        let tail = self.tail_word.load(Ordering::Acquire);
        let goal = self.cleaning_word.load(Ordering::Acquire).max(self.head);
        let aligned = (self.head | goal | tail).is_multiple_of(WORD as u64);
        if goal > tail || tail - self.head > self.geometry.span() || !aligned || tail > POSITION_MAX {
            return Err(Error::CorruptChannel { head: self.head, tail, span: self.geometry.span() });
        }
        self.head = goal;
        self.release();
        Ok(())
    }

    /// Hands over at most `limit` messages: type and payload, copied into private memory. A message counts as read when `handle` is called.
    #[inline]
    pub fn poll(&mut self, limit: usize, mut handle: impl FnMut(i32, &[u8])) -> Polled {
        let mut scratch = mem::take(&mut self.scratch);
        let polled = self.poll_frames(limit, |frame| handle(frame.type_id(), frame.copy_into(&mut scratch)));
        self.scratch = scratch;
        polled
    }

    /// Appends at most `limit` messages to a batch.
    pub fn poll_batch(&mut self, limit: usize, batch: &mut FrameBatch) -> Polled {
        self.poll_frames(limit, |frame| {
            batch.push(frame.type_id(), |bytes| frame.append_to(bytes));
        })
    }

    /// Hands over at most `limit` frames where they lie, to be copied by the caller.
    #[inline]
    pub fn poll_frames(&mut self, limit: usize, mut handle: impl FnMut(Frame<'_>)) -> Polled {
        if !self.end.is_ours() {
            // What was seen before the fork is the parent's to read and to release, too.
            return Polled { frames: 0, stop: Stop::Forked };
        }
        let reading = Reading { consumer: self };
        let mut frames = 0;
        while frames < limit {
            let consumer = &mut *reading.consumer;
            let (index, type_id, payload_length) = match consumer.next() {
                Ok(found) => found,
                Err(stop) => return Polled { frames, stop },
            };
            frames += 1;
            let first = index / WORD + 1;
            let words = &consumer.buffer.words()[first..first + payload_length.div_ceil(WORD)];
            handle(Frame::new(type_id, payload_length, words));
            consumer.release_some();
        }
        Polled { frames, stop: Stop::Limit }
    }

    /// Acquire of the header pairs with the producer's release of it: the payload is whole.
    #[inline]
    fn next(&mut self) -> Result<(usize, i32, usize), Stop> {
        for _ in 0..PADDING_COUNT_MAX {
            let index = self.geometry.index(self.head);
            let word = self.buffer.words()[index / WORD].load(Ordering::Acquire);
            match self.parse(word) {
                Header::Data { type_id, payload_length } => {
                    self.step(frame_length(payload_length))?;
                    self.counts.frames += 1;
                    self.counts.payload_bytes += payload_length as u64;
                    return Ok((index, type_id, payload_length));
                }
                Header::Padding { length } => {
                    self.step(length)?;
                    self.counts.padding_bytes += length as u64;
                    self.release_some();
                }
                header => self.blocked(header)?,
            }
        }
        Err(Stop::Limit)
    }

    fn parse(&self, word: u64) -> Header {
        Header::parse(word, self.geometry.contiguous(self.head), self.payload_length_max)
    }

    /// What was not released yet was not zeroed either: a sound ring never leads there within one poll.
    #[inline]
    fn step(&mut self, length: usize) -> Result<(), Stop> {
        if self.head - self.released + length as u64 > self.geometry.span() {
            return Err(self.corrupt());
        }
        self.head += length as u64;
        self.stuck_polls = 0;
        Ok(())
    }

    /// Ends the poll, or goes on where a dead producer's claim was skipped.
    fn blocked(&mut self, header: Header) -> Result<(), Stop> {
        if !self.end.is_ours() {
            return Err(Stop::Forked);
        }
        match header {
            Header::Empty => {
                let tail = self.tail_word.load(Ordering::Acquire);
                if tail == self.head {
                    return Err(Stop::Empty);
                }
                if tail < self.head || tail - self.head > self.geometry.span() {
                    return Err(self.corrupt());
                }
            }
            Header::InProgress { slot, .. } if slot < self.slots.count() => {}
            _ => return Err(self.corrupt()),
        }
        self.stuck_polls += 1;
        if self.stuck_polls.is_multiple_of(STUCK_POLL_COUNT) && self.unblock() {
            return Ok(());
        }
        Err(Stop::InProgress)
    }

    /// Turns the claim that stands next into padding, if its producer is proven dead. Returns whether there is something to read
    /// now. Polls do so by themselves once they have met the same claim 1024 times.
    pub fn unblock(&mut self) -> bool {
        if !self.end.is_ours() {
            return false;
        }
        let index = self.geometry.index(self.head);
        let found = self.buffer.words()[index / WORD].load(Ordering::Acquire);
        let length = match self.parse(found) {
            Header::InProgress { length, slot, generation } if self.slots.has_lost(slot, generation) => length,
            Header::Empty => match lost_claim(&self.slots, &self.buffer, self.geometry, self.head, &self.tail_word) {
                Evidence::Lost(length) => length,
                Evidence::None | Evidence::Alive => return false,
            },
            Header::Data { .. } | Header::Padding { .. } => return true,
            _ => return false,
        };
        // By exchange: the header may have been written since it was read.
        let padding = super::super::frame::padding_header(length);
        let word = &self.buffer.words()[index / WORD];
        if word.compare_exchange(found, padding, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.counts.unblocked += 1;
        }
        true
    }

    #[cold]
    fn corrupt(&mut self) -> Stop {
        self.counts.corrupt += 1;
        Stop::Corrupt
    }

    /// Gives room back within a long poll.
    #[inline]
    fn release_some(&mut self) {
        if self.head - self.released > self.geometry.span() / 4 {
            self.release();
        }
    }

    /// Zeroes what was consumed and then releases it. Release pairs with the producers' acquire of the head: they
    /// find zeros. How far it will go is said before, so that a successor can finish it.
    fn release(&mut self) {
        if self.head == self.released {
            return;
        }
        self.cleaning_word.store(self.head, Ordering::Relaxed);
        fence(Ordering::Release);
        let length = (self.head - self.released) as usize;
        let first = self.geometry.index(self.released);
        let straight = length.min(self.geometry.contiguous(self.released));
        let words = self.buffer.words();
        zero(&words[first / WORD..(first + straight) / WORD]);
        zero(&words[..(length - straight) / WORD]);
        self.head_word.store(self.head, Ordering::Release);
        self.released = self.head;
        self.producer_waiter.notify();
    }

    /// Position behind the last frame that was read.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// Who holds the producers' slots, one after the other. Asks the system: not for the hot path.
    pub fn producer_states(&self) -> impl Iterator<Item = EndState> {
        (0..self.slots.count()).map(|slot| self.slots.owner(slot))
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> ConsumerCounts {
        self.counts
    }
}

#[cfg(not(loom))]
impl MpscConsumer {
    /// Sleeps until there is something to read, a needless wake-up, or the end of `timeout`. Returns whether there is. A claim
    /// of a dead producer wakes nobody: poll once in a while.
    pub fn wait(&self, timeout: std::time::Duration) -> bool {
        self.consumer_waiter.wait(timeout, || self.is_ready())
    }

    /// Whether there is something to read.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let index = self.geometry.index(self.head) / WORD;
        let header = self.parse(self.buffer.words()[index].load(Ordering::Acquire));
        !matches!(header, Header::Empty | Header::InProgress { .. })
    }

    /// Says that this end is alive, for peers that cannot look it up.
    pub fn beat(&self, now_ns: u64) {
        self.end.beat(now_ns);
    }
}

/// Releases what was read when a poll ends, also by a panic of its caller's function.
struct Reading<'a> {
    consumer: &'a mut MpscConsumer,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.consumer.release();
    }
}
