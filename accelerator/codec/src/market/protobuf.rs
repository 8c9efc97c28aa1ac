//! Protobuf's wire format: tags, varints, lengths, groups; as strict as google.protobuf's own parser (upb), and no stricter.

use super::fault::{Problem, problem};

pub(super) const VARINT: u32 = 0;
pub(super) const DELIMITED: u32 = 2;
const FIXED64: u32 = 1;
const GROUP: u32 = 3;
const GROUP_END: u32 = 4;
const FIXED32: u32 = 5;
/// Messages and groups inside of each other, at most.
const DEPTH_MAX: usize = 100;
const VARINT_LENGTH_MAX: usize = 10;
/// Of tags and lengths.
const VARINT32_LENGTH_MAX: usize = 5;
/// The bits of eight bytes that say that another byte follows.
const CONTINUED: u64 = 0x8080_8080_8080_8080;
const LENGTH_MAX: u64 = i32::MAX as u64;

/// Number of a field, and how its value is encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag(u32);

impl Tag {
    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0 >> 3
    }

    #[inline]
    pub(super) fn wire(self) -> u32 {
        self.0 & 7
    }
}

/// A walk over the fields of one message.
pub(super) struct Reader<'a> {
    /// Up to the message's end; offsets are those of the whole.
    bytes: &'a [u8],
    at: usize,
    depth_left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth_left: DEPTH_MAX }
    }

    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// The next field's tag.
    #[inline]
    pub(super) fn tag(&mut self) -> Result<Tag, Problem> {
        let (tag, at) = (self.bare_tag()?, self.at);
        if tag.number() == 0 { Err(problem("tag", at, "a field number of 1 or more", 0)) } else { Ok(tag) }
    }

    /// A value of 64 bits; the bits of a tenth byte that do not fit are dropped.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, Problem> {
        self.short_varint(VARINT_LENGTH_MAX)
    }

    #[inline]
    pub(super) fn delimited(&mut self) -> Result<&'a [u8], Problem> {
        let at = self.at;
        let length = self.short_varint(VARINT32_LENGTH_MAX)?;
        if length > LENGTH_MAX || length as usize > self.bytes.len() - self.at {
            return Err(problem("length", at, "no more bytes than are left", length as usize));
        }
        let begin = self.at;
        self.at += length as usize;
        Ok(&self.bytes[begin..self.at])
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<&'a str, Problem> {
        let bytes = self.delimited()?;
        utf8(name, bytes, self.at - bytes.len())
    }

    /// A walk over the message that is the next value; this one goes on behind it.
    pub(super) fn nested(&mut self) -> Result<Self, Problem> {
        let length = self.delimited()?.len();
        Ok(Self { bytes: &self.bytes[..self.at], at: self.at - length, depth_left: self.depth_left - 1 })
    }

    /// Pass over a value.
    pub(super) fn skip(&mut self, tag: Tag) -> Result<(), Problem> {
        self.skip_within(tag, self.depth_left)
    }

    fn skip_within(&mut self, tag: Tag, depth_left: usize) -> Result<(), Problem> {
        match tag.wire() {
            VARINT => self.varint().map(drop),
            FIXED64 => self.advance(8).map(drop),
            DELIMITED => self.delimited().map(drop),
            GROUP => self.skip_group(tag.number(), depth_left),
            FIXED32 => self.advance(4).map(drop),
            GROUP_END => Err(problem("tag", self.at, "no end of a group that did not begin", tag.number() as usize)),
            wire => Err(problem("tag", self.at, "a wire type of 0 to 5", wire as usize)),
        }
    }

    /// Field number 0 is allowed here, as the parser allows it inside of a group.
    fn skip_group(&mut self, number: u32, depth_left: usize) -> Result<(), Problem> {
        if depth_left == 0 {
            return Err(problem("group", self.at, "at most 100 groups inside of each other", DEPTH_MAX + 1));
        }
        loop {
            let tag = self.bare_tag()?;
            if tag == Tag(number << 3 | GROUP_END) {
                return Ok(());
            }
            self.skip_within(tag, depth_left - 1)?;
        }
    }

    #[inline]
    fn bare_tag(&mut self) -> Result<Tag, Problem> {
        let at = self.at;
        let tag = self.short_varint(VARINT32_LENGTH_MAX)?;
        u32::try_from(tag).map(Tag).map_err(|_| problem("tag", at, "a number of 32 bits", tag as usize))
    }

    /// One byte is the usual tag, length and truth value.
    #[inline]
    fn short_varint(&mut self, length_max: usize) -> Result<u64, Problem> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(byte.into())
            }
            _ => self.long_varint(length_max),
        }
    }

    fn long_varint(&mut self, length_max: usize) -> Result<u64, Problem> {
        let rest = &self.bytes[self.at..];
        match varint_of(rest) {
            Some((value, length)) if length <= length_max => {
                self.at += length;
                Ok(value)
            }
            _ if length_max < VARINT_LENGTH_MAX => {
                Err(problem("varint", self.at, "a varint that ends within 5 bytes", rest.len()))
            }
            _ => Err(problem("varint", self.at, "a varint that ends within 10 bytes", rest.len())),
        }
    }

    fn advance(&mut self, length: usize) -> Result<&'a [u8], Problem> {
        let rest = &self.bytes[self.at..];
        let short = || problem("value", self.at, "4 or 8 bytes", rest.len());
        let found = rest.get(..length).ok_or_else(short)?;
        self.at += length;
        Ok(found)
    }
}

/// The number that bytes begin with, and its length; none where it does not end within ten of them.
fn varint_of(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut padded = [0x80; VARINT_LENGTH_MAX];
    let [word @ .., ninth, tenth] = bytes.first_chunk().unwrap_or_else(|| {
        padded[..bytes.len()].copy_from_slice(bytes);
        &padded
    });
    let word = u64::from_le_bytes(*word);
    let ends = !word & CONTINUED;
    if ends != 0 {
        // All bits up to the first byte that ends.
        return Some((packed(word & (ends ^ (ends - 1))), ends.trailing_zeros() as usize / 8 + 1));
    }
    let value = packed(word) | u64::from(ninth & 0x7f) << 56;
    match (ninth, tenth) {
        (..0x80, _) => Some((value, 9)),
        (_, ..0x80) => Some((value | u64::from(*tenth) << 63, VARINT_LENGTH_MAX)),
        _ => None,
    }
}

/// The low seven bits of eight bytes, the first byte's lowest.
fn packed(word: u64) -> u64 {
    let word = word & !CONTINUED;
    let pairs = (word & 0x7f00_7f00_7f00_7f00) >> 1 | word & 0x007f_007f_007f_007f;
    let fours = (pairs & 0x3fff_0000_3fff_0000) >> 2 | pairs & 0x0000_3fff_0000_3fff;
    (fours & 0x0fff_ffff_0000_0000) >> 4 | fours & 0x0000_0000_0fff_ffff
}

/// Bytes as text; `offset` is where they begin.
pub(super) fn utf8<'a>(name: &'static str, bytes: &'a [u8], offset: usize) -> Result<&'a str, Problem> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        problem(name, offset + at, "UTF-8", bytes[at].into())
    })
}

/// Write a field's tag.
pub(super) fn put_tag(number: u32, wire: u32, out: &mut Vec<u8>) {
    put_varint(u64::from(number << 3 | wire), out);
}

/// Write a number in seven bits a byte.
pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    if value < 0x80 {
        return out.push(value as u8);
    }
    let (mut bytes, mut length) = ([0; VARINT_LENGTH_MAX], 0);
    while value >= 0x80 {
        bytes[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    bytes[length] = value as u8;
    out.extend_from_slice(&bytes[..=length]);
}
