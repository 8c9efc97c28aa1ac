//! One end of a ring: held by one owner at a time, given back when it is dropped, taken over from the dead.

use crate::Error;
use crate::memory::process::{Liveness, ProcessIdentity, count_forks, forks};
use crate::memory::{Region, SharedWord, barrier};
use crate::sync::Ordering;

/// The owner word of an end that was given back.
const LEFT: u64 = 1;
/// The beat lies behind its owner word.
#[cfg(not(loom))]
const BEAT: usize = 8;

/// Who holds an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// Nobody has held it yet.
    Vacant,
    /// Its last owner gave it back.
    Left,
    /// A process holds it.
    Held(ProcessIdentity, Liveness),
}

impl EndState {
    pub(crate) fn of(word: u64) -> Self {
        match ProcessIdentity::from_word(word) {
            Some(identity) => Self::Held(identity, identity.liveness()),
            None if word == 0 => Self::Vacant,
            None => Self::Left,
        }
    }

    /// Whether another may take it: vacant, left, or its owner is proven dead.
    #[must_use]
    pub fn is_free(self) -> bool {
        matches!(self, Self::Vacant | Self::Left | Self::Held(_, Liveness::Dead))
    }
}

/// An owner word that holds our identity.
#[derive(Debug)]
pub(crate) struct End {
    word: SharedWord,
    #[cfg(not(loom))]
    beat: SharedWord,
    identity: u64,
    forks: u32,
    is_held: bool,
}

impl End {
    /// Takes the end whose owner word lies at `offset` of the page.
    pub(crate) fn take(page: &Region, offset: usize, role: &'static str) -> Result<Self, Error> {
        let word = page.word(offset);
        loop {
            let found = word.load(Ordering::Acquire);
            if let EndState::Held(owner, liveness @ (Liveness::Alive | Liveness::Unknown)) = EndState::of(found) {
                let state = if liveness == Liveness::Alive { "is alive" } else { "cannot be proven dead" };
                return Err(Error::EndTaken { end: role, pid: owner.pid(), state });
            }
            if let Some(end) = Self::swap(page, offset, found) {
                return Ok(end);
            }
        }
    }

    /// Takes the word if it still says `found`.
    pub(crate) fn swap(page: &Region, offset: usize, found: u64) -> Option<Self> {
        let word = page.word(offset);
        barrier::register();
        let identity = ProcessIdentity::current().word();
        // Acquire: pairs with the release of the owner that left, so that its positions are seen.
        word.compare_exchange(found, identity, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        Some(Self {
            word,
            #[cfg(not(loom))]
            beat: page.word(offset + BEAT),
            identity,
            forks: count_forks(),
            is_held: true,
        })
    }

    /// Stores the time of a sign of life.
    #[cfg(not(loom))]
    pub(crate) fn beat(&self, now_ns: u64) {
        self.beat.store(now_ns, Ordering::Relaxed);
    }

    /// Makes the owner look like a process that ended. Its pid is odd, which is dead inside a model.
    #[cfg(test)]
    pub(crate) fn bury(&self) {
        let namespace = self.identity >> 42;
        self.word.store(ProcessIdentity::new(u32::MAX >> 10, 1, namespace).word(), Ordering::Release);
    }

    /// False in a forked child, where the end belongs to the parent.
    #[inline]
    pub(crate) fn is_ours(&self) -> bool {
        self.forks == forks()
    }
}

impl End {
    /// Gives the end back, once. Returns whether it was ours to give: in a forked child it is the parent's.
    pub(crate) fn leave(&mut self) -> bool {
        // Not twice: another end of this process, with the same identity, may hold the word by then.
        if !self.is_ours() || !std::mem::take(&mut self.is_held) {
            return false;
        }
        // Fails only where somebody overwrote the word; it is not ours to give back then.
        self.word.compare_exchange(self.identity, LEFT, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Reads the peer's owner word.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    word: SharedWord,
}

impl Peer {
    pub(crate) fn new(page: &Region, offset: usize) -> Self {
        Self { word: page.word(offset) }
    }

    pub(crate) fn has_left(&self) -> bool {
        self.word.load(Ordering::Acquire) == LEFT
    }

    pub(crate) fn state(&self) -> EndState {
        EndState::of(self.word.load(Ordering::Acquire))
    }
}
