//! The writing end of a broadcast.

use super::layout::{self, HEADER_LENGTH, Trailer, header, record_length};
use crate::Error;
use crate::memory::Region;
use crate::memory::words::{WORD, copy_in};
use crate::ring::Refusal;
use crate::ring::end::End;
use crate::ring::page::{self, Paged};
use crate::ring::waiter::Waiter;
use crate::sync::{Ordering, fence};

/// What a transmitter counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransmitterCounts {
    /// Records transmitted.
    pub records: u64,
    /// Payload bytes transmitted.
    pub payload_bytes: u64,
}

/// The one writing end. It never waits for anybody.
#[derive(Debug)]
pub struct Transmitter {
    region: Region,
    trailer: Trailer,
    waiter: Waiter,
    end: End,
    capacity: usize,
    position: u64,
    counts: TransmitterCounts,
}

impl Transmitter {
    /// Takes the end of a buffer, and goes on where the last transmitter was. A record that it had only begun is overwritten:
    /// no receiver has trusted it, for the tail did not reach it.
    ///
    /// # Errors
    /// [`Error::InvalidTermLength`] on the capacity; [`Error::EndTaken`]; [`Error::CorruptChannel`] where the positions
    /// contradict each other.
    pub(super) fn attach(paged: &Paged, capacity: usize) -> Result<Self, Error> {
        let region = paged.buffer.part(0, layout::length(capacity)?);
        let end = End::take(&paged.page, page::PRODUCER_OWNER, "transmitter")?;
        let trailer = Trailer::of(&region, capacity);
        let tail = trailer.tail.load(Ordering::Acquire);
        let intent = trailer.intent.load(Ordering::Relaxed);
        // An intent of the dead stays where it is or further back than ours will be: it only makes receivers look lapped.
        let sound = tail.is_multiple_of(HEADER_LENGTH as u64) && intent >= tail && intent - tail <= 2 * capacity as u64;
        if !sound {
            return Err(Error::CorruptChannel { head: tail, tail: intent, span: 2 * capacity as u64 });
        }
        let waiter = Waiter::of_readers(paged);
        Ok(Self { region, trailer, waiter, end, capacity, position: tail, counts: TransmitterCounts::default() })
    }

    /// Longest payload, in bytes.
    #[must_use]
    pub fn payload_length_max(&self) -> usize {
        layout::payload_length_max(self.capacity)
    }

    /// Writes a record, and wakes receivers that sleep.
    ///
    /// # Errors
    /// [`Refusal::TooLong`], [`Refusal::BadType`] (types are greater than 0) or [`Refusal::Forked`]; nothing is written then.
    #[inline]
    pub fn transmit(&mut self, type_id: i32, payload: &[u8]) -> Result<(), Refusal> {
        self.write(type_id, payload)?;
        self.waiter.notify();
        Ok(())
    }

    /// Writes records one behind the other, and wakes receivers once. Returns how many were written: all before the first
    /// that was refused, and why.
    ///
    /// # Errors
    /// As [`Transmitter::transmit`], with the count in front.
    pub fn transmit_batch<'a>(
        &mut self,
        records: impl IntoIterator<Item = (i32, &'a [u8])>,
    ) -> Result<usize, (usize, Refusal)> {
        let mut written = 0;
        let mut refused = None;
        for (type_id, payload) in records {
            if let Err(refusal) = self.write(type_id, payload) {
                refused = Some(refusal);
                break;
            }
            written += 1;
        }
        self.waiter.notify();
        refused.map_or(Ok(written), |refusal| Err((written, refusal)))
    }

    #[inline]
    fn write(&mut self, type_id: i32, payload: &[u8]) -> Result<(), Refusal> {
        if !self.end.is_ours() {
            return Err(Refusal::Forked);
        }
        if type_id <= 0 {
            return Err(Refusal::BadType);
        }
        if payload.len() > self.payload_length_max() {
            return Err(Refusal::TooLong);
        }
        let length = record_length(payload.len());
        let index = self.position as usize & (self.capacity - 1);
        let room = self.capacity - index;
        let padding = if length > room { room } else { 0 };
        let end = self.position + (padding + length) as u64;
        self.trailer.intent.store(end, Ordering::Relaxed);
        // Pairs with the receivers' acquire fence: who copies a word that is written below sees the intent above.
        fence(Ordering::Release);
        let words = self.region.words();
        let at = if padding > 0 {
            words[index / WORD].store(header(padding, 0), Ordering::Relaxed);
            0
        } else {
            index
        };
        words[at / WORD].store(header(payload.len(), type_id), Ordering::Relaxed);
        copy_in(&words[at / WORD + 1..(at + length) / WORD], payload);
        self.trailer.latest.store(end - length as u64, Ordering::Relaxed);
        // Pairs with the receivers' acquire of the tail: latest and the record are whole before they can be looked for.
        self.trailer.tail.store(end, Ordering::Release);
        self.position = end;
        self.counts.records += 1;
        self.counts.payload_bytes += payload.len() as u64;
        Ok(())
    }

    /// Position behind the last record: bytes since the buffer was made.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> TransmitterCounts {
        self.counts
    }
}
