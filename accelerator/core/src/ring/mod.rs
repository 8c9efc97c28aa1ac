//! Rings: messages through memory, between threads and between processes.
//!
//! | what | made by | when |
//! |---|---|---|
//! | byte ring, one producer | [`spsc()`], [`SharedRing`] | the default |
//! | ring of fixed items | [`fixed()`], [`SharedFixedRing`] | records of one size, in batches |
//! | byte ring, many producers | [`Mpsc::heap`], [`SharedMpscRing`] | producers come and go; else a ring each is simpler |
//! | log buffer | [`log_buffer()`], [`IpcChannel`] | a channel by name; the largest window |
//!
//! Positions are bytes since the beginning and only grow. Each end keeps its own position private and looks at the other's only
//! when what it last saw is used up. Everything read from shared memory is checked first (see [`crate::memory`]).

mod batch;
#[cfg(not(loom))]
pub(crate) mod bell;
mod claim;
mod consumer;
pub(crate) mod end;
mod fixed;
mod frame;
mod geometry;
mod log_buffer;
mod mpsc;
mod outcome;
pub(crate) mod page;
mod producer;
#[cfg(not(loom))]
pub(crate) mod segment;
#[cfg(not(loom))]
pub(crate) mod shared;
#[cfg(not(loom))]
mod shared_fixed;
#[cfg(not(loom))]
mod shared_mpsc;
mod spsc;
pub(crate) mod waiter;

pub use batch::FrameBatch;
#[cfg(not(loom))]
pub use bell::{Armed, BELL_COUNT, Bell};
pub use claim::Claim;
pub use consumer::{Frame, FrameConsumer};
#[cfg(all(test, loom))]
pub(crate) use end::End;
pub use end::EndState;
pub use fixed::{FixedConsumer, FixedGeometry, FixedProducer, fixed};
pub use frame::{HEADER_LENGTH, PAYLOAD_LENGTH_MAX};
pub use geometry::{CAPACITY_MIN, Geometry, LENGTH_MAX, RingGeometry, TERM_COUNT, TERM_LENGTH_MIN, TermGeometry};
pub use log_buffer::{LogConsumer, LogProducer, log_buffer};
#[cfg(all(test, loom))]
pub(crate) use mpsc::Death;
pub use mpsc::{Mpsc, MpscClaim, MpscConsumer, MpscProducer, MpscReservation, SLOT_COUNT_STEP};
pub use outcome::{ConsumerCounts, Polled, ProducerCounts, Refusal, Stop};
pub use page::PAGE_LENGTH;
pub use producer::{FrameProducer, Reservation};
#[cfg(not(loom))]
pub use segment::CreateOptions;
#[cfg(not(loom))]
pub use shared::{CHANNEL_MAGIC, CHANNEL_VERSION, IpcChannel, RING_MAGIC, RING_VERSION, SharedFrames, SharedRing};
#[cfg(not(loom))]
pub use shared_fixed::SharedFixedRing;
#[cfg(not(loom))]
pub use shared_mpsc::SharedMpscRing;
pub use spsc::{SpscConsumer, SpscProducer, spsc};
#[cfg(all(test, loom))]
pub(crate) use waiter::Waiter;
