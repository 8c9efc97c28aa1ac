//! Metadata of a ring's segment: written once with the magic last, checked field by field on open.

use std::time::{Duration, SystemTime};

use super::bell::BellPlace;
use super::end::EndState;
use super::page::{self, PAGE_LENGTH, Paged};
use crate::Error;
use crate::memory::process::{Liveness, ProcessIdentity};
use crate::memory::words::WORD;
use crate::memory::{Head, HugePages, LOCK_WAIT, Segment, SegmentDirectory, SegmentName, SegmentOptions};
use crate::sync::Ordering;

/// How a ring's segment is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// Mapping options.
    pub segment: SegmentOptions,
    /// Replace a segment of this name whose creator and ends are all proven dead or have left.
    pub replace_stale: bool,
}

/// What the first words of a page say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// Term length or capacity in bytes; for the fixed ring, items.
    pub(crate) length: u32,
    pub(crate) item_length: u32,
    pub(crate) slot_count: u32,
}

/// One kind of segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) magic: u64,
    pub(crate) version: u32,
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    /// Bytes behind the page: owner slots and buffer. Refuses metadata that this kind does not allow.
    pub(crate) lengths: fn(Metadata) -> Result<(usize, usize), Error>,
    /// Offsets of the words that name who holds an end.
    pub(crate) owners: fn(Metadata) -> Vec<usize>,
}

/// A segment whose metadata were checked.
#[derive(Clone, Debug)]
pub(crate) struct PagedSegment {
    pub(crate) segment: Segment,
    pub(crate) metadata: Metadata,
    pub(crate) paged: Paged,
    kind: Kind,
}

impl PagedSegment {
    pub(crate) fn create(
        directory: &SegmentDirectory,
        name: &SegmentName,
        kind: Kind,
        metadata: Metadata,
        options: CreateOptions,
    ) -> Result<Self, Error> {
        let (slots_length, buffer_length) = (kind.lengths)(metadata)?;
        let length = PAGE_LENGTH + slots_length + buffer_length;
        let segment = Segment::unnamed(directory, name, length, options.segment)?;
        let bells = Some(BellPlace::new(directory, name));
        let paged = Paged { bells, ..Paged::split(&segment.region(), slots_length, buffer_length) };
        write(&paged, kind, metadata);
        match segment.give_name() {
            Err(Error::AlreadyExists { .. }) if options.replace_stale => replace(directory, name, kind, &segment)?,
            named => named?,
        }
        Ok(Self { segment, metadata, paged, kind })
    }

    pub(crate) fn open(
        directory: &SegmentDirectory,
        name: &SegmentName,
        kind: Kind,
        options: SegmentOptions,
    ) -> Result<Self, Error> {
        let judge = |head: &Head, length_bytes| judge(name, kind, head, length_bytes);
        let segment =
            Segment::open(directory, name, options, |head, length_bytes| judge(head, length_bytes).map(drop))?;
        // Again, from the memory that is used from now on: somebody may have written meanwhile.
        let (metadata, slots_length, buffer_length) = judge(&head(&segment), segment.length_bytes() as u64)?;
        let bells = Some(BellPlace::new(directory, name));
        let paged = Paged { bells, ..Paged::split(&segment.region(), slots_length, buffer_length) };
        Ok(Self { segment, metadata, paged, kind })
    }

    /// Removes the name, if it still leads here, and what hangs beside it.
    pub(crate) fn unlink(&self, wait: Duration) -> Result<bool, Error> {
        let was_named = self.segment.unlink(wait)?;
        if let (true, Some(bells)) = (was_named, &self.paged.bells) {
            bells.remove_all();
        }
        Ok(was_named)
    }

    /// The process that made the segment, where it said so.
    pub(crate) fn creator(&self) -> EndState {
        self.owner(page::CREATOR)
    }

    pub(crate) fn owner(&self, offset: usize) -> EndState {
        EndState::of(self.paged.page.word(offset).load(Ordering::Acquire))
    }

    pub(crate) fn word(&self, offset: usize) -> u64 {
        self.paged.page.word(offset).load(Ordering::Relaxed)
    }

    /// Nobody can use it any more: its creator is proven dead, and so is whoever held an end without leaving. Of those whose
    /// processes cannot be looked up, that is proven when nobody else has the segment open.
    pub(crate) fn is_stale(&self) -> bool {
        let creator = self.creator();
        let mut owners =
            (self.kind.owners)(self.metadata).into_iter().map(|offset| self.owner(offset)).chain([creator]);
        let may_be_dead = |owner: EndState| owner.is_free() || matches!(owner, EndState::Held(_, Liveness::Unknown));
        matches!(creator, EndState::Held(..))
            && owners.clone().all(may_be_dead)
            && (owners.all(EndState::is_free) || self.segment.is_ours_alone())
    }

    pub(crate) fn huge_pages(&self) -> &HugePages {
        self.segment.huge_pages()
    }
}

/// Gives a segment that is ready the name of a stale one. Whether it is stale is judged under the lock, and nothing else done there.
fn replace(directory: &SegmentDirectory, name: &SegmentName, kind: Kind, ready: &Segment) -> Result<(), Error> {
    let _lock = directory.lock(LOCK_WAIT)?;
    if is_stale(directory, name, kind) {
        directory.unlink(name)?;
    }
    ready.give_name().map_err(|error| match error {
        Error::AlreadyExists { name } => Error::NotStale { name, kind: kind.name },
        other => other,
    })
}

/// What cannot be opened is somebody else's matter, never stale.
fn is_stale(directory: &SegmentDirectory, name: &SegmentName, kind: Kind) -> bool {
    let options = SegmentOptions { pre_fault: false, huge_pages: false };
    PagedSegment::open(directory, name, kind, options).is_ok_and(|found| found.is_stale())
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn write(paged: &Paged, kind: Kind, metadata: Metadata) {
    let page = &paged.page;
    let epoch_ns = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_nanos() as u64);
    page.word(page::VERSION_AND_LENGTH).store(pair(kind.version, metadata.length), Ordering::Relaxed);
    page.word(page::KIND_AND_ITEM).store(pair(kind.number, metadata.item_length), Ordering::Relaxed);
    page.word(page::SLOTS).store(pair(metadata.slot_count, 0), Ordering::Relaxed);
    page.word(page::CREATOR).store(ProcessIdentity::current().word(), Ordering::Relaxed);
    page.word(page::EPOCH).store(epoch_ns, Ordering::Relaxed);
    // Last, with release: whoever sees the magic sees all the rest.
    page.word(page::MAGIC).store(kind.magic, Ordering::Release);
}

fn check_magic(name: &SegmentName, kind: Kind, magic: u64) -> Result<(), Error> {
    match magic {
        0 => Err(Error::NotReady { name: name.to_string() }),
        actual if actual == kind.magic => Ok(()),
        actual => Err(Error::InvalidChannel { name: name.to_string(), kind: kind.name, expected: kind.magic, actual }),
    }
}

/// The magic first, and with acquire: the rest was written before it.
fn head(segment: &Segment) -> Head {
    let region = segment.region();
    std::array::from_fn(|index| region.word(index * WORD).load(Ordering::Acquire))
}

/// What a page says, and the bytes of slots and buffer, where it is allowed and goes with the length of its file.
fn judge(name: &SegmentName, kind: Kind, head: &Head, length_bytes: u64) -> Result<(Metadata, usize, usize), Error> {
    let metadata = read(name, kind, head, length_bytes)?;
    let (slots_length, buffer_length) = (kind.lengths)(metadata)?;
    let expected = (PAGE_LENGTH + slots_length + buffer_length) as u64;
    if expected != length_bytes {
        return Err(Error::TermLengthMismatch { name: name.to_string(), expected, actual: length_bytes });
    }
    Ok((metadata, slots_length, buffer_length))
}

fn read(name: &SegmentName, kind: Kind, head: &Head, length_bytes: u64) -> Result<Metadata, Error> {
    let magic = head[page::MAGIC / WORD];
    check_magic(name, kind, magic)?;
    let name = name.to_string();
    if length_bytes < PAGE_LENGTH as u64 {
        return Err(Error::InvalidChannel { name, kind: kind.name, expected: kind.magic, actual: magic });
    }
    let split = |offset: usize| (head[offset / WORD] as u32, (head[offset / WORD] >> 32) as u32);
    let (version, length) = split(page::VERSION_AND_LENGTH);
    if version != kind.version {
        let hint = if version == 1 { " (the original layout, whose lengths leave out the header)" } else { "" };
        return Err(Error::UnsupportedVersion { name, expected: kind.version, actual: version, hint });
    }
    let (number, item_length) = split(page::KIND_AND_ITEM);
    if number != kind.number {
        return Err(Error::WrongKind { name, expected: kind.name, actual: number });
    }
    Ok(Metadata { length, item_length, slot_count: split(page::SLOTS).0 })
}
