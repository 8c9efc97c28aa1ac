//! Sleeping in a poller: a descriptor that becomes readable when there is something to read.
//!
//! A reader that sits in `epoll`, asyncio or a poller of sockets cannot sleep on a futex. It makes a bell: a FIFO beside the
//! segment, named `.{segment}.bell-{n}`, and bit n + 1 of the waiter word. It arms the bit before it sleeps, as a futex sleeper does
//! (see [`super::waiter`]); a publisher that finds the bit set takes it and writes one byte into the FIFO. While nobody is armed a
//! publisher pays what it pays anyway: one load. A byte too many is a needless wake-up, never a lost one.
//!
//! A publisher without a descriptor to spare leaves the bit set, so that its next message rings. A reader whose FIFO was removed or
//! replaced under it is told so when it arms the bell, and sleeps briefly from then on.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::end::{End, EndState};
use super::page::{self, Paged};
use super::waiter::Waiter;
use crate::Error;
use crate::memory::{SegmentDirectory, SegmentName};
use crate::sync::Ordering;

/// Bells of one segment.
pub const BELL_COUNT: usize = 16;

/// Where a segment's bells hang.
#[derive(Clone, Debug)]
pub(crate) struct BellPlace {
    directory: SegmentDirectory,
    name: SegmentName,
}

impl BellPlace {
    pub(crate) fn new(directory: &SegmentDirectory, name: &SegmentName) -> Self {
        Self { directory: directory.clone(), name: name.clone() }
    }

    fn file(&self, number: usize) -> String {
        format!(".{}.bell-{number}", self.name)
    }

    fn open(&self, number: usize) -> Result<OwnedFd, Errno> {
        // For reading and writing, so that neither side waits for the other, nor is told by a signal that it is gone.
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(self.directory.fd(), self.file(number), flags, Mode::empty())
    }

    /// Publisher: one byte for each bit. A bell that is gone has nobody to wake, and a full one has woken him. Returns the bits
    /// whose bells are there and could not be rung now.
    pub(super) fn ring(&self, bits: u64) -> u64 {
        let mut unrung = 0;
        for number in 0..BELL_COUNT {
            let bit = bits & 1 << (number + 1);
            if bit == 0 {
                continue;
            }
            match self.open(number) {
                Ok(fd) => _ = rustix::io::write(&fd, &[1]),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR) => unrung |= bit,
                Err(_) => {}
            }
        }
        unrung
    }

    /// Whether a bell's name still leads to this FIFO.
    fn leads_to(&self, number: usize, fd: &OwnedFd) -> bool {
        let named = rustix::fs::statat(self.directory.fd(), self.file(number), AtFlags::SYMLINK_NOFOLLOW);
        let own = rustix::fs::fstat(fd);
        matches!((own, named), (Ok(own), Ok(named)) if (own.st_ino, own.st_dev) == (named.st_ino, named.st_dev))
    }

    /// Removes what bells of the dead left.
    pub(crate) fn remove_all(&self) {
        for number in 0..BELL_COUNT {
            self.remove(number);
        }
    }

    fn remove(&self, number: usize) {
        let _ = rustix::fs::unlinkat(self.directory.fd(), self.file(number), AtFlags::empty());
    }
}

/// What arming a bell came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    /// There is something to read now: do not sleep.
    Ready,
    /// The descriptor becomes readable when there is.
    Sleep,
    /// The same, but a publisher in another process may miss it, or the FIFO is gone: sleep for a millisecond at most.
    SleepBriefly,
}

/// A reader's bell; dropping it takes it down.
#[derive(Debug)]
pub struct Bell {
    place: BellPlace,
    number: usize,
    fd: OwnedFd,
    waiter: Waiter,
    end: End,
}

impl Bell {
    /// Hangs a bell up for the readers of a segment.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the ring has no name; [`Error::NoFreeSlot`] when all bells are taken; [`Error::System`].
    pub(crate) fn hang(paged: &Paged) -> Result<Self, Error> {
        let Some(place) = paged.bells.clone() else {
            let expected = "a ring with a name (threads wait for one on the heap)";
            return Err(Error::InvalidArgument { what: "bell", expected, actual: 0 });
        };
        for number in 0..BELL_COUNT {
            let offset = page::BELL_OWNERS + number * 8;
            let found = paged.page.word(offset).load(Ordering::Acquire);
            if !EndState::of(found).is_free() {
                continue;
            }
            let Some(end) = End::swap(&paged.page, offset, found) else { continue };
            place.remove(number);
            let mode = Mode::RUSR | Mode::WUSR;
            rustix::fs::mknodat(place.directory.fd(), place.file(number), FileType::Fifo, mode, 0)
                .map_err(|error| Error::system(format!("make a bell of segment {}", place.name), error))?;
            let fd = place
                .open(number)
                .map_err(|error| Error::system(format!("open a bell of segment {}", place.name), error))?;
            let waiter = Waiter::new(&paged.page, page::CONSUMER_WAITER);
            return Ok(Self { place, number, fd, waiter, end });
        }
        Err(Error::NoFreeSlot { count: BELL_COUNT })
    }

    /// Says that the reader will sleep, and looks once more.
    pub fn arm(&self, mut is_ready: impl FnMut() -> bool) -> Armed {
        if is_ready() {
            return Armed::Ready;
        }
        let fenced = self.waiter.announce_bit(self.number + 1);
        let is_heard = fenced && self.place.leads_to(self.number, &self.fd);
        match (is_ready(), is_heard) {
            (true, _) => Armed::Ready,
            (false, true) => Armed::Sleep,
            (false, false) => Armed::SleepBriefly,
        }
    }

    /// Takes the bytes that woke the reader.
    pub fn drain(&self) {
        let mut bytes = [0; 64];
        while rustix::io::read(&self.fd, &mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // Under the same name another reader of a later segment may have hung up its own.
        if self.end.is_ours() && self.place.leads_to(self.number, &self.fd) {
            self.place.remove(self.number);
        }
    }
}
