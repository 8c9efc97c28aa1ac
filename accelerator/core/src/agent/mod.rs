//! Loops that do work in turns: agents, what runs them, and how they idle when there is nothing to do.
//!
//! An agent does a little work each turn and says how much that was. A runner calls it on one thread, turn after turn, and
//! idles by a strategy after turns without work. Nothing here allocates or locks within a turn.

mod composite;
mod duty;
mod idle;
mod runner;

pub use composite::CompositeAgent;
pub use duty::DutyCycle;
pub use idle::{Backoff, BusySpin, IdleStrategy, NoOp, Sleeping, Yielding};
pub use runner::{AgentRunner, Turns};

/// Something that works in turns.
pub trait Agent: Send {
    /// Called once on the runner's thread before the first turn.
    ///
    /// # Errors
    /// Ends the runner; [`Agent::on_close`] is still called.
    fn on_start(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Does what is there to do now, briefly; returns how much it was, 0 for nothing.
    ///
    /// # Errors
    /// Is counted, and the next turn follows.
    fn do_work(&mut self) -> Result<usize, AgentError>;

    /// Called once on the runner's thread after the last turn.
    fn on_close(&mut self) {}
}

/// What went wrong in an agent.
pub type AgentError = Box<dyn std::error::Error + Send + Sync>;
