//! Where named segments live: a directory of one user, names without ways out of it.

use std::ffi::OsStr;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::Error;

/// Longest name, in bytes.
pub(super) const NAME_LENGTH_MAX: usize = 128;

/// A checked name: 1 to 128 of `a-z 0-9 . _ -`, the first no dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentName(String);

impl SegmentName {
    /// Checks a name.
    ///
    /// # Errors
    /// [`Error::InvalidName`].
    pub fn new(name: &str) -> Result<Self, Error> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let good =
            !name.is_empty() && name.len() <= NAME_LENGTH_MAX && !name.starts_with('.') && name.bytes().all(allowed);
        if good {
            Ok(Self(name.to_owned()))
        } else {
            Err(Error::InvalidName { name: name.chars().take(200).collect() })
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<OsStr> for SegmentName {
    fn as_ref(&self) -> &OsStr {
        self.0.as_ref()
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An open directory for segments. It belongs to this user, and nobody else may enter it.
#[derive(Clone, Debug)]
pub struct SegmentDirectory {
    path: PathBuf,
    fd: Arc<OwnedFd>,
}

impl SegmentDirectory {
    /// `/dev/shm/market-relay-{uid}`: memory, apart from other users' segments.
    #[must_use]
    pub fn default_path() -> PathBuf {
        PathBuf::from(format!("/dev/shm/market-relay-{}", rustix::process::geteuid().as_raw()))
    }

    /// Opens the directory, after making it (0700) where it does not exist.
    ///
    /// # Errors
    /// [`Error::AccessDenied`] if it is a link, another user's, or open to others; [`Error::System`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(Error::system(format!("make directory {}", path.display()), error)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => denied(&path, "a directory and no link", "something else".into()),
            error => Error::system(format!("open directory {}", path.display()), error),
        })?;
        check_owner(&fd, &path)?;
        Ok(Self { path, fd: Arc::new(fd) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of what is there, sorted; files with other names are left out.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn names(&self) -> Result<Vec<SegmentName>, Error> {
        let entries = std::fs::read_dir(&self.path)
            .map_err(|error| Error::system(format!("list {}", self.path.display()), error))?;
        let mut names: Vec<SegmentName> =
            entries.filter_map(|entry| SegmentName::new(entry.ok()?.file_name().to_str()?).ok()).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    }

    /// Removes a name; whoever has the segment mapped keeps it. Returns false where there was none.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn unlink(&self, name: &SegmentName) -> Result<bool, Error> {
        match rustix::fs::unlinkat(&*self.fd, name.as_ref(), AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(Error::system(format!("unlink segment {name}"), error)),
        }
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }
}

/// Refuses what another user owns or may enter.
pub(super) fn check_owner(fd: &impl AsFd, path: &Path) -> Result<rustix::fs::Stat, Error> {
    let stat = rustix::fs::fstat(fd).map_err(|error| Error::system(format!("stat {}", path.display()), error))?;
    let own = rustix::process::geteuid().as_raw();
    if stat.st_uid != own {
        return Err(denied(path, "a file of this user", format!("owner {} (this is {own})", stat.st_uid)));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(denied(path, "no permission for others", format!("mode {:04o}", stat.st_mode & 0o7777)));
    }
    Ok(stat)
}

pub(super) fn denied(path: &Path, expected: &'static str, actual: String) -> Error {
    Error::AccessDenied { path: path.to_owned(), expected, actual }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_way_out_are_refused() {
        for name in ["", ".", "..", "../x", "a/b", "A", "a b", "a\0b", "ü", ".hidden", &"x".repeat(129)] {
            assert!(SegmentName::new(name).is_err(), "{name:?}");
        }
        for name in ["a", "btc-usdt.ticks_0", &"x".repeat(128)] {
            assert_eq!(SegmentName::new(name).unwrap().as_str(), name);
        }
    }
}
