//! The reading end of a ring or log buffer with one producer.

use std::mem;

use super::batch::FrameBatch;
use super::end::{End, EndState, Peer};
use super::frame::{Header, frame_length};
use super::geometry::Geometry;
use super::outcome::{ConsumerCounts, Polled, Stop};
use super::page::{self, Paged};
use super::waiter::Waiter;
use crate::Error;
use crate::memory::words::{WORD, append, copy_out};
use crate::memory::{Region, SharedWord};
use crate::sync::{AtomicU64, Ordering};

/// Padding frames that one poll skips before it lets its caller breathe; a sound ring has one a round.
const PADDING_COUNT_MAX: usize = 64;

/// The one reading end. Dropping it gives the end back. Frames that were handed over but not yet released when a
/// consumer died are handed to the next one again.
///
/// It never reads behind the tail that it has seen and checked, and the tail is loaded only when everything before it was read.
#[derive(Debug)]
pub struct FrameConsumer<G: Geometry> {
    geometry: G,
    buffer: Region,
    tail_word: SharedWord,
    head_word: SharedWord,
    producer_waiter: Waiter,
    consumer_waiter: Waiter,
    producer: Peer,
    end: End,
    release_step: u64,
    payload_length_max: usize,
    head: u64,
    released: u64,
    tail_seen: u64,
    scratch: Vec<u8>,
    counts: ConsumerCounts,
}

/// A frame that still lies in the ring. Its bytes are copied out, never borrowed: others may write there.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    type_id: i32,
    payload_length: usize,
    words: &'a [AtomicU64],
}

impl<'a> Frame<'a> {
    pub(crate) fn new(type_id: i32, payload_length: usize, words: &'a [AtomicU64]) -> Self {
        Self { type_id, payload_length, words }
    }

    /// Its type.
    #[must_use]
    pub fn type_id(&self) -> i32 {
        self.type_id
    }

    /// Bytes of its payload.
    #[must_use]
    pub fn payload_length(&self) -> usize {
        self.payload_length
    }

    /// Copies the beginning of the payload, as much as there is room for. Returns the bytes copied.
    #[inline]
    pub fn copy_to(&self, bytes: &mut [u8]) -> usize {
        let length = bytes.len().min(self.payload_length);
        copy_out(self.words, &mut bytes[..length]);
        length
    }

    /// Copies the payload behind what is in `bytes`.
    #[inline]
    pub(crate) fn append_to(&self, bytes: &mut Vec<u8>) {
        append(bytes, self.words, self.payload_length);
    }

    /// Copies whole words into `scratch`, which is never shortened, and returns the payload.
    #[inline]
    pub(crate) fn copy_into<'s>(&self, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        let length = self.words.len() * WORD;
        if scratch.len() < length {
            scratch.resize(length, 0);
        }
        copy_out(self.words, &mut scratch[..length]);
        &scratch[..self.payload_length]
    }
}

impl<G: Geometry> FrameConsumer<G> {
    /// Takes the end; goes on where the last consumer released.
    ///
    /// # Errors
    /// [`Error::EndTaken`]. Positions that contradict each other are found by the first poll.
    pub(crate) fn attach(paged: &Paged, geometry: G) -> Result<Self, Error> {
        let page = &paged.page;
        let end = End::take(page, page::CONSUMER_OWNER, "consumer")?;
        let head_word = page.word(page::HEAD);
        let head = head_word.load(Ordering::Acquire);
        Ok(Self {
            geometry,
            buffer: paged.buffer.clone(),
            tail_word: page.word(page::TAIL),
            head_word,
            producer_waiter: Waiter::new(page, page::PRODUCER_WAITER),
            consumer_waiter: Waiter::new(page, page::CONSUMER_WAITER),
            producer: Peer::new(page, page::PRODUCER_OWNER),
            end,
            release_step: geometry.window() / 4,
            payload_length_max: geometry.payload_length_max(),
            head,
            released: head,
            tail_seen: head,
            scratch: Vec::new(),
            counts: ConsumerCounts::default(),
        })
    }

    /// Hands over at most `limit` messages: type and payload, copied into private memory.
    ///
    /// A message counts as read when `handle` is called, also if it panics.
    #[inline]
    pub fn poll(&mut self, limit: usize, mut handle: impl FnMut(i32, &[u8])) -> Polled {
        let mut scratch = mem::take(&mut self.scratch);
        let polled = self.poll_frames(limit, |frame| handle(frame.type_id, frame.copy_into(&mut scratch)));
        self.scratch = scratch;
        polled
    }

    /// Appends at most `limit` messages to a batch.
    pub fn poll_batch(&mut self, limit: usize, batch: &mut FrameBatch) -> Polled {
        self.poll_frames(limit, |frame| {
            batch.push(frame.type_id, |bytes| frame.append_to(bytes));
        })
    }

    /// Hands over at most `limit` frames where they lie, to be copied by the caller.
    #[inline]
    pub fn poll_frames(&mut self, limit: usize, mut handle: impl FnMut(Frame<'_>)) -> Polled {
        if !self.end.is_ours() {
            // What was seen before the fork is the parent's to read and to release, too.
            return Polled { frames: 0, stop: Stop::Forked };
        }
        let (geometry, longest, step) = (self.geometry, self.payload_length_max, self.release_step);
        let mut reading = Reading { head: self.head, frames: 0, payload_bytes: 0, consumer: self };
        let (mut tail, mut paddings) = (reading.consumer.tail_seen, 0);
        while reading.frames < limit {
            if reading.head == tail {
                match reading.consumer.look_at_tail(tail) {
                    Ok(seen) => tail = seen,
                    Err(stop) => return Polled { frames: reading.frames, stop },
                }
            }
            let index = geometry.index(reading.head);
            let room = geometry.contiguous(reading.head).min((tail - reading.head) as usize);
            let words = &reading.consumer.buffer.words()[index / WORD..];
            match Header::parse(words[0].load(Ordering::Relaxed), room, longest) {
                Header::Data { type_id, payload_length } => {
                    reading.head += frame_length(payload_length) as u64;
                    reading.frames += 1;
                    reading.payload_bytes += payload_length as u64;
                    let words = &words[1..=payload_length.div_ceil(WORD)];
                    handle(Frame { type_id, payload_length, words });
                }
                Header::Padding { length } => {
                    reading.skip(length);
                    paddings += 1;
                    if paddings == PADDING_COUNT_MAX {
                        break;
                    }
                }
                Header::Empty | Header::InProgress { .. } | Header::Invalid => {
                    return Polled { frames: reading.frames, stop: reading.consumer.corrupt() };
                }
            }
            if reading.head - reading.consumer.released > step {
                reading.release();
            }
        }
        Polled { frames: reading.frames, stop: Stop::Limit }
    }

    #[cold]
    fn corrupt(&mut self) -> Stop {
        self.counts.corrupt += 1;
        Stop::Corrupt
    }

    /// Acquire pairs with the producer's release: what lies before the tail is whole. `head` is where reading stands.
    #[inline]
    fn look_at_tail(&mut self, head: u64) -> Result<u64, Stop> {
        let tail = self.tail_word.load(Ordering::Acquire);
        if tail == head && tail.is_multiple_of(WORD as u64) {
            return Err(self.nothing_there(head));
        }
        let sound = tail > head && tail - head <= self.geometry.span();
        if !sound || !(tail | head).is_multiple_of(WORD as u64) {
            return Err(self.corrupt());
        }
        self.tail_seen = tail;
        Ok(tail)
    }

    /// The producer's last frames come before it says that it left: look at the tail once more behind that.
    #[inline]
    fn nothing_there(&self, head: u64) -> Stop {
        let left = self.producer.has_left() && self.tail_word.load(Ordering::Acquire) == head;
        if left { Stop::Closed } else { Stop::Empty }
    }

    /// Position behind the last frame that was read: bytes since the ring was made.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.head
    }

    /// Who holds the other end. Asks the system where a process does: not for the hot path.
    #[must_use]
    pub fn producer_state(&self) -> EndState {
        self.producer.state()
    }

    /// Says that this end is alive, for peers that cannot look it up; `now_ns` is any clock that both sides read.
    #[cfg(not(loom))]
    pub fn beat(&self, now_ns: u64) {
        self.end.beat(now_ns);
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> ConsumerCounts {
        self.counts
    }
}

#[cfg(not(loom))]
impl<G: Geometry> FrameConsumer<G> {
    /// Sleeps until there is something to read, a needless wake-up, or the end of `timeout`. Returns whether there is.
    pub fn wait(&self, timeout: std::time::Duration) -> bool {
        self.consumer_waiter.wait(timeout, || self.is_ready())
    }

    /// As [`FrameConsumer::wait`], but does not sleep, or sleep on, once the producer has left.
    pub fn wait_or_left(&self, timeout: std::time::Duration) -> bool {
        self.consumer_waiter.wait(timeout, || self.is_ready() || self.producer.has_left());
        self.is_ready()
    }

    /// Whether there is something to read.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.tail_word.load(Ordering::Acquire) != self.head
    }
}

#[cfg(not(loom))]
impl<G: Geometry> Drop for FrameConsumer<G> {
    /// Wakes a producer that waits for room: nobody makes it any more.
    fn drop(&mut self) {
        if self.end.leave() {
            self.producer_waiter.notify();
        }
    }
}

/// A poll under way. What was read is released when it ends, also by a panic of its caller's function.
struct Reading<'a, G: Geometry> {
    consumer: &'a mut FrameConsumer<G>,
    head: u64,
    frames: usize,
    payload_bytes: u64,
}

impl<G: Geometry> Reading<'_, G> {
    #[cold]
    fn skip(&mut self, length: usize) {
        self.head += length as u64;
        self.consumer.counts.padding_bytes += length as u64;
    }

    /// Release pairs with the producer's acquire of the head: our reads are over before it overwrites.
    #[inline]
    fn release(&mut self) {
        let consumer = &mut *self.consumer;
        consumer.head = self.head;
        if self.head != consumer.released {
            consumer.head_word.store(self.head, Ordering::Release);
            consumer.released = self.head;
            consumer.producer_waiter.notify();
        }
    }
}

impl<G: Geometry> Drop for Reading<'_, G> {
    #[inline]
    fn drop(&mut self) {
        self.consumer.counts.frames += self.frames as u64;
        self.consumer.counts.payload_bytes += self.payload_bytes;
        self.release();
    }
}
