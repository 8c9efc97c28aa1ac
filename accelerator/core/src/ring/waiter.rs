//! Sleeping until the other side has done something, at next to no cost for the side that is awake.
//!
//! A waiter word is 0 while nobody sleeps. A sleeper sets its bit, runs the heavy fence, looks once more, and sleeps. A publisher
//! stores its position, passes the light fence, and loads the word: that load is all it pays while nobody sleeps.
//!
//! | sleeper | publisher |
//! |---|---|
//! | waiter \|= SLEEPING | position = new (release) |
//! | heavy fence | light fence |
//! | position? | waiter? |
//!
//! Bit 0 is a sleeper in the kernel, the bits above are bells ([`super::bell`]).
//!
//! With both fences one of the two last loads sees the other's store (`models/waiter.rs` tries every order).

#[cfg(not(loom))]
use std::sync::atomic::AtomicU32;
#[cfg(not(loom))]
use std::time::Duration;

#[cfg(not(loom))]
use super::bell::BellPlace;
use super::page::{self, Paged};
use crate::memory::{Region, SharedWord, barrier};
use crate::sync::Ordering;

/// Somebody sleeps in the kernel on the lower half of the word.
const SLEEPING: u64 = 1;
/// Longest sleep where the fence of sleepers does not reach the publishers.
#[cfg(not(loom))]
const UNFENCED_SLEEP_MAX: Duration = Duration::from_millis(1);

/// One waiter word of a page.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    word: SharedWord,
    #[cfg(not(loom))]
    bells: Option<BellPlace>,
}

impl Waiter {
    pub(crate) fn new(page: &Region, offset: usize) -> Self {
        Self {
            word: page.word(offset),
            #[cfg(not(loom))]
            bells: None,
        }
    }

    /// The word that a page's readers sleep on, as their publisher sees it: with their bells.
    pub(crate) fn of_readers(paged: &Paged) -> Self {
        Self {
            #[cfg(not(loom))]
            bells: paged.bells.clone(),
            ..Self::new(&paged.page, page::CONSUMER_WAITER)
        }
    }

    /// Publisher: wakes whoever sleeps, after a position was stored.
    #[inline]
    pub(crate) fn notify(&self) {
        barrier::light();
        if self.word.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    /// Sleeper: says that it will sleep. It must look once more for what it waits for before it does. The bit stays until the
    /// next publisher clears it: others may sleep on the same word. Returns false where a publisher may miss it.
    pub(crate) fn announce(&self) -> bool {
        self.announce_bit(0)
    }

    /// The same for the sleeper of another bit: a bell's.
    pub(crate) fn announce_bit(&self, bit: usize) -> bool {
        self.word.fetch_or(1 << bit, Ordering::Relaxed);
        barrier::heavy()
    }

    #[cold]
    fn wake(&self) {
        let bits = self.word.swap(0, Ordering::AcqRel);
        if bits & SLEEPING != 0 {
            self.wake_sleepers();
        }
        #[cfg(not(loom))]
        if let Some(bells) = &self.bells
            && bits > SLEEPING
        {
            let unrung = bells.ring(bits);
            if unrung != 0 {
                self.word.fetch_or(unrung, Ordering::Relaxed);
            }
        }
    }

    #[cfg(loom)]
    fn wake_sleepers(&self) {}

    #[cfg(loom)]
    pub(crate) fn is_announced(&self) -> bool {
        self.word.load(Ordering::Relaxed) & SLEEPING != 0
    }
}

#[cfg(not(loom))]
impl Waiter {
    /// Waits until `is_ready`, a wake-up (also a needless one) or the end of `timeout`. Returns what `is_ready` says last.
    pub(crate) fn wait(&self, timeout: Duration, mut is_ready: impl FnMut() -> bool) -> bool {
        if is_ready() {
            return true;
        }
        let fenced = self.announce();
        if !is_ready() {
            self.sleep(if fenced { timeout } else { timeout.min(UNFENCED_SLEEP_MAX) });
        }
        is_ready()
    }

    /// The lower half of the word, where the bits are.
    fn futex(&self) -> &AtomicU32 {
        // SAFETY: the word is aligned and stays mapped; only its address and its value at rest are used by the kernel.
        unsafe { AtomicU32::from_ptr(self.word.as_ptr().cast()) }
    }

    fn sleep(&self, timeout: Duration) {
        let limit = rustix::time::Timespec::try_from(timeout).ok();
        let expected = self.word.load(Ordering::Relaxed);
        if expected & SLEEPING != 0 {
            // Not private: the other side may be another process. Every error means "look again", which the caller does.
            let flags = rustix::thread::futex::Flags::empty();
            let _ = rustix::thread::futex::wait(self.futex(), flags, expected as u32, limit.as_ref());
        }
    }

    fn wake_sleepers(&self) {
        let flags = rustix::thread::futex::Flags::empty();
        let _ = rustix::thread::futex::wake(self.futex(), flags, i32::MAX as u32);
    }
}
