//! A thread that gives an agent its turns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::{Agent, AgentError, DutyCycle, IdleStrategy};
use crate::Error;

/// What a runner did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Turns taken.
    pub turns: u64,
    /// Work done in them.
    pub work: u64,
    /// Turns (or starts) that failed or panicked.
    pub errors: u64,
    /// The longest turn with its idling, in nanoseconds.
    pub cycle_ns_max: u64,
    /// Share of the time in turns that did work, in thousandths.
    pub busy_per_mille: u64,
}

#[derive(Default)]
struct Shared {
    stopping: AtomicBool,
    running: AtomicBool,
    turns: AtomicU64,
    work: AtomicU64,
    errors: AtomicU64,
    cycle_ns_max: AtomicU64,
    busy_per_mille: AtomicU64,
}

/// Runs one agent on a thread of its own until it is stopped or dropped.
pub struct AgentRunner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl AgentRunner {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::System`] where no thread can be had.
    pub fn start(
        name: &str,
        mut agent: impl Agent + 'static,
        mut idle: impl IdleStrategy + 'static,
    ) -> Result<Self, Error> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        theirs.running.store(true, Ordering::Release);
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(move || run(&theirs, &mut agent, &mut idle))
            .map_err(|error| Error::System { action: format!("start thread {name}"), source: error })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Whether turns are taken.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.shared.running.load(Ordering::Acquire)
    }

    /// What it did so far.
    #[must_use]
    pub fn turns(&self) -> Turns {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Turns {
            turns: load(&self.shared.turns),
            work: load(&self.shared.work),
            errors: load(&self.shared.errors),
            cycle_ns_max: load(&self.shared.cycle_ns_max),
            busy_per_mille: load(&self.shared.busy_per_mille),
        }
    }

    /// Lets the present turn be the last one, and waits for it and for `on_close`.
    pub fn stop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic outside of the agent is a fault of this crate; there is nobody to hand it to.
            let _ = thread.join();
        }
    }
}

impl Drop for AgentRunner {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(shared: &Shared, agent: &mut impl Agent, idle: &mut impl IdleStrategy) {
    let (began, mut duty) = (Instant::now(), DutyCycle::default());
    if guarded(shared, || agent.on_start()).is_some() {
        while !shared.stopping.load(Ordering::Acquire) {
            let work = guarded(shared, || agent.do_work()).unwrap_or(0);
            idle.idle(work);
            duty.turn(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), work);
            shared.turns.fetch_add(1, Ordering::Relaxed);
            shared.work.fetch_add(work as u64, Ordering::Relaxed);
            shared.cycle_ns_max.store(duty.cycle_ns_max(), Ordering::Relaxed);
            shared.busy_per_mille.store((duty.busy_ratio() * 1000.0) as u64, Ordering::Relaxed);
        }
    }
    let _ = guarded(shared, || {
        agent.on_close();
        Ok(())
    });
    shared.running.store(false, Ordering::Release);
}

/// Counts a failure, and a panic as one: the next turn follows.
fn guarded<T>(shared: &Shared, turn: impl FnOnce() -> Result<T, AgentError>) -> Option<T> {
    if let Ok(Ok(value)) = catch_unwind(AssertUnwindSafe(turn)) {
        return Some(value);
    }
    shared.errors.fetch_add(1, Ordering::Relaxed);
    None
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::super::{Backoff, CompositeAgent, NoOp};
    use super::*;

    struct Told(Sender<&'static str>, u32);

    impl Agent for Told {
        fn on_start(&mut self) -> Result<(), AgentError> {
            self.0.send("start")?;
            Ok(())
        }

        fn do_work(&mut self) -> Result<usize, AgentError> {
            self.1 += 1;
            match self.1 {
                1 => Err("a bad turn".into()),
                2 => panic!("a worse turn"),
                3 => {
                    self.0.send("worked")?;
                    Ok(5)
                }
                _ => Ok(0),
            }
        }

        fn on_close(&mut self) {
            let _ = self.0.send("close");
        }
    }

    #[test]
    fn turns_follow_errors_and_panics_and_the_end_is_told_once() {
        let (sender, told) = channel();
        let mut runner = AgentRunner::start("test-agent", Told(sender, 0), Backoff::default()).unwrap();
        assert_eq!((told.recv().unwrap(), told.recv().unwrap()), ("start", "worked"));
        runner.stop();
        runner.stop();
        assert!(!runner.is_running());
        assert_eq!(told.iter().collect::<Vec<_>>(), ["close"]);
        let turns = runner.turns();
        assert_eq!((turns.errors, turns.work), (2, 5));
        assert!(turns.turns >= 3);
    }

    struct Starts(bool, Sender<&'static str>);

    impl Agent for Starts {
        fn on_start(&mut self) -> Result<(), AgentError> {
            if self.0 { Ok(()) } else { Err("no".into()) }
        }

        fn do_work(&mut self) -> Result<usize, AgentError> {
            let _ = self.1.send("work");
            Ok(1)
        }

        fn on_close(&mut self) {
            let _ = self.1.send("close");
        }
    }

    #[test]
    fn an_agent_that_does_not_start_takes_no_turn_and_is_closed() {
        let (sender, told) = channel();
        let agents: Vec<Box<dyn Agent>> = vec![Box::new(Starts(true, sender.clone())), Box::new(Starts(false, sender))];
        let mut runner = AgentRunner::start("test-agent", CompositeAgent::new(agents), NoOp).unwrap();
        assert_eq!((told.recv().unwrap(), told.recv().unwrap()), ("close", "close"));
        runner.stop();
        assert_eq!(runner.turns(), Turns { errors: 1, ..Turns::default() });
    }

    #[test]
    fn the_work_of_several_agents_is_summed_and_one_that_fails_holds_up_nobody() {
        struct Fixed(Result<usize, &'static str>);
        impl Agent for Fixed {
            fn do_work(&mut self) -> Result<usize, AgentError> {
                self.0.map_err(Into::into)
            }
        }
        let agents = |of: &[Result<usize, &'static str>]| {
            CompositeAgent::new(of.iter().map(|work| Box::new(Fixed(*work)) as Box<dyn Agent>).collect())
        };
        assert_eq!(agents(&[Ok(2), Ok(0), Ok(3)]).do_work().unwrap(), 5);
        assert!(agents(&[Ok(2), Err("x"), Ok(3)]).do_work().is_err());
    }
}
