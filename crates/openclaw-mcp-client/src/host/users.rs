//! The agents on whose behalf a connection is used.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openclaw_config::AgentId;

/// The agents that use a server. Clones share the set.
#[derive(Debug, Clone, Default)]
pub struct Users(Arc<Mutex<BTreeSet<AgentId>>>);

impl Users {
    /// Adds an agent.
    pub fn add(&self, agent: &AgentId) {
        self.lock().insert(agent.clone());
    }

    /// Removes all agents.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// The names of the agents, sorted.
    pub fn names(&self) -> Vec<String> {
        self.lock().iter().map(ToString::to_string).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<AgentId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
