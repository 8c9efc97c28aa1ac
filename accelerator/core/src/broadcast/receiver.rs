//! A reading end of a broadcast: copies, then asks whether the copy can be trusted.

use super::layout::{self, HEADER_LENGTH, Header, Trailer, record_length};
use crate::Error;
use crate::memory::Region;
use crate::memory::words::{WORD, copy_out};
use crate::ring::FrameBatch;
use crate::ring::end::{EndState, Peer};
use crate::ring::page::{self, Paged};
use crate::ring::waiter::Waiter;
use crate::sync::{Ordering, fence};

/// Times that one call resynchronises before it lets its caller breathe: a transmitter may lap it again and again.
const RESYNC_COUNT_MAX: usize = 8;

/// What a poll of a receiver did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Received {
    /// Records handed over.
    pub records: usize,
    /// Whether records were overwritten before they could be read: before the first, between, or behind the last handed over.
    pub lapped: bool,
    /// Whether the buffer is impossible: a position or header that no transmitter writes. Make it anew.
    pub corrupt: bool,
}

/// What a receiver counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounts {
    /// Records read.
    pub records: u64,
    /// Payload bytes read.
    pub payload_bytes: u64,
    /// Times that the transmitter overtook it.
    pub lapped: u64,
    /// Bytes of the buffer that were skipped by that, headers and padding included.
    pub lost_bytes: u64,
    /// Impossible headers and positions seen.
    pub corrupt: u64,
}

/// One of any number of reading ends. It begins with the next record and writes nothing into the buffer.
#[derive(Debug)]
pub struct Receiver {
    region: Region,
    trailer: Trailer,
    waiter: Waiter,
    transmitter: Peer,
    capacity: usize,
    cursor: u64,
    scratch: Vec<u8>,
    counts: ReceiverCounts,
}

enum Step {
    Record { type_id: i32, payload_length: usize },
    Empty,
    Lapped,
    Corrupt,
}

impl Receiver {
    /// Begins behind the last record.
    ///
    /// # Errors
    /// [`Error::InvalidTermLength`] on the capacity.
    pub(super) fn attach(paged: &Paged, capacity: usize) -> Result<Self, Error> {
        let region = paged.buffer.part(0, layout::length(capacity)?);
        let trailer = Trailer::of(&region, capacity);
        let cursor = trailer.tail.load(Ordering::Acquire) & !(HEADER_LENGTH as u64 - 1);
        let scratch = vec![0; layout::payload_length_max(capacity).next_multiple_of(WORD)];
        Ok(Self {
            region,
            trailer,
            waiter: Waiter::new(&paged.page, page::CONSUMER_WAITER),
            transmitter: Peer::new(&paged.page, page::PRODUCER_OWNER),
            capacity,
            cursor,
            scratch,
            counts: ReceiverCounts::default(),
        })
    }

    /// Another receiver of the same transmitter, which begins behind the last record.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            region: self.region.clone(),
            trailer: self.trailer.clone(),
            waiter: self.waiter.clone(),
            transmitter: self.transmitter.clone(),
            capacity: self.capacity,
            cursor: self.trailer.tail.load(Ordering::Acquire) & !(HEADER_LENGTH as u64 - 1),
            scratch: vec![0; self.scratch.len()],
            counts: ReceiverCounts::default(),
        }
    }

    /// Whether there is something to read, or something was lost.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.trailer.tail.load(Ordering::Acquire) != self.cursor
    }

    /// Hands over at most `limit` records, each copied and proven whole.
    #[inline]
    pub fn poll(&mut self, limit: usize, mut handle: impl FnMut(i32, &[u8])) -> Received {
        let mut received = Received { records: 0, lapped: false, corrupt: false };
        let mut resyncs = 0;
        while received.records < limit {
            match self.step() {
                Step::Record { type_id, payload_length } => {
                    received.records += 1;
                    handle(type_id, &self.scratch[..payload_length]);
                }
                Step::Empty => break,
                Step::Lapped => {
                    received.lapped = true;
                    resyncs += 1;
                    if resyncs > RESYNC_COUNT_MAX {
                        break;
                    }
                }
                Step::Corrupt => {
                    self.counts.corrupt += 1;
                    received.corrupt = true;
                    break;
                }
            }
        }
        received
    }

    /// Appends at most `limit` records to a batch.
    pub fn poll_batch(&mut self, limit: usize, batch: &mut FrameBatch) -> Received {
        self.poll(limit, |type_id, payload| batch.push(type_id, |bytes| bytes.extend_from_slice(payload)))
    }

    fn step(&mut self) -> Step {
        // Acquire pairs with the transmitter's release: what lies before the tail was whole once.
        let tail = self.trailer.tail.load(Ordering::Acquire);
        if tail == self.cursor {
            return Step::Empty;
        }
        if tail < self.cursor || !tail.is_multiple_of(HEADER_LENGTH as u64) {
            return Step::Corrupt;
        }
        if self.is_overtaken() {
            return self.resync(tail);
        }
        let index = self.cursor as usize & (self.capacity - 1);
        let words = self.region.words();
        let word = words[index / WORD].load(Ordering::Relaxed);
        let header = Header::parse(word, self.capacity - index, self.capacity);
        let mut length = HEADER_LENGTH;
        if let Header::Record { payload_length, .. } = header {
            length = record_length(payload_length);
            copy_out(&words[index / WORD + 1..(index + length) / WORD], &mut self.scratch[..length - HEADER_LENGTH]);
        }
        // Pairs with the transmitter's release fence: had we copied a word of a newer record, we would see its intent now.
        fence(Ordering::Acquire);
        if self.is_overtaken() {
            return self.resync(tail);
        }
        match header {
            Header::Record { type_id, payload_length } => {
                self.cursor += length as u64;
                self.counts.records += 1;
                self.counts.payload_bytes += payload_length as u64;
                Step::Record { type_id, payload_length }
            }
            Header::Padding { length } => {
                self.cursor += length as u64;
                // The transmitter publishes padding together with the record behind it.
                if self.cursor < tail { self.step() } else { Step::Corrupt }
            }
            Header::Invalid => Step::Corrupt,
        }
    }

    #[inline]
    fn is_overtaken(&self) -> bool {
        self.trailer.intent.load(Ordering::Relaxed) > self.cursor + self.capacity as u64
    }

    /// Goes on with the newest record.
    #[cold]
    fn resync(&mut self, tail: u64) -> Step {
        // At least the record before the acquired tail. It may be newer than that tail, which we could then not prove to lie
        // before it: the tail itself is as good a place, for a record begins there, too.
        let latest = self.trailer.latest.load(Ordering::Relaxed);
        if !latest.is_multiple_of(HEADER_LENGTH as u64) {
            return Step::Corrupt;
        }
        self.skip_to(if latest > self.cursor && latest <= tail { latest } else { tail })
    }

    fn skip_to(&mut self, position: u64) -> Step {
        self.counts.lapped += 1;
        self.counts.lost_bytes += position - self.cursor;
        self.cursor = position;
        Step::Lapped
    }

    /// Who holds the writing end. Asks the system where a process does: not for the hot path.
    #[must_use]
    pub fn transmitter_state(&self) -> EndState {
        self.transmitter.state()
    }

    /// Position behind the last record that was read: bytes since the buffer was made.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.cursor
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> ReceiverCounts {
        self.counts
    }
}

#[cfg(not(loom))]
impl Receiver {
    /// Sleeps until there is something to read, a needless wake-up, or the end of `timeout`. Returns whether there is.
    pub fn wait(&self, timeout: std::time::Duration) -> bool {
        self.waiter.wait(timeout, || self.is_ready())
    }
}
