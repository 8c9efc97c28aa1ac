//! A mapped file: advice, pre-faulting, and unmapping when the last region is gone.

use std::fs;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::Error;
use crate::memory::SegmentOptions;

/// Whether large pages were had, and if not, why. Always an answer, never an error: the segment works either way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// They were not asked for.
    NotAsked,
    /// The kernel was advised and gives them to this file system; `mapped_bytes` were mapped so when asked.
    Advised {
        /// Bytes of the mapping in huge pages, from /proc/self/smaps.
        mapped_bytes: u64,
    },
    /// Ordinary pages, for this reason.
    Unavailable {
        /// What to change.
        reason: String,
    },
}

const SHMEM_ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// Pages of a file, shared with all who map it.
#[derive(Debug)]
pub(super) struct Mapping {
    first: NonNull<u8>,
    length_bytes: usize,
    pub(super) huge_pages: HugePages,
}

// SAFETY: a mapping is an address range of the whole process; unmapping it from another thread is allowed.
unsafe impl Send for Mapping {}
// SAFETY: it has no operation through a shared reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(super) fn new(fd: impl AsFd, length_bytes: usize, options: SegmentOptions) -> Result<Self, Error> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let first = unsafe {
            rustix::mm::mmap(ptr::null_mut(), length_bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)
        }
        .map_err(|error| Error::system(format!("map {length_bytes} bytes"), error))?;
        let first = NonNull::new(first.cast()).expect("the kernel maps nothing at address 0 unasked");
        let mut mapping = Self { first, length_bytes, huge_pages: HugePages::NotAsked };
        if options.huge_pages {
            mapping.huge_pages = mapping.advise_huge_pages();
        }
        if options.pre_fault {
            mapping.pre_fault();
        }
        if let HugePages::Advised { .. } = mapping.huge_pages {
            mapping.huge_pages = mapping.huge_pages_mapped();
        }
        Ok(mapping)
    }

    pub(super) fn first(&self) -> NonNull<u8> {
        self.first
    }

    pub(super) fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    fn advise(&self, advice: Advice) -> Result<(), rustix::io::Errno> {
        // SAFETY: the range is this mapping; the advice used here never changes its contents.
        unsafe { rustix::mm::madvise(self.first.as_ptr().cast(), self.length_bytes, advice) }
    }

    /// Makes every page present now, so that the first messages do not pay for it. What fails here faults later.
    fn pre_fault(&self) {
        // Kernels before 5.14 do not know the advice; the pages are then taken when they are first used.
        let _ = self.advise(Advice::LinuxPopulateWrite);
    }

    fn advise_huge_pages(&self) -> HugePages {
        let enabled = fs::read_to_string(SHMEM_ENABLED).unwrap_or_default();
        if !["[always]", "[advise]", "[within_size]", "[force]"].iter().any(|word| enabled.contains(word)) {
            return HugePages::Unavailable {
                reason: format!("{SHMEM_ENABLED} is {:?}: set it to advise", enabled.trim()),
            };
        }
        match self.advise(Advice::LinuxHugepage) {
            Ok(()) => HugePages::Advised { mapped_bytes: 0 },
            Err(error) => HugePages::Unavailable { reason: format!("madvise: {error}") },
        }
    }

    fn huge_pages_mapped(&self) -> HugePages {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let start = format!("{:x}-", self.first.as_ptr() as usize);
        let line = maps
            .lines()
            .skip_while(|line| !line.starts_with(&start))
            .find(|line| line.starts_with("ShmemPmdMapped:") || line.starts_with("FilePmdMapped:"));
        let kib: u64 = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0);
        HugePages::Advised { mapped_bytes: kib * 1024 }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: regions hold the mapping by reference count, so nobody has a pointer into it any more.
        // Unmapping what was mapped does not fail.
        let _ = unsafe { rustix::mm::munmap(self.first.as_ptr().cast(), self.length_bytes) };
    }
}
