//! Errors: what was expected, what it was, what to do. Codes are stable and never reused.

use std::io;
use std::path::PathBuf;

use thiserror::Error as ThisError;

/// Stable names of the errors, for bindings that raise their own classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// An argument or setting is outside its bounds.
    InvalidArgument,
    /// The name of a segment has other characters than `a-z 0-9 . _ -`.
    InvalidName,
    /// The bytes are no segment of ours (magic).
    InvalidChannel,
    /// The magic is not there yet: the creator has not finished.
    NotReady,
    /// A segment of another layout version.
    UnsupportedVersion,
    /// A segment of another kind (ring, fixed ring, channel).
    WrongKind,
    /// Term length, capacity or item length is not allowed.
    InvalidTermLength,
    /// The file's size does not belong to the length that its metadata say.
    TermLengthMismatch,
    /// Positions in the metadata contradict each other.
    CorruptChannel,
    /// The producer or consumer end is held by a process that lives, or that cannot be proven dead.
    EndTaken,
    /// All owner slots of a ring of many producers are held.
    NoFreeSlot,
    /// A segment of this name exists.
    AlreadyExists,
    /// No segment of this name exists.
    NotFound,
    /// The directory or the file belongs to somebody else, or others may write to it.
    AccessDenied,
    /// The file system has no room for the segment.
    NoSpace,
    /// Another process holds the lock of the directory, and did not let it go in time.
    LockBusy,
    /// The operating system refused something else.
    System,
}

/// Root of the core's errors.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// See [`Code::InvalidArgument`].
    #[error("{what}: expected {expected}, got {actual}")]
    InvalidArgument {
        /// The argument.
        what: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What was given.
        actual: u64,
    },
    /// See [`Code::InvalidName`].
    #[error(
        "segment name {name:?}: expected 1 to 128 characters of a-z 0-9 . _ - and no dot first; choose another name"
    )]
    InvalidName {
        /// What was given.
        name: String,
    },
    /// See [`Code::InvalidChannel`].
    #[error("segment {name}: expected magic {expected:#018x}, found {actual:#018x}; it is no {kind}: check the name")]
    InvalidChannel {
        /// Name of the segment.
        name: String,
        /// What was to be opened.
        kind: &'static str,
        /// Magic of that kind.
        expected: u64,
        /// What is there.
        actual: u64,
    },
    /// See [`Code::NotReady`].
    #[error("segment {name}: its creator has not finished it (no magic yet); try again")]
    NotReady {
        /// Name of the segment.
        name: String,
    },
    /// See [`Code::UnsupportedVersion`].
    #[error(
        "segment {name}: expected layout version {expected}, found {actual}{hint}; use the same version on both sides"
    )]
    UnsupportedVersion {
        /// Name of the segment.
        name: String,
        /// Version of this library.
        expected: u32,
        /// Version in the segment.
        actual: u32,
        /// What that version is, where known.
        hint: &'static str,
    },
    /// See [`Code::WrongKind`].
    #[error("segment {name}: expected a {expected}, found kind {actual}; open it as what it was created")]
    WrongKind {
        /// Name of the segment.
        name: String,
        /// What was to be opened.
        expected: &'static str,
        /// Kind number in the segment.
        actual: u32,
    },
    /// See [`Code::InvalidTermLength`].
    #[error("{what}: expected {expected}, got {actual}")]
    InvalidTermLength {
        /// The field.
        what: &'static str,
        /// What is allowed.
        expected: &'static str,
        /// What it was.
        actual: u64,
    },
    /// See [`Code::TermLengthMismatch`].
    #[error(
        "segment {name}: its metadata say {expected} bytes, the file has {actual}; it was cut or forged: unlink it"
    )]
    TermLengthMismatch {
        /// Name of the segment.
        name: String,
        /// Bytes that the metadata ask for.
        expected: u64,
        /// Bytes of the file.
        actual: u64,
    },
    /// See [`Code::CorruptChannel`].
    #[error(
        "positions: expected head <= tail <= head + {span} in steps of 8, found head {head}, tail {tail}; make the segment anew"
    )]
    CorruptChannel {
        /// Consumer position.
        head: u64,
        /// Producer position.
        tail: u64,
        /// Largest allowed distance.
        span: u64,
    },
    /// See [`Code::EndTaken`].
    #[error("the {end} end is held by process {pid}, which {state}; only one may hold it at a time")]
    EndTaken {
        /// `producer` or `consumer`.
        end: &'static str,
        /// Its process id, as seen in its own namespace.
        pid: u32,
        /// `is alive` or `cannot be proven dead`.
        state: &'static str,
    },
    /// See [`Code::NoFreeSlot`].
    #[error("all {count} producer slots are held; create the ring with more of them, or close a producer")]
    NoFreeSlot {
        /// Slots of this ring.
        count: usize,
    },
    /// See [`Code::AlreadyExists`].
    #[error("segment {name} exists already; open it, unlink it, or create it with replace_stale")]
    AlreadyExists {
        /// Name of the segment.
        name: String,
    },
    /// See [`Code::AlreadyExists`].
    #[error(
        "segment {name} exists already and is not replaced: it is no {kind} whose maker and holders are proven dead; open it \
         or unlink it"
    )]
    NotStale {
        /// Name of the segment.
        name: String,
        /// What was to be made.
        kind: &'static str,
    },
    /// See [`Code::NotFound`].
    #[error("segment {name} does not exist in {directory}; create it first")]
    NotFound {
        /// Name of the segment.
        name: String,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// See [`Code::AccessDenied`].
    #[error("{path}: expected {expected}, found {actual}; choose a directory of your own")]
    AccessDenied {
        /// Directory or file.
        path: PathBuf,
        /// What is asked of it.
        expected: &'static str,
        /// What it was.
        actual: String,
    },
    /// See [`Code::NoSpace`].
    #[error(
        "{path}: no room for {length_bytes} bytes of shared memory; free some, enlarge the file system, or ask for less"
    )]
    NoSpace {
        /// Directory.
        path: PathBuf,
        /// Bytes asked for.
        length_bytes: u64,
    },
    /// See [`Code::LockBusy`].
    #[error("{path}: held for over {wait_ms} ms by {holder}; let that process run on or end it, and try again")]
    LockBusy {
        /// The file of the lock.
        path: PathBuf,
        /// Who holds it, as far as the system tells.
        holder: String,
        /// How long was waited, in milliseconds.
        wait_ms: u128,
    },
    /// See [`Code::System`].
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// The stable name of this error.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::InvalidArgument { .. } => Code::InvalidArgument,
            Self::InvalidName { .. } => Code::InvalidName,
            Self::InvalidChannel { .. } => Code::InvalidChannel,
            Self::NotReady { .. } => Code::NotReady,
            Self::UnsupportedVersion { .. } => Code::UnsupportedVersion,
            Self::WrongKind { .. } => Code::WrongKind,
            Self::InvalidTermLength { .. } => Code::InvalidTermLength,
            Self::TermLengthMismatch { .. } => Code::TermLengthMismatch,
            Self::CorruptChannel { .. } => Code::CorruptChannel,
            Self::EndTaken { .. } => Code::EndTaken,
            Self::NoFreeSlot { .. } => Code::NoFreeSlot,
            Self::AlreadyExists { .. } | Self::NotStale { .. } => Code::AlreadyExists,
            Self::NotFound { .. } => Code::NotFound,
            Self::AccessDenied { .. } => Code::AccessDenied,
            Self::NoSpace { .. } => Code::NoSpace,
            Self::LockBusy { .. } => Code::LockBusy,
            Self::System { .. } => Code::System,
        }
    }

    pub(crate) fn system(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { action: action.into(), source: source.into() }
    }
}
