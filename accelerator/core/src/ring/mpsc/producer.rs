//! One of many writing ends.

use super::super::end::{End, EndState, Peer};
use super::super::frame::{HEADER_LENGTH, data_header, frame_length, in_progress_header, padding_header};
use super::super::geometry::{Geometry, RingGeometry};
use super::super::outcome::{ProducerCounts, Refusal};
use super::super::page::{self, Paged};
use super::super::producer::POSITION_MAX;
use super::super::waiter::Waiter;
use super::claim::MpscClaim;
use super::slots::{Slot, Slots};
use crate::Error;
use crate::memory::words::{WORD, copy_in, copy_in_at};
use crate::memory::{Region, SharedWord};
use crate::sync::{AtomicU64, Ordering};

/// Compare-and-swaps that others may win before a claim is refused as back-pressured.
const ATTEMPT_COUNT_MAX: usize = if cfg!(loom) { 4 } else { 10_000 };

/// One writing end. Dropping it aborts its open claim and gives its slot back.
#[derive(Debug)]
pub struct MpscProducer {
    geometry: RingGeometry,
    buffer: Region,
    tail_word: SharedWord,
    head_word: SharedWord,
    consumer_waiter: Waiter,
    producer_waiter: Waiter,
    consumer: Peer,
    notes: Slot,
    slot: usize,
    generation: u64,
    payload_length_max: usize,
    head_seen: u64,
    open: Option<MpscReservation>,
    counts: ProducerCounts,
    end: End,
}

/// A claimed frame that was not committed. A plain value, refused once it is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct MpscReservation {
    position: u64,
    index: usize,
    type_id: i32,
    payload_length: usize,
}

impl MpscReservation {
    /// Bytes of the payload.
    #[must_use]
    pub fn payload_length(&self) -> usize {
        self.payload_length
    }
}

/// What one attempt at a claim came to.
enum Attempt {
    Claimed(u64),
    Again,
}

impl MpscProducer {
    pub(super) fn attach(paged: &Paged, geometry: RingGeometry, slot_count: usize) -> Result<Self, Error> {
        let page = &paged.page;
        let (tail_word, head_word) = (page.word(page::TAIL), page.word(page::HEAD));
        let taken = Slots::new(page, slot_count).take(&head_word, &tail_word);
        let (end, slot, generation, notes) = taken.ok_or(Error::NoFreeSlot { count: slot_count })?;
        let head_seen = head_word.load(Ordering::Acquire);
        Ok(Self {
            geometry,
            buffer: paged.buffer.clone(),
            tail_word,
            head_word,
            consumer_waiter: Waiter::of_readers(paged),
            producer_waiter: Waiter::new(page, page::PRODUCER_WAITER),
            consumer: Peer::new(page, page::CONSUMER_OWNER),
            notes,
            slot,
            generation,
            payload_length_max: geometry.payload_length_max(),
            head_seen,
            open: None,
            counts: ProducerCounts::default(),
            end,
        })
    }

    /// Writes and publishes one message.
    ///
    /// # Errors
    /// A [`Refusal`]; nothing was written then.
    #[inline]
    pub fn try_write(&mut self, type_id: i32, payload: &[u8]) -> Result<(), Refusal> {
        let reserved = self.reserve(type_id, payload.len())?;
        copy_in(self.payload(&reserved), payload);
        self.finish(&reserved);
        Ok(())
    }

    /// Writes messages until one is refused. Returns how many, and why it ended early.
    pub fn write_batch<'a>(&mut self, messages: impl IntoIterator<Item = (i32, &'a [u8])>) -> (usize, Option<Refusal>) {
        let mut count = 0;
        for (type_id, payload) in messages {
            if let Err(refusal) = self.try_write(type_id, payload) {
                return (count, Some(refusal));
            }
            count += 1;
        }
        (count, None)
    }

    /// Claims room to be filled in place. Dropping the claim aborts it. Until it ends, the consumer stops in front of it.
    ///
    /// # Errors
    /// A [`Refusal`].
    pub fn claim(&mut self, type_id: i32, payload_length: usize) -> Result<MpscClaim<'_>, Refusal> {
        let reserved = self.reserve_open(type_id, payload_length)?;
        Ok(MpscClaim::new(self, reserved))
    }

    /// As [`MpscProducer::claim`], for callers that cannot hold a borrow.
    ///
    /// # Errors
    /// A [`Refusal`].
    pub fn reserve_open(&mut self, type_id: i32, payload_length: usize) -> Result<MpscReservation, Refusal> {
        let reserved = self.reserve(type_id, payload_length)?;
        self.open = Some(reserved);
        Ok(reserved)
    }

    /// Writes a part of a reservation. Returns false if the reservation is stale or the part does not fit.
    pub fn put(&mut self, reserved: &MpscReservation, offset: usize, bytes: &[u8]) -> bool {
        let fits = offset.checked_add(bytes.len()).is_some_and(|end| end <= reserved.payload_length);
        if !fits || !self.is_open(reserved) {
            return false;
        }
        copy_in_at(self.payload(reserved), offset, bytes);
        true
    }

    /// Publishes a reservation. Returns false if it is stale.
    pub fn publish(&mut self, reserved: MpscReservation) -> bool {
        let open = self.is_open(&reserved);
        if open {
            self.open = None;
            self.finish(&reserved);
        }
        open
    }

    /// Gives a reservation up: it becomes padding. Returns false if it is stale.
    pub fn cancel(&mut self, reserved: MpscReservation) -> bool {
        let open = self.is_open(&reserved);
        if open {
            self.open = None;
            self.counts.aborted += 1;
            self.store_header(reserved.index, padding_header(frame_length(reserved.payload_length)));
            self.consumer_waiter.notify();
        }
        open
    }

    /// First byte of a reservation, for bindings that hand it to another language.
    #[must_use]
    pub fn payload_ptr(&self, reserved: &MpscReservation) -> Option<*mut u8> {
        let index = reserved.index + HEADER_LENGTH;
        self.is_open(reserved).then(|| self.buffer.as_ptr().wrapping_add(index))
    }

    #[inline]
    fn reserve(&mut self, type_id: i32, payload_length: usize) -> Result<MpscReservation, Refusal> {
        self.check(type_id, payload_length)?;
        let length = frame_length(payload_length);
        for _ in 0..ATTEMPT_COUNT_MAX {
            if let Attempt::Claimed(position) = self.attempt(length)? {
                let index = self.geometry.index(position);
                return Ok(MpscReservation { position, index, type_id, payload_length });
            }
        }
        self.counts.back_pressured += 1;
        Err(Refusal::BackPressured)
    }

    #[inline]
    fn check(&self, type_id: i32, payload_length: usize) -> Result<(), Refusal> {
        if !self.end.is_ours() {
            return Err(Refusal::Forked);
        }
        if self.open.is_some() {
            return Err(Refusal::ClaimOpen);
        }
        if type_id <= 0 {
            return Err(Refusal::BadType);
        }
        if payload_length > self.payload_length_max { Err(Refusal::TooLong) } else { Ok(()) }
    }

    /// Note, claim, header. Where the frame does not fit before the end of the buffer, what is left there is claimed as padding: a
    /// claim is always one frame, so that a dead producer's is, too.
    #[inline]
    fn attempt(&mut self, length: usize) -> Result<Attempt, Refusal> {
        let tail = self.tail_word.load(Ordering::Acquire);
        let room = self.geometry.contiguous(tail);
        let is_padding = length > room;
        let taken = if is_padding { room } else { length };
        if !self.has_room(tail, taken)? {
            return Ok(Attempt::Again);
        }
        self.notes.note(tail, taken);
        // Release publishes the note to whoever sees the new tail.
        let claimed = self.tail_word.compare_exchange(tail, tail + taken as u64, Ordering::AcqRel, Ordering::Relaxed);
        if claimed.is_err() {
            self.notes.clear();
            return Ok(Attempt::Again);
        }
        let index = self.geometry.index(tail);
        let header =
            if is_padding { padding_header(room) } else { in_progress_header(length, self.slot, self.generation) };
        self.store_header(index, header);
        self.notes.clear();
        Ok(if is_padding { Attempt::Again } else { Attempt::Claimed(tail) })
    }

    /// False where the tail was read too early to be compared with the head.
    #[inline]
    fn has_room(&mut self, tail: u64, taken: usize) -> Result<bool, Refusal> {
        let capacity = self.geometry.span();
        let sound = tail < POSITION_MAX && tail.is_multiple_of(WORD as u64) && tail >= self.head_seen;
        if sound && tail - self.head_seen + taken as u64 <= capacity {
            return Ok(true);
        }
        self.look_at_head(tail, taken)
    }

    /// Acquire pairs with the consumer's release: it has zeroed what lies before its head.
    #[cold]
    fn look_at_head(&mut self, tail: u64, taken: usize) -> Result<bool, Refusal> {
        let head = self.head_word.load(Ordering::Acquire);
        let aligned = (head | tail).is_multiple_of(WORD as u64);
        if head < self.head_seen || !aligned || tail >= POSITION_MAX || head >= POSITION_MAX {
            self.counts.corrupt += 1;
            return Err(Refusal::Corrupt);
        }
        self.head_seen = head;
        if tail < head {
            return Ok(false);
        }
        let used = tail - head;
        if used > self.geometry.span() {
            self.counts.corrupt += 1;
            return Err(Refusal::Corrupt);
        }
        if used + taken as u64 <= self.geometry.span() {
            return Ok(true);
        }
        self.counts.back_pressured += 1;
        Err(if self.consumer.has_left() { Refusal::Closed } else { Refusal::BackPressured })
    }

    #[inline]
    fn finish(&mut self, reserved: &MpscReservation) {
        self.counts.frames += 1;
        self.counts.payload_bytes += reserved.payload_length as u64;
        self.store_header(reserved.index, data_header(reserved.payload_length, reserved.type_id));
        self.consumer_waiter.notify();
    }

    /// Release pairs with the consumer's acquire of the header: the payload is whole.
    #[inline]
    fn store_header(&self, index: usize, header: u64) {
        self.buffer.words()[index / WORD].store(header, Ordering::Release);
    }

    #[inline]
    fn payload(&self, reserved: &MpscReservation) -> &[AtomicU64] {
        let first = reserved.index / WORD + 1;
        &self.buffer.words()[first..first + reserved.payload_length.div_ceil(WORD)]
    }

    fn is_open(&self, reserved: &MpscReservation) -> bool {
        self.open.as_ref() == Some(reserved) && self.end.is_ours()
    }

    /// Longest payload, in bytes.
    #[must_use]
    pub fn payload_length_max(&self) -> usize {
        self.payload_length_max
    }

    /// Who holds the reading end. Asks the system: not for the hot path.
    #[must_use]
    pub fn consumer_state(&self) -> EndState {
        self.consumer.state()
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> ProducerCounts {
        self.counts
    }
}

#[cfg(not(loom))]
impl MpscProducer {
    /// Sleeps until there may be room for a payload, a needless wake-up, or the end of `timeout`. Others may take the room first.
    pub fn wait_for_room(&self, payload_length: usize, timeout: std::time::Duration) -> bool {
        let length = frame_length(payload_length.min(self.payload_length_max)) as u64;
        self.producer_waiter.wait(timeout, || {
            let tail = self.tail_word.load(Ordering::Acquire);
            let used = tail.saturating_sub(self.head_word.load(Ordering::Acquire));
            used.saturating_add(length.min(self.geometry.contiguous(tail) as u64)) <= self.geometry.span()
        })
    }

    /// Says that this producer is alive, for peers that cannot look it up.
    pub fn beat(&self, now_ns: u64) {
        self.end.beat(now_ns);
    }
}

impl Drop for MpscProducer {
    fn drop(&mut self) {
        if let Some(reserved) = self.open {
            self.cancel(reserved);
        }
    }
}

/// Where a producer dies in a test.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Noted,
    Claimed,
    HeaderWritten,
}

#[cfg(test)]
impl MpscProducer {
    /// Goes through the steps of a claim up to a point and ends there without a trace of Rust: nothing is dropped.
    pub(crate) fn die(mut self, death: Death, payload_length: usize) {
        let length = frame_length(payload_length);
        if death == Death::HeaderWritten {
            let _ = self.reserve(1, payload_length).unwrap();
        } else {
            let tail = self.tail_word.load(Ordering::Acquire);
            self.notes.note(tail, length);
            if death == Death::Claimed {
                let claimed =
                    self.tail_word.compare_exchange(tail, tail + length as u64, Ordering::AcqRel, Ordering::Relaxed);
                if claimed.is_err() {
                    self.notes.clear();
                }
            }
        }
        self.end.bury();
        std::mem::forget(self);
    }

    /// Dies where it is.
    pub(crate) fn die_silently(self) {
        self.end.bury();
        std::mem::forget(self);
    }

    pub(crate) fn note_only(&self, position: u64, payload_length: usize) {
        self.notes.note(position, frame_length(payload_length));
    }
}
