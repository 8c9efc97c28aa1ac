//! The writing end of a ring or log buffer with one producer.

use super::claim::Claim;
use super::end::{End, EndState, Peer};
use super::frame::{HEADER_LENGTH, data_header, frame_length, padding_header};
use super::geometry::Geometry;
use super::outcome::{ProducerCounts, Refusal};
use super::page::{self, Paged};
use super::waiter::Waiter;
use crate::Error;
use crate::memory::words::{WORD, copy_in, copy_in_at};
use crate::memory::{Region, SharedWord};
use crate::sync::{AtomicU64, Ordering};

/// Largest position that a producer goes on from: it can't be reached honestly, and sums with it don't overflow.
pub(crate) const POSITION_MAX: u64 = 1 << 62;

/// The one writing end. Dropping it gives the end back; frames that were published stay.
///
/// It trusts nothing but its own position: the shared one is only written. The consumer's is read when the room that was
/// last seen is used up, and checked. Cost of a message while there is room: the payload's words, a header, a terminator, one
/// release store, one load of the waiter word.
#[derive(Debug)]
pub struct FrameProducer<G: Geometry> {
    geometry: G,
    buffer: Region,
    tail_word: SharedWord,
    head_word: SharedWord,
    consumer_waiter: Waiter,
    producer_waiter: Waiter,
    consumer: Peer,
    end: End,
    window: u64,
    payload_length_max: usize,
    tail: u64,
    head_seen: u64,
    claimed: bool,
    counts: ProducerCounts,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    start: u64,
    padding: usize,
    padding_index: usize,
    index: usize,
    end: u64,
}

impl Place {
    /// Behind a position, or at the next beginning of the buffer or term where it does not fit.
    #[inline]
    fn behind<G: Geometry>(start: u64, geometry: G, payload_length: usize) -> Self {
        let length = frame_length(payload_length);
        let (index, room) = (geometry.index(start), geometry.contiguous(start));
        if length <= room {
            return Self { start, padding: 0, padding_index: index, index, end: start + length as u64 };
        }
        let next = start + room as u64;
        Self { start, padding: room, padding_index: index, index: geometry.index(next), end: next + length as u64 }
    }
}

/// Room for one frame that its producer has reserved and not published. A plain value: bindings that cannot borrow keep
/// it, and the producer refuses it once it is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Reservation {
    place: Place,
    type_id: i32,
    payload_length: usize,
}

impl Reservation {
    /// Bytes of the payload.
    #[must_use]
    pub fn payload_length(&self) -> usize {
        self.payload_length
    }
}

impl<G: Geometry> FrameProducer<G> {
    /// Takes the end; goes on behind what the last producer published.
    ///
    /// # Errors
    /// [`Error::EndTaken`]; [`Error::CorruptChannel`] if the positions contradict each other.
    pub(crate) fn attach(paged: &Paged, geometry: G) -> Result<Self, Error> {
        let page = &paged.page;
        let end = End::take(page, page::PRODUCER_OWNER, "producer")?;
        let (tail_word, head_word) = (page.word(page::TAIL), page.word(page::HEAD));
        let (tail, head) = (tail_word.load(Ordering::Acquire), head_word.load(Ordering::Acquire));
        let aligned = (tail | head).is_multiple_of(WORD as u64);
        if head > tail || tail - head > geometry.span() || !aligned || tail > POSITION_MAX {
            return Err(Error::CorruptChannel { head, tail, span: geometry.span() });
        }
        let producer = Self {
            geometry,
            buffer: paged.buffer.clone(),
            tail_word,
            head_word,
            consumer_waiter: Waiter::of_readers(paged),
            producer_waiter: Waiter::new(page, page::PRODUCER_WAITER),
            consumer: Peer::new(page, page::CONSUMER_OWNER),
            end,
            window: geometry.window(),
            payload_length_max: geometry.payload_length_max(),
            tail,
            head_seen: head,
            claimed: false,
            counts: ProducerCounts::default(),
        };
        if tail - head <= producer.window {
            // A predecessor may have died with a frame half written behind its tail.
            producer.terminate();
        }
        Ok(producer)
    }

    /// Writes and publishes one message.
    ///
    /// # Errors
    /// A [`Refusal`]; nothing was written then.
    #[inline]
    pub fn try_write(&mut self, type_id: i32, payload: &[u8]) -> Result<(), Refusal> {
        let place = self.find_place(self.tail, type_id, payload.len())?;
        self.write_frame(&place, type_id, payload);
        self.counts.payload_bytes += payload.len() as u64;
        self.flush(place.end, 1);
        Ok(())
    }

    /// Writes messages until one is refused, and publishes them with one store. Returns how many, and why it ended early.
    #[inline]
    pub fn write_batch<'a>(&mut self, messages: impl IntoIterator<Item = (i32, &'a [u8])>) -> (usize, Option<Refusal>) {
        let (mut tail, mut count, mut payload_bytes) = (self.tail, 0, 0);
        let mut refusal = None;
        for (type_id, payload) in messages {
            match self.find_place(tail, type_id, payload.len()) {
                Ok(place) => {
                    self.write_frame(&place, type_id, payload);
                    tail = place.end;
                }
                Err(reason) => {
                    refusal = Some(reason);
                    break;
                }
            }
            count += 1;
            payload_bytes += payload.len() as u64;
        }
        self.counts.payload_bytes += payload_bytes;
        self.flush(tail, count as u64);
        (count, refusal)
    }

    /// Reserves room to be filled in place. Dropping the claim aborts it.
    ///
    /// # Errors
    /// A [`Refusal`].
    pub fn claim(&mut self, type_id: i32, payload_length: usize) -> Result<Claim<'_, G>, Refusal> {
        let reserved = self.reserve_open(type_id, payload_length)?;
        Ok(Claim::new(self, reserved))
    }

    /// As [`FrameProducer::claim`], for callers that cannot hold a borrow: until [`FrameProducer::publish`] or
    /// [`FrameProducer::cancel`] every other write is refused with [`Refusal::ClaimOpen`].
    ///
    /// # Errors
    /// A [`Refusal`].
    pub fn reserve_open(&mut self, type_id: i32, payload_length: usize) -> Result<Reservation, Refusal> {
        let place = self.find_place(self.tail, type_id, payload_length)?;
        let reserved = Reservation { place, type_id, payload_length };
        // The words of a claim may hold what an earlier frame left; its last one must end in zeros.
        if let Some(last) = self.payload(&reserved).last() {
            last.store(0, Ordering::Relaxed);
        }
        self.claimed = true;
        Ok(reserved)
    }

    /// Writes a part of a reservation. Returns false if the reservation is stale or the part does not fit.
    pub fn put(&mut self, reserved: &Reservation, offset: usize, bytes: &[u8]) -> bool {
        let fits = offset.checked_add(bytes.len()).is_some_and(|end| end <= reserved.payload_length);
        if !fits || !self.is_open(reserved) {
            return false;
        }
        copy_in_at(self.payload(reserved), offset, bytes);
        true
    }

    /// Publishes a reservation. Returns false if it is stale.
    pub fn publish(&mut self, reserved: Reservation) -> bool {
        if !self.is_open(&reserved) {
            return false;
        }
        self.claimed = false;
        self.write_headers(&reserved.place, reserved.type_id, reserved.payload_length);
        self.counts.payload_bytes += reserved.payload_length as u64;
        self.flush(reserved.place.end, 1);
        true
    }

    /// Gives a reservation up; nothing of it will be seen. Returns false if it is stale.
    pub fn cancel(&mut self, reserved: Reservation) -> bool {
        if !self.is_open(&reserved) {
            return false;
        }
        self.claimed = false;
        self.counts.aborted += 1;
        true
    }

    /// First byte of a reservation, for bindings that hand it to another language.
    #[must_use]
    pub fn payload_ptr(&self, reserved: &Reservation) -> Option<*mut u8> {
        let index = reserved.place.index + HEADER_LENGTH;
        self.is_open(reserved).then(|| self.buffer.as_ptr().wrapping_add(index))
    }

    /// Looks for room behind `tail`, which is ahead of our own position inside a batch.
    #[inline]
    fn find_place(&mut self, tail: u64, type_id: i32, payload_length: usize) -> Result<Place, Refusal> {
        if self.claimed || type_id <= 0 || payload_length > self.payload_length_max || !self.end.is_ours() {
            return Err(self.refusal(type_id, payload_length));
        }
        let place = Place::behind(tail, self.geometry, payload_length);
        if place.end - self.head_seen > self.window {
            self.look_at_head(place.end)?;
        }
        Ok(place)
    }

    #[cold]
    fn refusal(&self, type_id: i32, payload_length: usize) -> Refusal {
        if !self.end.is_ours() {
            Refusal::Forked
        } else if self.claimed {
            Refusal::ClaimOpen
        } else if type_id <= 0 {
            Refusal::BadType
        } else {
            debug_assert!(payload_length > self.payload_length_max);
            Refusal::TooLong
        }
    }

    /// Acquire pairs with the consumer's release: its reads of the old frames are over before ours overwrite them.
    #[cold]
    fn look_at_head(&mut self, end: u64) -> Result<(), Refusal> {
        let head = self.head_word.load(Ordering::Acquire);
        if head < self.head_seen || head > self.tail || !head.is_multiple_of(WORD as u64) {
            self.counts.corrupt += 1;
            return Err(Refusal::Corrupt);
        }
        self.head_seen = head;
        if end - head <= self.window {
            return Ok(());
        }
        self.counts.back_pressured += 1;
        Err(if self.consumer.has_left() { Refusal::Closed } else { Refusal::BackPressured })
    }

    #[inline]
    fn write_frame(&self, place: &Place, type_id: i32, payload: &[u8]) {
        let first = place.index / WORD + 1;
        copy_in(&self.buffer.words()[first..], payload);
        self.write_headers(place, type_id, payload.len());
    }

    #[inline]
    fn payload(&self, reserved: &Reservation) -> &[AtomicU64] {
        let first = reserved.place.index / WORD + 1;
        &self.buffer.words()[first..first + reserved.payload_length.div_ceil(WORD)]
    }

    /// Writes the header of a frame, and of the padding before it. They are visible only when the tail is stored behind them.
    #[inline]
    fn write_headers(&self, place: &Place, type_id: i32, payload_length: usize) {
        let words = self.buffer.words();
        words[place.index / WORD].store(data_header(payload_length, type_id), Ordering::Relaxed);
        if place.padding > 0 {
            words[place.padding_index / WORD].store(padding_header(place.padding), Ordering::Relaxed);
        }
    }

    /// Publishes `count` frames up to `end`. Release pairs with the consumer's acquire of the tail: they are whole before they
    /// can be seen.
    #[inline]
    fn flush(&mut self, end: u64, count: u64) {
        if count > 0 {
            self.tail = end;
            self.counts.frames += count;
            self.terminate();
            self.tail_word.store(end, Ordering::Release);
            self.consumer_waiter.notify();
        }
    }

    /// Behind the last frame stands a zero header, so that no stale bytes ever look like a frame. The window leaves room for it.
    #[inline]
    fn terminate(&self) {
        self.buffer.words()[self.geometry.index(self.tail) / WORD].store(0, Ordering::Relaxed);
    }

    fn is_open(&self, reserved: &Reservation) -> bool {
        self.claimed && reserved.place.start == self.tail && self.end.is_ours()
    }

    /// Position behind the last published frame: bytes since the ring was made.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.tail
    }

    /// Longest payload, in bytes.
    #[must_use]
    pub fn payload_length_max(&self) -> usize {
        self.payload_length_max
    }

    /// Who holds the other end. Asks the system where a process does: not for the hot path.
    #[must_use]
    pub fn consumer_state(&self) -> EndState {
        self.consumer.state()
    }

    /// Says that this end is alive, for peers that cannot look it up; `now_ns` is any clock that both sides read.
    #[cfg(not(loom))]
    pub fn beat(&self, now_ns: u64) {
        self.end.beat(now_ns);
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> ProducerCounts {
        self.counts
    }
}

#[cfg(not(loom))]
impl<G: Geometry> FrameProducer<G> {
    /// Sleeps until there is room for a payload, a needless wake-up, or the end of `timeout`. Returns whether there is room now.
    pub fn wait_for_room(&self, payload_length: usize, timeout: std::time::Duration) -> bool {
        self.producer_waiter.wait(timeout, || self.has_room(payload_length))
    }

    /// As [`FrameProducer::wait_for_room`], but does not sleep, or sleep on, once the consumer has left.
    pub fn wait_for_room_or_left(&self, payload_length: usize, timeout: std::time::Duration) -> bool {
        self.producer_waiter.wait(timeout, || self.has_room(payload_length) || self.consumer.has_left());
        self.has_room(payload_length)
    }

    fn has_room(&self, payload_length: usize) -> bool {
        let length = frame_length(payload_length.min(self.payload_length_max));
        let room = self.geometry.contiguous(self.tail);
        let end = self.tail + (length + if length > room { room } else { 0 }) as u64;
        end.saturating_sub(self.head_word.load(Ordering::Acquire)) <= self.window
    }
}

#[cfg(not(loom))]
impl<G: Geometry> Drop for FrameProducer<G> {
    /// Wakes a consumer that sleeps: nothing more comes.
    fn drop(&mut self) {
        if self.end.leave() {
            self.consumer_waiter.notify();
        }
    }
}
