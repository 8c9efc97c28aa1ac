//! What tests share: a directory of their own that goes away, waiting with a deadline.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use relay_accel_core::memory::{SegmentDirectory, SegmentName};

/// A segment directory that is removed at the end of the test.
pub struct Scratch {
    directory: SegmentDirectory,
    path: PathBuf,
}

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/dev/shm/relay-accel-test-{}-{number}", std::process::id()));
        Self { directory: SegmentDirectory::open(&path).unwrap(), path }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Deref for Scratch {
    type Target = SegmentDirectory;

    fn deref(&self) -> &SegmentDirectory {
        &self.directory
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

pub fn named(name: &str) -> SegmentName {
    SegmentName::new(name).unwrap()
}

/// Waits until something is there.
pub fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited 30 s for {what}");
        std::thread::yield_now();
    }
}

/// A payload that tells its number and whether it is whole.
pub fn payload(number: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number.wrapping_mul(31).wrapping_add(at as u64)) as u8).collect()
}
