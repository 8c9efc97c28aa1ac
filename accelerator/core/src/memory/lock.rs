//! The lock of a directory: held for one change of several steps, waited for with a bound.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::fs::{FlockOperation, Mode, OFlags, major, minor};
use rustix::io::Errno;

use super::SegmentDirectory;
use crate::Error;

/// How long a change waits for others where nothing else is said. Each holds the lock for a few system calls.
pub const LOCK_WAIT: Duration = Duration::from_secs(1);
const FILE: &str = ".lock";
const PAUSE: Duration = Duration::from_millis(1);
/// Fields of a line of /proc/locks, as in `1: FLOCK ADVISORY WRITE 4711 00:1b:42 0 EOF`.
const KIND_FIELD: usize = 1;
const PROCESS_FIELD: usize = 4;
const FILE_FIELD: usize = 5;

/// Released when it is dropped, or when its process ends.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    fd: OwnedFd,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing would not do: a child that was forked meanwhile has the descriptor, and with it the lock, too.
        let _ = rustix::fs::flock(&self.fd, FlockOperation::Unlock);
    }
}

impl SegmentDirectory {
    /// Holds the directory against others that would change it. Waits for at most `wait`, as short sleeps.
    ///
    /// # Errors
    /// [`Error::LockBusy`] when the time is over; [`Error::System`].
    pub(crate) fn lock(&self, wait: Duration) -> Result<DirectoryLock, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(self.fd(), FILE, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| Error::system(format!("open the lock of {}", self.path().display()), error))?;
        let began = Instant::now();
        loop {
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(DirectoryLock { fd }),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if began.elapsed() < wait => thread::sleep(PAUSE.min(wait)),
                Err(Errno::WOULDBLOCK) => return Err(self.busy(&fd, wait)),
                Err(error) => return Err(Error::system(format!("lock {}", self.path().display()), error)),
            }
        }
    }

    fn busy(&self, fd: &OwnedFd, wait: Duration) -> Error {
        let holder = holder(fd).map_or_else(|| "a process that cannot be told".into(), |pid| format!("process {pid}"));
        Error::LockBusy { path: self.path().join(FILE), holder, wait_ms: wait.as_millis() }
    }
}

/// The process that took the lock of a file, where this kernel tells it.
fn holder(fd: &OwnedFd) -> Option<u32> {
    let stat = rustix::fs::fstat(fd).ok()?;
    let file = format!("{:02x}:{:02x}:{}", major(stat.st_dev), minor(stat.st_dev), stat.st_ino);
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| taken_by(line, &file))
}

fn taken_by(line: &str, file: &str) -> Option<u32> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let is_it = fields.get(KIND_FIELD) == Some(&"FLOCK") && fields.get(FILE_FIELD) == Some(&file);
    // Of another pid namespace the number is 0.
    fields.get(PROCESS_FIELD).filter(|_| is_it)?.parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::Code;

    fn directory(name: &str) -> (PathBuf, SegmentDirectory) {
        let path = PathBuf::from(format!("/dev/shm/relay-accel-lock-{name}-{}", std::process::id()));
        (path.clone(), SegmentDirectory::open(path).unwrap())
    }

    #[test]
    fn a_lock_that_is_held_is_refused_when_the_time_is_over_and_had_when_it_is_free() {
        let (path, directory) = directory("held");
        let held = directory.lock(Duration::ZERO).unwrap();
        let refused = directory.lock(Duration::from_millis(3)).unwrap_err();
        drop(held);
        let again = directory.lock(Duration::ZERO);
        fs::remove_dir_all(path).unwrap();
        assert_eq!(refused.code(), Code::LockBusy);
        assert!(refused.to_string().contains(".lock: held for over 3 ms by "), "{refused}");
        again.unwrap();
    }

    #[test]
    fn a_copy_of_the_descriptor_as_a_fork_makes_it_does_not_keep_the_lock() {
        let (path, directory) = directory("fork");
        let held = directory.lock(Duration::ZERO).unwrap();
        let inherited = held.fd.try_clone().unwrap();
        drop(held);
        let again = directory.lock(Duration::ZERO);
        fs::remove_dir_all(path).unwrap();
        again.unwrap();
        drop(inherited);
    }

    #[test]
    fn the_holder_is_read_from_the_lines_of_this_file_alone() {
        let file = "00:1b:42";
        assert_eq!(taken_by("1: FLOCK  ADVISORY  WRITE 4711 00:1b:42 0 EOF", file), Some(4711));
        for other in [
            "1: FLOCK  ADVISORY  WRITE 4711 00:1b:421 0 EOF",
            "1: POSIX  ADVISORY  WRITE 4711 00:1b:42 0 EOF",
            "1: -> FLOCK  ADVISORY  WRITE 4711 00:1b:42 0 EOF",
            "1: FLOCK  ADVISORY  WRITE 0 00:1b:42 0 EOF",
            "1: FLOCK",
            "",
        ] {
            assert_eq!(taken_by(other, file), None, "{other}");
        }
    }
}
