//! Why bytes are refused, or a value cannot be written. Small and without memory of its own: strangers cause these.

use std::fmt;

use thiserror::Error as ThisError;

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The bytes, or the buffer, end too early.
    Truncated,
    /// A field has a value that it cannot have.
    Invalid,
    /// A checksum does not fit its bytes.
    Checksum,
}

/// What a field should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// So many bytes, at least.
    Bytes(usize),
    /// This number.
    Number(i128),
    /// A number from the first to the second one, both included.
    Within(i128, i128),
    /// In words.
    Words(&'static str),
}

/// What it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// So many bytes were there.
    Bytes(usize),
    /// This number.
    Number(i128),
    /// In words.
    Words(&'static str),
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[error("{field} at byte {offset}: expected {expected}, got {got}")]
pub struct WireError {
    /// What kind of trouble it is.
    pub fault: Fault,
    /// The field, by its name in the specification; `buffer` for what was handed in.
    pub field: &'static str,
    /// Where the field begins, in bytes from the start of what was decoded or encoded.
    pub offset: usize,
    /// What it should have been.
    pub expected: Expected,
    /// What it was.
    pub got: Got,
}

impl fmt::Display for Expected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(count) => write!(out, "{count} bytes"),
            Self::Number(number) => write!(out, "{number}"),
            Self::Within(least, most) => write!(out, "{least} to {most}"),
            Self::Words(words) => out.write_str(words),
        }
    }
}

impl fmt::Display for Got {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(count) => write!(out, "{count} bytes"),
            Self::Number(number) => write!(out, "{number}"),
            Self::Words(words) => out.write_str(words),
        }
    }
}

impl WireError {
    /// The bytes end before the field does.
    pub(crate) fn truncated(field: &'static str, offset: usize, expected: usize, got: usize) -> Self {
        let (expected, got) = (Expected::Bytes(expected), Got::Bytes(got));
        Self { fault: Fault::Truncated, field, offset, expected, got }
    }

    /// The field has a value that it cannot have.
    pub(crate) fn invalid(field: &'static str, offset: usize, expected: Expected, got: impl Into<i128>) -> Self {
        Self { fault: Fault::Invalid, field, offset, expected, got: Got::Number(got.into()) }
    }

    /// The same refusal, seen from `base` bytes further ahead.
    #[must_use]
    pub fn behind(self, base: usize) -> Self {
        Self { offset: self.offset.saturating_add(base), ..self }
    }
}

/// Refuse a number that is not within `least` to `most`.
pub(crate) fn within(
    field: &'static str,
    offset: usize,
    value: impl Into<i128>,
    least: impl Into<i128>,
    most: impl Into<i128>,
) -> Result<(), WireError> {
    let (value, least, most) = (value.into(), least.into(), most.into());
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let expected = if least == most { Expected::Number(least) } else { Expected::Within(least, most) };
    Err(WireError::invalid(field, offset, expected, value))
}

/// Refuse a number that is not what it has to be.
pub(crate) fn exactly(
    field: &'static str,
    offset: usize,
    value: impl Into<i128>,
    expected: impl Into<i128>,
) -> Result<(), WireError> {
    let expected = expected.into();
    within(field, offset, value, expected, expected)
}

/// Refuse what the words do not describe.
pub(crate) fn holds(
    is_so: bool,
    field: &'static str,
    offset: usize,
    words: &'static str,
    got: impl Into<i128>,
) -> Result<(), WireError> {
    if is_so { Ok(()) } else { Err(WireError::invalid(field, offset, Expected::Words(words), got)) }
}

/// Refuse a checksum that is not the one of the bytes.
pub(crate) fn checksum(field: &'static str, offset: usize, said: u32, found: u32) -> Result<(), WireError> {
    exactly(field, offset, said, found).map_err(|error| WireError { fault: Fault::Checksum, ..error })
}

/// A length as a number of a message.
pub(crate) fn count(length: usize) -> i128 {
    length as i128
}
