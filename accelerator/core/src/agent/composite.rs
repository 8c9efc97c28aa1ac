//! Several agents in one.

use super::{Agent, AgentError};

/// Gives each of its agents a turn, and sums their work. One that fails does not keep the others from theirs.
#[derive(Default)]
pub struct CompositeAgent {
    agents: Vec<Box<dyn Agent>>,
}

impl CompositeAgent {
    /// Of agents, in the order of their turns.
    #[must_use]
    pub fn new(agents: Vec<Box<dyn Agent>>) -> Self {
        Self { agents }
    }

    fn all<T>(&mut self, mut each: impl FnMut(&mut dyn Agent) -> Result<T, AgentError>) -> Result<Vec<T>, AgentError> {
        let mut done = Vec::with_capacity(self.agents.len());
        let mut failed = None;
        for agent in &mut self.agents {
            match each(&mut **agent) {
                Ok(value) => done.push(value),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(done), Err)
    }
}

impl Agent for CompositeAgent {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.all(|agent| agent.on_start()).map(|_| ())
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        let mut work = 0;
        let mut failed = None;
        for agent in &mut self.agents {
            match agent.do_work() {
                Ok(done) => work += done,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(work), Err)
    }

    fn on_close(&mut self) {
        for agent in &mut self.agents {
            agent.on_close();
        }
    }
}
