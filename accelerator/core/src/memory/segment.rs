//! Named files of shared memory: made whole, opened with suspicion.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::directory::{check_owner, denied};
use super::mapping::{HugePages, Mapping};
use super::words::WORD;
use super::{Region, SegmentDirectory, SegmentName};
use crate::Error;

/// Largest segment: three terms of 1 GiB and their page, rounded up.
const LENGTH_MAX: usize = 4 << 30;

/// Words of [`Head`].
const HEAD_WORDS: usize = 4;
/// The first words of a segment, by which it is judged before it is mapped.
pub type Head = [u64; HEAD_WORDS];

/// How a segment is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentOptions {
    /// Touch every page at once, so that no message pays for a page fault.
    pub pre_fault: bool,
    /// Ask for huge pages; [`Segment::huge_pages`] says what came of it.
    pub huge_pages: bool,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self { pre_fault: true, huge_pages: false }
    }
}

/// A mapped segment.
#[derive(Clone, Debug)]
pub struct Segment {
    directory: SegmentDirectory,
    name: SegmentName,
    fd: Arc<OwnedFd>,
    mapping: Arc<Mapping>,
}

impl Segment {
    /// Makes a zeroed segment, lets `initialise` write its metadata, and only then gives it its name. A process that dies in
    /// between leaves nothing behind, and no opener sees a half-made one.
    ///
    /// # Errors
    /// As [`Segment::unnamed`] and [`Segment::give_name`].
    pub fn create(
        directory: &SegmentDirectory,
        name: &SegmentName,
        length_bytes: usize,
        options: SegmentOptions,
        initialise: impl FnOnce(&Region),
    ) -> Result<Self, Error> {
        let segment = Self::unnamed(directory, name, length_bytes, options)?;
        initialise(&segment.region());
        segment.give_name()?;
        Ok(segment)
    }

    /// Makes a zeroed segment that nobody else sees. This is what takes time: no lock is needed for it.
    ///
    /// # Errors
    /// [`Error::NoSpace`] (the memory is taken here, so a full file system is never a
    /// SIGBUS later), [`Error::InvalidArgument`] on the length, [`Error::System`].
    pub(crate) fn unnamed(
        directory: &SegmentDirectory,
        name: &SegmentName,
        length_bytes: usize,
        options: SegmentOptions,
    ) -> Result<Self, Error> {
        if length_bytes == 0 || length_bytes > LENGTH_MAX || !length_bytes.is_multiple_of(WORD) {
            let expected = "a multiple of 8 up to 4 GiB";
            return Err(Error::InvalidArgument { what: "segment length", expected, actual: length_bytes as u64 });
        }
        let fd = unnamed_file(directory)?;
        allocate(&fd, directory, length_bytes)?;
        Self::map(directory, name, fd, length_bytes, options)
    }

    /// Lets others see it.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::System`].
    pub(crate) fn give_name(&self) -> Result<(), Error> {
        let (fd, name) = (std::os::fd::AsRawFd::as_raw_fd(&*self.fd), &self.name);
        // Linking an unnamed file needs its /proc name: the direct way asks for a privilege.
        let source = format!("/proc/self/fd/{fd}");
        let (from, to) = (rustix::fs::CWD, self.directory.fd());
        match rustix::fs::linkat(from, source, to, name.as_ref(), AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(Error::AlreadyExists { name: name.to_string() }),
            Err(error) => Err(Error::system(format!("name segment {name}"), error)),
        }
    }

    /// Maps a segment that exists, at the length of its file. `accept` judges its first words and that length (bytes) before any
    /// memory is taken for it: a file with holes that is foreign, or longer than it should be, is not filled.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::AccessDenied`] (a link, no plain file, another's), [`Error::InvalidArgument`] on its length,
    /// [`Error::System`], and what `accept` says.
    pub fn open(
        directory: &SegmentDirectory,
        name: &SegmentName,
        options: SegmentOptions,
        accept: impl FnOnce(&Head, u64) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let path = directory.path().join(name.as_str());
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd =
            rustix::fs::openat(directory.fd(), name.as_ref(), flags, Mode::empty()).map_err(|error| match error {
                Errno::NOENT => Error::NotFound { name: name.to_string(), directory: directory.path().to_owned() },
                Errno::LOOP => denied(&path, "a plain file", "a link".into()),
                error => Error::system(format!("open segment {name}"), error),
            })?;
        let stat = check_owner(&fd, &path)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(denied(&path, "a plain file", "something else".into()));
        }
        let length_bytes = usize::try_from(stat.st_size).unwrap_or(0);
        if !(WORD..=LENGTH_MAX).contains(&length_bytes) {
            let expected = "8 bytes to 4 GiB";
            return Err(Error::InvalidArgument { what: "segment length", expected, actual: length_bytes as u64 });
        }
        let head = read_head(&fd).map_err(|error| Error::system(format!("read segment {name}"), error))?;
        accept(&head, length_bytes as u64)?;
        // A sparse file would be filled while it is written, and fail by SIGBUS where there is no room: fill it now.
        allocate(&fd, directory, length_bytes)?;
        Self::map(directory, name, fd, length_bytes, options)
    }

    fn map(
        directory: &SegmentDirectory,
        name: &SegmentName,
        fd: OwnedFd,
        length_bytes: usize,
        options: SegmentOptions,
    ) -> Result<Self, Error> {
        let mapping = Arc::new(Mapping::new(&fd, length_bytes, options)?);
        // A sign of life that ends with the process wherever it runs. Where the file system has none, nothing is proven by it.
        let _ = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockShared);
        Ok(Self { directory: directory.clone(), name: name.clone(), fd: Arc::new(fd), mapping })
    }

    /// Its memory, whole words of it.
    #[must_use]
    pub fn region(&self) -> Region {
        let owner: Arc<Mapping> = Arc::clone(&self.mapping);
        // SAFETY: the mapping is page-aligned, has this many words, and is unmapped only when `owner` is dropped.
        unsafe { Region::from_raw(self.mapping.first().cast(), self.mapping.length_bytes() / WORD, owner) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &SegmentName {
        &self.name
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.path().join(self.name.as_str())
    }

    /// Bytes mapped.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        self.mapping.length_bytes()
    }

    /// Whether huge pages were had.
    #[must_use]
    pub fn huge_pages(&self) -> &HugePages {
        &self.mapping.huge_pages
    }

    /// Looks whether the file is still as long as what is mapped.
    ///
    /// # Errors
    /// [`Error::TermLengthMismatch`] if somebody cut it: stop using it, an access behind its end is a SIGBUS.
    pub fn verify_length(&self) -> Result<(), Error> {
        let stat = rustix::fs::fstat(&*self.fd).map_err(|error| Error::system("stat the segment", error))?;
        let expected = self.mapping.length_bytes() as u64;
        let actual = u64::try_from(stat.st_size).unwrap_or(0);
        if actual >= expected {
            return Ok(());
        }
        Err(Error::TermLengthMismatch { name: self.name.to_string(), expected, actual })
    }

    /// Whether it is proven that nobody else has this segment open: no other process, and nothing else in this one.
    ///
    /// Ask on a handle that nothing else relies on: to change a lock is to give it up first, so for a moment this handle
    /// counts as nobody's.
    #[must_use]
    pub fn is_ours_alone(&self) -> bool {
        let is_alone = rustix::fs::flock(&*self.fd, FlockOperation::NonBlockingLockExclusive).is_ok();
        // Changing a lock gives it up first, so that a failed change may have lost it.
        let _ = rustix::fs::flock(&*self.fd, FlockOperation::NonBlockingLockShared);
        is_alone
    }

    /// Whether the name still leads to this very file: it may have been unlinked or replaced.
    #[must_use]
    pub fn is_named(&self) -> bool {
        let own = rustix::fs::fstat(&*self.fd);
        let named = rustix::fs::statat(self.directory.fd(), self.name.as_ref(), AtFlags::SYMLINK_NOFOLLOW);
        matches!((own, named), (Ok(own), Ok(named)) if (own.st_ino, own.st_dev) == (named.st_ino, named.st_dev))
    }

    /// Removes the name if it still leads here; mappings stay. Returns whether it did. Waits for others that change the directory,
    /// for at most so long.
    ///
    /// # Errors
    /// [`Error::LockBusy`]: the name stays. [`Error::System`].
    pub fn unlink(&self, wait: Duration) -> Result<bool, Error> {
        let _lock = self.directory.lock(wait)?;
        if self.is_named() { self.directory.unlink(&self.name) } else { Ok(false) }
    }
}

/// The first words of a file; zeros where it ends before.
fn read_head(fd: &OwnedFd) -> Result<Head, Errno> {
    let mut bytes = [[0; WORD]; HEAD_WORDS];
    rustix::io::pread(fd, bytes.as_flattened_mut(), 0)?;
    Ok(bytes.map(u64::from_le_bytes))
}

fn unnamed_file(directory: &SegmentDirectory) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    rustix::fs::openat(directory.fd(), ".", flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
        Error::system(
            format!("make a file in {} (it must be a tmpfs or a common disk file system)", directory.path().display()),
            error,
        )
    })
}

/// Takes all blocks of the file now.
fn allocate(fd: &OwnedFd, directory: &SegmentDirectory, length_bytes: usize) -> Result<(), Error> {
    loop {
        match rustix::fs::fallocate(fd, FallocateFlags::empty(), 0, length_bytes as u64) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::NOSPC | Errno::FBIG | Errno::DQUOT | Errno::NOMEM) => {
                return Err(Error::NoSpace { path: directory.path().to_owned(), length_bytes: length_bytes as u64 });
            }
            Err(error) => return Err(Error::system(format!("allocate {length_bytes} bytes of shared memory"), error)),
        }
    }
}
