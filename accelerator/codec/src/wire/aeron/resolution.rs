//! RES: names of drivers and where they are reached, gossiped among them.
//!
//! ```text
//! frame   0 frame header   8 entries, one behind the other
//! entry   0 u8 res_type   1 u8 flags   2 u16 udp_port   4 i32 age_in_ms   8 address (4 or 16)
//!         12 or 24 i16 name_length, name, zeros up to a multiple of 8
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::header::{FrameHeader, FrameType, begin, framed};
use crate::wire::bytes::{Number, Order, head, layout, room};
use crate::wire::fault::{count, holds, within};
use crate::wire::{Flyweight, WireError};

/// The entry is about its sender.
pub const SELF: u8 = 0x80;
/// The type of an entry with an IPv4 address.
pub const NAME_TO_IP4: u8 = 1;
/// The type of an entry with an IPv6 address.
pub const NAME_TO_IP6: u8 = 2;
/// The longest name, in bytes.
pub const NAME_LENGTH_MAX: usize = 512;
const ENTRY_ALIGNMENT: usize = 8;

layout! {
    /// What comes before an entry's address.
    EntryHeader: 8 bytes, Little, {
        /// [`NAME_TO_IP4`] or [`NAME_TO_IP6`].
        res_type: u8 = 0,
        /// Bits: [`SELF`].
        flags: u8 = 1,
        /// Port of the driver.
        udp_port: u16 = 2,
        /// Milliseconds since the driver said so itself.
        age_in_ms: i32 = 4,
    }
}

/// One driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolutionEntry<'a> {
    /// Bits: [`SELF`].
    pub flags: u8,
    /// Port of the driver.
    pub udp_port: u16,
    /// Milliseconds since the driver said so itself.
    pub age_in_ms: i32,
    /// Address of the driver.
    pub address: IpAddr,
    /// Its name, at most [`NAME_LENGTH_MAX`] bytes.
    pub name: &'a [u8],
}

/// A frame of entries: all of them are checked when it is made or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolutionFrame<'a> {
    /// Bits without a meaning.
    pub flags: u8,
    entries: &'a [u8],
}

impl<'a> ResolutionFrame<'a> {
    /// A frame of `entries` that were encoded one behind the other.
    ///
    /// # Errors
    /// They are no entries.
    pub fn of(flags: u8, entries: &'a [u8]) -> Result<Self, WireError> {
        let frame = Self { flags, entries };
        within("frame_length", 0, count(frame.encoded_length()), 0, i32::MAX)?;
        let mut at = 0;
        while at < entries.len() {
            let entry =
                ResolutionEntry::decode(&entries[at..]).map_err(|error| error.behind(FrameHeader::LENGTH + at))?;
            at += entry.encoded_length();
        }
        Ok(frame)
    }

    /// The entries, in their order.
    pub fn entries(&self) -> impl Iterator<Item = ResolutionEntry<'a>> + use<'a> {
        let mut rest = self.entries;
        std::iter::from_fn(move || {
            let entry = ResolutionEntry::decode(rest).ok()?;
            rest = rest.get(entry.encoded_length()..)?;
            Some(entry)
        })
    }
}

impl<'a> Flyweight<'a> for ResolutionFrame<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (head, entries) = framed(bytes, FrameType::Resolution)?;
        Self::of(FrameHeader::read(head).flags, entries)
    }

    fn encoded_length(&self) -> usize {
        FrameHeader::LENGTH + self.entries.len()
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        let length = self.encoded_length();
        let frame = room(buffer, length)?;
        begin(frame, FrameType::Resolution, self.flags, length);
        frame[FrameHeader::LENGTH..].copy_from_slice(self.entries);
        Ok(length)
    }
}

impl ResolutionEntry<'_> {
    fn name_offset(&self) -> usize {
        EntryHeader::LENGTH + if self.address.is_ipv4() { 4 } else { 16 } + size_of::<i16>()
    }

    fn check(&self) -> Result<(), WireError> {
        within("age_in_ms", 4, self.age_in_ms, 0, i32::MAX)?;
        within("name_length", self.name_offset() - 2, count(self.name.len()), 0, count(NAME_LENGTH_MAX))
    }
}

impl<'a> Flyweight<'a> for ResolutionEntry<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let (start, rest) = head(bytes, "entry_header")?;
        let EntryHeader { res_type, flags, udp_port, age_in_ms } = EntryHeader::read(start);
        let (address, rest) = address(res_type, rest)?;
        let at = bytes.len() - rest.len();
        let (length, rest) = head::<2>(rest, "name_length").map_err(|error| error.behind(at))?;
        let length = i16::read(length, 0, Order::Little);
        within("name_length", at, length, 0, count(NAME_LENGTH_MAX))?;
        let name =
            rest.get(..length as usize).ok_or(WireError::truncated("name", at + 2, length as usize, rest.len()))?;
        let entry = Self { flags, udp_port, age_in_ms, address, name };
        entry.check()?;
        let length = entry.encoded_length();
        bytes.get(..length).ok_or(WireError::truncated("entry", 0, length, bytes.len()))?;
        Ok(entry)
    }

    fn encoded_length(&self) -> usize {
        (self.name_offset() + self.name.len()).next_multiple_of(ENTRY_ALIGNMENT)
    }

    fn encode(&self, buffer: &mut [u8]) -> Result<usize, WireError> {
        self.check()?;
        let (length, name_at) = (self.encoded_length(), self.name_offset());
        let entry = room(buffer, length)?;
        let res_type = if self.address.is_ipv4() { NAME_TO_IP4 } else { NAME_TO_IP6 };
        let &Self { flags, udp_port, age_in_ms, .. } = self;
        EntryHeader { res_type, flags, udp_port, age_in_ms }.write(entry);
        match self.address {
            IpAddr::V4(address) => entry[EntryHeader::LENGTH..name_at - 2].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => entry[EntryHeader::LENGTH..name_at - 2].copy_from_slice(&address.octets()),
        }
        (self.name.len() as i16).write(entry, name_at - 2, Order::Little);
        entry[name_at..name_at + self.name.len()].copy_from_slice(self.name);
        Ok(length)
    }
}

fn address(res_type: u8, bytes: &[u8]) -> Result<(IpAddr, &[u8]), WireError> {
    holds(matches!(res_type, NAME_TO_IP4 | NAME_TO_IP6), "res_type", 0, "1 (IPv4) or 2 (IPv6)", res_type)?;
    let short = |error: WireError| error.behind(EntryHeader::LENGTH);
    if res_type == NAME_TO_IP4 {
        let (octets, rest) = head::<4>(bytes, "address").map_err(short)?;
        return Ok((Ipv4Addr::from(*octets).into(), rest));
    }
    let (octets, rest) = head::<16>(bytes, "address").map_err(short)?;
    Ok((Ipv6Addr::from(*octets).into(), rest))
}
