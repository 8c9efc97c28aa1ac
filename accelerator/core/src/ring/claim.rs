//! A claim: room in the ring that is filled in place, then committed or given up.

use super::geometry::Geometry;
use super::producer::{FrameProducer, Reservation};

/// Room in the ring, to be filled in place. It holds what earlier frames left until it is filled.
#[derive(Debug)]
#[must_use = "a claim that is dropped is aborted"]
pub struct Claim<'a, G: Geometry> {
    producer: &'a mut FrameProducer<G>,
    reserved: Reservation,
}

impl<'a, G: Geometry> Claim<'a, G> {
    pub(super) fn new(producer: &'a mut FrameProducer<G>, reserved: Reservation) -> Self {
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

impl<G: Geometry> Drop for Claim<'_, G> {
    fn drop(&mut self) {
        // Refused, and so without effect, after a commit.
        self.producer.cancel(self.reserved);
    }
}
