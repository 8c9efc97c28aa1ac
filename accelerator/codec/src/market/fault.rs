//! Why a message is not converted. Small and without memory of its own: strangers cause these.

use thiserror::Error as ThisError;

/// What is wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[error("{field} at byte {offset}: expected {expected}, got {got}")]
pub struct Problem {
    /// The field by its name in the specification, or the part of the encoding.
    pub field: &'static str,
    /// Where it begins, in bytes from the start of what was read or would have been written.
    pub offset: usize,
    /// What it should have been.
    pub expected: &'static str,
    /// What it was: a number, a length in bytes, a byte.
    pub got: i64,
}

/// Why a market message is not converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum MarketError {
    /// The type has no form in SBE.
    #[error("expected type id 4 (Tick), 5 (OHLC), 13 (Gap) or 30 (Heartbeat), got {0}: it has no form in SBE")]
    NoForm(u32),
    /// The bytes are no message in protobuf.
    #[error("{0} in protobuf: {1}")]
    Protobuf(&'static str, Problem),
    /// A value of the message has no room in SBE.
    #[error("{0} does not fit SBE: {1}; send it as protobuf")]
    Unfit(&'static str, Problem),
    /// The bytes are no record of version 0x02.
    #[error("market message in SBE: {0}")]
    Record(Problem),
}

#[cold]
pub(super) fn problem(field: &'static str, offset: usize, expected: &'static str, got: usize) -> Problem {
    Problem { field, offset, expected, got: got as i64 }
}
