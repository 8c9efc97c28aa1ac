//! Aeron's UDP protocol, version 0: what its frames say. Little-endian.
//!
//! ```text
//!  0               4   5   6       8
//! +---------------+---+---+-------+----------
//! | frame_length  |ver|flg| type  | fields of the type …
//! +---------------+---+---+-------+----------
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`header`] | the first eight bytes, types |
//! | [`data`] | DATA, its heartbeats, PAD |
//! | [`control`] | SM, NAK, SETUP, RTTM |
//! | [`error`] | ERR |
//! | [`resolution`] | RES and its entries |
//! | [`walk`] | the frames of a datagram |
//! | [`position`] | (term id, term offset) ↔ position in the stream |
//!
//! Layouts: `proto/spec/0016-wire-flyweights.md`.

pub mod control;
pub mod data;
pub mod error;
pub mod header;
pub mod position;
pub mod resolution;
pub mod walk;

pub use control::{NakFrame, RttFrame, SetupFrame, StatusMessageFrame};
pub use data::{DataFrame, PadFrame};
pub use error::ErrorFrame;
pub use header::{FRAME_ALIGNMENT, FrameHeader, FrameType};
pub use position::TermPositions;
pub use resolution::{ResolutionEntry, ResolutionFrame};
pub use walk::{Frame, Frames, frames};
