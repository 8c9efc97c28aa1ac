//! Log buffer: three terms in turn, one producer, one consumer.
//!
//! A frame never crosses a term: padding fills the rest of it, and the next term begins. The producer gets two terms ahead at most, so
//! the term it turns to has been read. It is not wiped as a whole, which would stall the producer for as long as
//! a term takes to write: behind every published frame stands a zero header instead, so old bytes never look like a frame.

use super::consumer::FrameConsumer;
use super::geometry::{Geometry, TermGeometry};
use super::page::Paged;
use super::producer::FrameProducer;
use crate::Error;

/// The writing end of a log buffer or channel.
pub type LogProducer = FrameProducer<TermGeometry>;
/// The reading end of a log buffer or channel.
pub type LogConsumer = FrameConsumer<TermGeometry>;

/// A log buffer on the heap, for two threads.
///
/// # Errors
/// [`Error::InvalidTermLength`] unless `term_length` (bytes) is a power of two from 4096 to 1 GiB.
pub fn log_buffer(term_length: usize) -> Result<(LogProducer, LogConsumer), Error> {
    let geometry = TermGeometry::new(term_length)?;
    let paged = Paged::heap(0, geometry.buffer_length());
    Ok((FrameProducer::attach(&paged, geometry)?, FrameConsumer::attach(&paged, geometry)?))
}
