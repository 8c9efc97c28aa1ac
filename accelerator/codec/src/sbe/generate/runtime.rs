
/// Why bytes are no message, or a message cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The buffer ends before the message does.
    Truncated {
        /// Name of what is cut off.
        what: &'static str,
        /// Bytes that it has.
        needed: u64,
        /// Bytes that are left.
        left: usize,
    },
    /// A block is shorter than the message's version has it.
    ShortBlock {
        /// Name of the block.
        what: &'static str,
        /// Bytes that its version has.
        needed: usize,
        /// Bytes that it has.
        length: usize,
    },
    /// A message of another schema.
    WrongSchema {
        /// Id of this schema.
        expected: u32,
        /// Id in the message.
        actual: u64,
    },
    /// Another message.
    WrongTemplate {
        /// Template id of the message that was asked for.
        expected: u32,
        /// Template id in the message.
        actual: u64,
    },
    /// The schema has no such message.
    UnknownTemplate {
        /// Template id in the message.
        actual: u64,
    },
    /// More than 255 entries that have no bytes.
    EmptyEntries {
        /// Name of the group.
        what: &'static str,
        /// Entries that it says.
        count: u64,
    },
    /// The buffer is too short: give a longer one.
    Overflow {
        /// Name of what does not fit.
        what: &'static str,
        /// Bytes that it needs.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// More entries or bytes than the schema allows.
    TooMany {
        /// Name of the group, field or data.
        what: &'static str,
        /// Most that are allowed.
        max: u64,
    },
    /// A value outside of the range that the schema says.
    OutOfRange {
        /// Name of the field.
        what: &'static str,
    },
    /// A group or data was written or passed already.
    Order {
        /// Its name.
        what: &'static str,
    },
}

impl core::fmt::Display for Error {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated { what, needed, left } => {
                write!(out, "{what}: expected {needed} bytes, {left} are left")
            }
            Self::ShortBlock { what, needed, length } => {
                write!(out, "{what}: expected a block of {needed} bytes or more in this version, it has {length}")
            }
            Self::WrongSchema { expected, actual } => {
                write!(out, "expected schema id {expected}, the message has {actual}")
            }
            Self::WrongTemplate { expected, actual } => {
                write!(out, "expected template id {expected}, the message has {actual}")
            }
            Self::UnknownTemplate { actual } => write!(out, "the schema has no message of template id {actual}"),
            Self::EmptyEntries { what, count } => {
                write!(out, "{what}: {count} entries without bytes, expected at most 255")
            }
            Self::Overflow { what, needed, left } => {
                write!(out, "{what} needs {needed} bytes, the buffer has {left} left: give a longer buffer")
            }
            Self::TooMany { what, max } => write!(out, "{what}: expected at most {max} entries or bytes"),
            Self::OutOfRange { what } => write!(out, "{what}: expected a value of the range that the schema says"),
            Self::Order { what } => write!(out, "{what} cannot be written now: it was written or passed already"),
        }
    }
}

impl core::error::Error for Error {}

/// Text of a field or data: what stands before the first zero byte.
pub fn text(bytes: &[u8]) -> Result<&str, core::str::Utf8Error> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    core::str::from_utf8(bytes.get(..end).unwrap_or(bytes))
}

/// Cut bytes off the front.
#[inline]
fn take<'a>(bytes: &'a [u8], length: u64, what: &'static str) -> Result<(&'a [u8], &'a [u8]), Error> {
    let cut = usize::try_from(length).ok().and_then(|length| bytes.split_at_checked(length));
    cut.ok_or(Error::Truncated { what, needed: length, left: bytes.len() })
}

/// Cut a known number of bytes off the front.
#[inline]
fn chunk<'a, const N: usize>(bytes: &'a [u8], what: &'static str) -> Result<(&'a [u8; N], &'a [u8]), Error> {
    bytes.split_first_chunk().ok_or(Error::Truncated { what, needed: N as u64, left: bytes.len() })
}

/// What every version has of a block.
#[inline]
fn base<'a, const N: usize>(block: &'a [u8], what: &'static str) -> Result<&'a [u8; N], Error> {
    block.first_chunk().ok_or(Error::ShortBlock { what, needed: N, length: block.len() })
}

/// Check a group's count against the bytes that are left, before anything is done for its entries.
#[inline]
fn counted(rest: &[u8], least: u64, count: u64, what: &'static str) -> Result<usize, Error> {
    if least == 0 && count > 255 {
        return Err(Error::EmptyEntries { what, count });
    }
    take(rest, least.saturating_mul(count), what)?;
    Ok(count as usize)
}

/// Bytes of a number. They are there: the block was checked before, and zero would be read otherwise.
#[inline]
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *array(bytes, at)
}

/// Bytes of an array, as those of a number.
#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> &[u8; N] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).unwrap_or(const { &[0; N] })
}

/// Bytes of each item of an array.
#[inline]
fn items<const N: usize>(
    bytes: &[u8],
    at: usize,
    count: usize,
) -> impl ExactSizeIterator<Item = [u8; N]> + Clone + use<'_, N> {
    window(bytes, at, at + count * N).chunks_exact(N).map(|item| part(item, 0))
}

/// Bytes of a composite, as far as they are there.
#[inline]
fn window(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    bytes.get(from..to.min(bytes.len())).unwrap_or(&[])
}

/// Bytes of a composite to write into.
#[inline]
fn window_mut(bytes: &mut [u8], from: usize, to: usize) -> &mut [u8] {
    bytes.get_mut(from..to).unwrap_or_default()
}

/// Write the bytes of a number.
#[inline]
fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(slot) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *slot = value;
    }
}

/// Write the bytes of the items of an array.
#[inline]
fn put_items<const N: usize>(bytes: &mut [u8], at: usize, items: impl Iterator<Item = [u8; N]>) {
    for (index, item) in items.enumerate() {
        put(bytes, at + index * N, item);
    }
}

/// Write bytes into an array of at least as many, and zero behind them.
#[inline]
fn put_padded<const N: usize>(bytes: &mut [u8], at: usize, value: &[u8], what: &'static str) -> Result<(), Error> {
    let slot = window_mut(bytes, at, at + N);
    let Some((front, behind)) = slot.split_at_mut_checked(value.len()) else {
        return Err(Error::TooMany { what, max: N as u64 });
    };
    front.copy_from_slice(value);
    behind.fill(0);
    Ok(())
}

/// What is left of a caller's buffer.
#[derive(Debug)]
struct Writer<'b> {
    rest: &'b mut [u8],
    written: usize,
}

impl<'b> Writer<'b> {
    /// The same writer, whether it is owned or borrowed.
    #[inline]
    fn again(&mut self) -> &mut Self {
        self
    }

    /// Cut a known number of bytes off the front.
    #[inline]
    fn claim<const N: usize>(&mut self, what: &'static str) -> Result<&'b mut [u8; N], Error> {
        let overflow = Error::Overflow { what, needed: N, left: self.rest.len() };
        if self.rest.len() < N {
            return Err(overflow);
        }
        let (claimed, rest) = core::mem::take(&mut self.rest).split_first_chunk_mut().ok_or(overflow)?;
        self.rest = rest;
        self.written += N;
        Ok(claimed)
    }

    /// Write bytes of any number.
    #[inline]
    fn bytes(&mut self, given: &[u8], what: &'static str) -> Result<(), Error> {
        let overflow = Error::Overflow { what, needed: given.len(), left: self.rest.len() };
        if self.rest.len() < given.len() {
            return Err(overflow);
        }
        let cut = core::mem::take(&mut self.rest).split_at_mut_checked(given.len());
        let (claimed, rest) = cut.ok_or(overflow)?;
        claimed.copy_from_slice(given);
        self.rest = rest;
        self.written += given.len();
        Ok(())
    }
}

/// A count or length that the schema allows.
#[inline]
fn limited(count: usize, max: u64, what: &'static str) -> Result<u64, Error> {
    let count = count as u64;
    if count > max { Err(Error::TooMany { what, max }) } else { Ok(count) }
}
