//! What a loop does when it has nothing to do: how quickly it notices work against what it costs the machine.
//!
//! | strategy | notices work after | costs |
//! |---|---|---|
//! | [`BusySpin`] | nanoseconds | a whole processor |
//! | [`Yielding`] | about a microsecond | a whole processor that nobody else wants |
//! | [`Backoff`] | nanoseconds at first, 1 ms in the end | little |
//! | [`Sleeping`] | its time, at least some 50 µs of the kernel's own | next to nothing |
//! | [`NoOp`] | at once | whatever the caller does instead |

use std::thread;
use std::time::Duration;

/// Called after each turn with the work it did.
pub trait IdleStrategy: Send {
    /// Idles when `work` is 0, and forgets earlier idling when it is not.
    fn idle(&mut self, work: usize);
}

/// Spins, with a hint to the processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct BusySpin;

impl IdleStrategy for BusySpin {
    #[inline]
    fn idle(&mut self, work: usize) {
        if work == 0 {
            std::hint::spin_loop();
        }
    }
}

/// Lets other threads run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Yielding;

impl IdleStrategy for Yielding {
    fn idle(&mut self, work: usize) {
        if work == 0 {
            thread::yield_now();
        }
    }
}

/// Sleeps for a time.
#[derive(Clone, Copy, Debug)]
pub struct Sleeping {
    /// How long.
    pub time: Duration,
}

impl Default for Sleeping {
    fn default() -> Self {
        Self { time: Duration::from_micros(1) }
    }
}

impl IdleStrategy for Sleeping {
    fn idle(&mut self, work: usize) {
        if work == 0 {
            thread::sleep(self.time);
        }
    }
}

/// Does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOp;

impl IdleStrategy for NoOp {
    #[inline]
    fn idle(&mut self, _work: usize) {}
}

/// Spins ten times, yields five times, then sleeps for 1 µs and twice as long each time, up to 1 ms. Work starts it over.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    spins_max: u32,
    yields_max: u32,
    park_min: Duration,
    park_max: Duration,
    turns: u32,
    park: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(10, 5, Duration::from_micros(1), Duration::from_millis(1))
    }
}

impl Backoff {
    /// With other bounds.
    #[must_use]
    pub fn new(spins_max: u32, yields_max: u32, park_min: Duration, park_max: Duration) -> Self {
        Self { spins_max, yields_max, park_min, park_max, turns: 0, park: park_min }
    }

    /// What the next idle turn does: sleep for so long, or `None` for a spin or yield.
    #[must_use]
    pub fn next_park(&self) -> Option<Duration> {
        (self.turns >= self.spins_max + self.yields_max).then_some(self.park)
    }
}

impl IdleStrategy for Backoff {
    fn idle(&mut self, work: usize) {
        if work > 0 {
            self.turns = 0;
            self.park = self.park_min;
        } else if let Some(park) = self.next_park() {
            thread::sleep(park);
            self.park = (park * 2).min(self.park_max);
        } else {
            if self.turns < self.spins_max {
                std::hint::spin_loop();
            } else {
                thread::yield_now();
            }
            self.turns += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_spins_yields_then_parks_twice_as_long_each_time_and_work_starts_it_over() {
        let mut backoff = Backoff::default();
        for _ in 0..15 {
            assert_eq!(backoff.next_park(), None);
            backoff.idle(0);
        }
        let mut parks = Vec::new();
        for _ in 0..12 {
            parks.push(backoff.next_park().unwrap().as_micros());
            backoff.idle(0);
        }
        assert_eq!(parks, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
        backoff.idle(3);
        assert_eq!(backoff.next_park(), None);
    }
}
