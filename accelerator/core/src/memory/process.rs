//! Who holds an end: process identity in one word, and whether it still lives.
//!
//! ```text
//! bit 0                 22                  42                 64
//!     +-----------------+-------------------+------------------+
//!     | pid             | start time, ticks | pid namespace    |
//!     +-----------------+-------------------+------------------+
//! ```
//!
//! One word, so that an end is taken by one compare-and-swap. The start time (modulo 2^20 ticks) makes a reused pid another process;
//! were it equal by chance, the dead would look alive, which is the harmless mistake. The namespace (its inode, modulo 2^22) keeps a
//! process in another container from being declared dead because its pid means nobody here.

#[cfg(not(loom))]
use std::fs;
#[cfg(not(loom))]
use std::os::unix::fs::MetadataExt;
#[cfg(not(loom))]
use std::sync::Once;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

const PID_BITS: u32 = 22;
const START_BITS: u32 = 20;
const NAMESPACE_BITS: u32 = 22;

/// A process, as one word. Never 0 or 1 (pid 0 does not exist), which mean "nobody" and "left".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIdentity(u64);

/// What is known about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs (or another with the same pid and start time does).
    Alive,
    /// Proven: no such process in this namespace, another one under its pid, or a zombie.
    Dead,
    /// It lives in another pid namespace, or /proc cannot be read.
    Unknown,
}

impl ProcessIdentity {
    /// Packs the three parts; each is cut to its bits.
    #[must_use]
    pub fn new(pid: u32, start_ticks: u64, namespace: u64) -> Self {
        let cut = |value: u64, bits: u32| value & ((1 << bits) - 1);
        Self(
            cut(u64::from(pid), PID_BITS)
                | cut(start_ticks, START_BITS) << PID_BITS
                | cut(namespace, NAMESPACE_BITS) << (PID_BITS + START_BITS),
        )
    }

    /// Reads what stands in a page; `None` for a word that names no process.
    #[must_use]
    pub fn from_word(word: u64) -> Option<Self> {
        let identity = Self(word);
        (identity.pid() > 1 || word >> PID_BITS != 0).then_some(identity)
    }

    /// The word for a page.
    #[must_use]
    pub fn word(self) -> u64 {
        self.0
    }

    /// Process id in its own namespace.
    #[must_use]
    pub fn pid(self) -> u32 {
        (self.0 & ((1 << PID_BITS) - 1)) as u32
    }

    #[cfg(not(loom))]
    fn namespace(self) -> u64 {
        self.0 >> (PID_BITS + START_BITS)
    }
}

#[cfg(not(loom))]
impl ProcessIdentity {
    /// This process.
    #[must_use]
    pub fn current() -> Self {
        let pid = std::process::id();
        let start_ticks = Stat::of(pid).map_or(0, |stat| stat.start_ticks);
        Self::new(pid, start_ticks, own_namespace())
    }

    /// Whether it lives, from /proc.
    #[must_use]
    pub fn liveness(self) -> Liveness {
        if self == Self::current() {
            return Liveness::Alive;
        }
        if own_namespace() == 0 || self.namespace() != Self::new(0, 0, own_namespace()).namespace() {
            return Liveness::Unknown;
        }
        match Stat::of(self.pid()) {
            Some(stat) if stat.is_gone() => Liveness::Dead,
            Some(stat) if Self::new(self.pid(), stat.start_ticks, own_namespace()) == self => Liveness::Alive,
            Some(_) => Liveness::Dead,
            None if fs::metadata(format!("/proc/{}", self.pid())).is_err()
                && fs::metadata("/proc/self/stat").is_ok() =>
            {
                Liveness::Dead
            }
            None => Liveness::Unknown,
        }
    }
}

/// Inode of this process's pid namespace, 0 where /proc does not tell.
#[cfg(not(loom))]
fn own_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

#[cfg(not(loom))]
struct Stat {
    state: char,
    threads: u64,
    start_ticks: u64,
}

#[cfg(not(loom))]
impl Stat {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The command name may hold anything, also brackets: fields begin behind the last one.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            state: fields.first()?.chars().next()?,
            threads: fields.get(17)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }

    /// A zombie whose threads are gone; a leader that ended before its other threads looks like one, but counts them.
    fn is_gone(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }
}

/// Counts the forks that led to this process, so that an end can tell that it was copied into a child.
#[cfg(not(loom))]
static FORKS: AtomicU32 = AtomicU32::new(0);

#[cfg(not(loom))]
extern "C" fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Forks since the first call. An end compares it with what it was at its birth.
#[cfg(not(loom))]
#[inline]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Begins to count forks. Called when an end is made.
#[cfg(not(loom))]
pub(crate) fn count_forks() -> u32 {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the handler only adds to an atomic, which is allowed in a child between fork and exec.
        // It fails only for lack of memory; forks are then not noticed, which is what happens without it.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    forks()
}

#[cfg(loom)]
impl ProcessIdentity {
    /// Inside a model every thread is one process, which lives.
    #[must_use]
    pub fn current() -> Self {
        Self::new(2, 1, 1)
    }

    /// Inside a model processes with an even pid live; odd ones are dead.
    #[must_use]
    pub fn liveness(self) -> Liveness {
        if self.pid() % 2 == 0 { Liveness::Alive } else { Liveness::Dead }
    }
}

#[cfg(loom)]
pub(crate) fn forks() -> u32 {
    0
}

#[cfg(loom)]
pub(crate) fn count_forks() -> u32 {
    0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::process::Command;

    use super::*;

    fn identity_of(pid: u32) -> ProcessIdentity {
        ProcessIdentity::new(pid, Stat::of(pid).unwrap().start_ticks, own_namespace())
    }

    #[test]
    fn this_process_is_alive_and_one_of_another_start_time_is_not() {
        let own = ProcessIdentity::current();
        assert_eq!(own.liveness(), Liveness::Alive);
        let earlier = ProcessIdentity::new(own.pid(), Stat::of(own.pid()).unwrap().start_ticks + 1, own_namespace());
        assert_eq!(earlier.liveness(), Liveness::Dead);
    }

    #[test]
    fn a_killed_child_is_dead_as_a_zombie_and_after_it_was_reaped() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let identity = identity_of(child.id());
        assert_eq!(identity.liveness(), Liveness::Alive);
        child.kill().unwrap();
        while identity.liveness() == Liveness::Alive {
            std::thread::yield_now();
        }
        assert_eq!(identity.liveness(), Liveness::Dead);
        child.wait().unwrap();
        assert_eq!(identity.liveness(), Liveness::Dead);
    }

    #[test]
    fn a_process_of_another_namespace_is_never_proven_dead() {
        let foreign = ProcessIdentity::new(4_000_000, 5, own_namespace() + 1);
        assert_eq!(foreign.liveness(), Liveness::Unknown);
    }

    #[test]
    fn words_that_name_no_process_are_none() {
        assert_eq!(ProcessIdentity::from_word(0), None);
        assert_eq!(ProcessIdentity::from_word(1), None);
        let own = ProcessIdentity::current();
        assert_eq!(ProcessIdentity::from_word(own.word()), Some(own));
    }
}
