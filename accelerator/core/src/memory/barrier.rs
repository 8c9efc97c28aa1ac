//! The fence between "I published" and "is anybody asleep?", paid by the one who sleeps.
//!
//! A producer stores a position and then loads the waiter word; a sleeper stores the waiter word and then loads the position.
//! Without a full fence on both sides each may miss the other, and the sleeper sleeps on data. A full fence a message costs a
//! producer more than the message. So the producer's side is only a *compiler* fence, and the sleeper runs one
//! on the producer's behalf: `membarrier(GLOBAL_EXPEDITED)` interrupts every processor that runs a registered process. Each process
//! registers when it makes its first end. Where it cannot (an old kernel, a seccomp filter), its `light` is a full fence.

#[cfg(not(loom))]
mod real {
    use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

    use rustix::thread::{MembarrierCommand, membarrier};

    static REGISTERED: AtomicBool = AtomicBool::new(false);

    /// Registers this process for the fences of sleepers in others. Cheap, and may be repeated.
    pub(crate) fn register() {
        let registered = membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok();
        REGISTERED.store(registered, Ordering::Relaxed);
    }

    /// The publisher's side: no instruction at all where the process is registered.
    #[inline]
    pub(crate) fn light() {
        if REGISTERED.load(Ordering::Relaxed) { compiler_fence(Ordering::SeqCst) } else { fence(Ordering::SeqCst) }
    }

    /// The sleeper's side. Returns false where it could not reach the publishers: sleep briefly then.
    #[must_use]
    pub(crate) fn heavy() -> bool {
        fence(Ordering::SeqCst);
        membarrier(MembarrierCommand::GlobalExpedited).is_ok()
    }
}

/// Inside a model both sides are the full fence that the pair amounts to.
#[cfg(loom)]
mod real {
    use crate::sync::{Ordering, fence};

    pub(crate) fn register() {}

    pub(crate) fn light() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn heavy() -> bool {
        fence(Ordering::SeqCst);
        true
    }
}

pub(crate) use real::{heavy, light, register};
