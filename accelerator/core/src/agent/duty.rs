//! How busy a loop is. Pure: times are arguments.

/// Follows the turns of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DutyCycle {
    began_ns: Option<u64>,
    turns: u64,
    busy_ns: u64,
    idle_ns: u64,
    cycle_ns: u64,
    cycle_ns_max: u64,
}

impl DutyCycle {
    /// Notes that a turn ended.
    ///
    /// # Arguments
    /// * `now_ns` - a clock that does not go back; the first call only begins.
    /// * `work` - what the turn did: its time counts as busy unless it is 0.
    pub fn turn(&mut self, now_ns: u64, work: usize) {
        let began_ns = self.began_ns.replace(now_ns);
        let Some(cycle_ns) = began_ns.map(|began_ns| now_ns.saturating_sub(began_ns)) else { return };
        self.turns += 1;
        self.cycle_ns = cycle_ns;
        self.cycle_ns_max = self.cycle_ns_max.max(cycle_ns);
        *(if work > 0 { &mut self.busy_ns } else { &mut self.idle_ns }) += cycle_ns;
    }

    /// Turns noted.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// The last turn, in nanoseconds.
    #[must_use]
    pub fn cycle_ns(&self) -> u64 {
        self.cycle_ns
    }

    /// The longest turn, in nanoseconds.
    #[must_use]
    pub fn cycle_ns_max(&self) -> u64 {
        self.cycle_ns_max
    }

    /// Share of the time in turns that did work, 0 to 1; 0 before the first turn.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio of hours in nanoseconds needs no more than 53 bits")]
    pub fn busy_ratio(&self) -> f64 {
        let whole = self.busy_ns + self.idle_ns;
        if whole == 0 { 0.0 } else { self.busy_ns as f64 / whole as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_turns_with_work_is_busy() {
        let mut duty = DutyCycle::default();
        assert_eq!(duty.busy_ratio().to_bits(), 0f64.to_bits());
        for (now_ns, work) in [(100, 1), (130, 2), (140, 0), (200, 1)] {
            duty.turn(now_ns, work);
        }
        assert_eq!((duty.turns(), duty.cycle_ns(), duty.cycle_ns_max()), (3, 60, 60));
        assert!((duty.busy_ratio() - 0.9).abs() < 1e-12);
    }
}
