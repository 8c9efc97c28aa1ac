//! Byte ring with one producer and one consumer: threads over the heap, processes over a segment ([`super::shared`]).

use super::consumer::FrameConsumer;
use super::geometry::{Geometry, RingGeometry};
use super::page::Paged;
use super::producer::FrameProducer;
use crate::Error;

/// The writing end of a ring.
pub type SpscProducer = FrameProducer<RingGeometry>;
/// The reading end of a ring.
pub type SpscConsumer = FrameConsumer<RingGeometry>;

/// A ring on the heap, for two threads.
///
/// # Errors
/// [`Error::InvalidTermLength`] unless `capacity` (bytes) is a power of two from 64 to 1 GiB.
pub fn spsc(capacity: usize) -> Result<(SpscProducer, SpscConsumer), Error> {
    let geometry = RingGeometry::new(capacity)?;
    let paged = Paged::heap(0, geometry.buffer_length());
    Ok((FrameProducer::attach(&paged, geometry)?, FrameConsumer::attach(&paged, geometry)?))
}
