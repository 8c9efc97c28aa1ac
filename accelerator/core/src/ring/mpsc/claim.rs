//! A claim in a ring of many producers. While it is open, the consumer stops in front of it.

use super::producer::{MpscProducer, MpscReservation};

/// Room in the ring, to be filled in place. It is all zeros until then.
#[derive(Debug)]
#[must_use = "a claim that is dropped is aborted"]
pub struct MpscClaim<'a> {
    producer: &'a mut MpscProducer,
    reserved: MpscReservation,
}

impl<'a> MpscClaim<'a> {
    pub(super) fn new(producer: &'a mut MpscProducer, reserved: MpscReservation) -> Self {
        Self { producer, reserved }
    }

    /// Bytes that can be written.
    #[must_use]
    pub fn payload_length(&self) -> usize {
        self.reserved.payload_length()
    }

    /// Writes a part.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn put(&mut self, offset: usize, bytes: &[u8]) {
        let fitted = self.producer.put(&self.reserved, offset, bytes);
        assert!(fitted, "{} bytes at {offset} do not fit into {}", bytes.len(), self.reserved.payload_length());
    }

    /// Publishes it.
    pub fn commit(self) {
        self.producer.publish(self.reserved);
    }

    /// Gives it up, as dropping does.
    pub fn abort(self) {}
}

impl Drop for MpscClaim<'_> {
    fn drop(&mut self) {
        // Refused, and so without effect, after a commit.
        self.producer.cancel(self.reserved);
    }
}
