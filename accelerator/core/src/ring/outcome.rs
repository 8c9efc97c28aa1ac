//! Outcomes of the hot path. They are values: none of them is unexpected.

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The reader is too far behind: try again later.
    BackPressured,
    /// The payload is longer than this ring ever takes.
    TooLong,
    /// Type ids are greater than 0.
    BadType,
    /// The ring is full and its consumer has left.
    Closed,
    /// The other side's position contradicts ours: make the ring anew. Counted.
    Corrupt,
    /// This end was copied into a forked child: make one of its own there.
    Forked,
    /// A claim was left open: commit or abort it first.
    ClaimOpen,
}

/// Why a poll ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// As many frames as were asked for, or 64 frames of padding in a row: poll again.
    Limit,
    /// Everything that was published has been read.
    Empty,
    /// The next frame is claimed, and its producer has not committed it.
    InProgress,
    /// Everything has been read, and the producer has left.
    Closed,
    /// The next header or the producer's position is impossible: make the ring anew. Counted.
    Corrupt,
    /// This end was copied into a forked child.
    Forked,
}

/// What a poll did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Polled {
    /// Frames handed over (padding is none).
    pub frames: usize,
    /// Why it ended.
    pub stop: Stop,
}

/// What a producer counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerCounts {
    /// Frames published.
    pub frames: u64,
    /// Payload bytes published.
    pub payload_bytes: u64,
    /// Messages refused for lack of room.
    pub back_pressured: u64,
    /// Claims given up.
    pub aborted: u64,
    /// Impossible positions seen.
    pub corrupt: u64,
}

/// What a consumer counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConsumerCounts {
    /// Frames read.
    pub frames: u64,
    /// Payload bytes read.
    pub payload_bytes: u64,
    /// Bytes of padding skipped: wraps, aborted claims.
    pub padding_bytes: u64,
    /// Claims of dead producers that were skipped.
    pub unblocked: u64,
    /// Impossible headers and positions seen.
    pub corrupt: u64,
}
