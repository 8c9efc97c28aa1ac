//! A directory of segments.

use std::ffi::{c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr;

use relay_accel_core::memory::SegmentDirectory;

use crate::border::{CLOSED, Failure, OK, enter, number, retake, text};

/// What `ra_transport *` points to.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) directory: SegmentDirectory,
}

/// # Safety
/// As [`text`].
unsafe fn path_of(directory: *const c_char) -> Result<PathBuf, Failure> {
    if directory.is_null() {
        return Ok(SegmentDirectory::default_path());
    }
    // SAFETY: the caller's promise.
    unsafe { text(directory, "directory") }.map(PathBuf::from)
}

fn over(path: &Path) -> Result<*mut Transport, Failure> {
    let directory = SegmentDirectory::open(path)?;
    Ok(Box::into_raw(Box::new(Transport { directory })))
}

/// Opens a directory, after making it where it does not exist.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_transport_create(directory: *const c_char) -> *mut Transport {
    // SAFETY: the header asks for a text that ends.
    enter(|| over(&unsafe { path_of(directory) }?), |_| ptr::null_mut())
}

/// Opens a directory that exists.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_transport_open(directory: *const c_char) -> *mut Transport {
    let inside = || {
        // SAFETY: the header asks for a text that ends.
        let path = unsafe { path_of(directory) }?;
        if !path.exists() {
            let text = format!("directory {} does not exist; create it first", path.display());
            return Err(Failure::new(CLOSED, "NOT_FOUND", text));
        }
        over(&path)
    };
    enter(inside, |_| ptr::null_mut())
}

/// Lets go of it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ra_transport_destroy(transport: *mut *mut Transport) -> c_int {
    // SAFETY: the header asks for a variable that is null or came from this module.
    number(|| unsafe { retake(transport, "transport") }.map(|_| OK))
}
