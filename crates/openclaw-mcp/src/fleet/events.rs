//! What happens to the servers of a fleet, for whoever wants to know (L6).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openclaw_config::AgentId;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::server::status::ServerState;
use crate::server::supervisor::Change;

/// How many events are kept for somebody who is slow to take them; who is slower misses the oldest,
/// and is told how many.
const KEPT: usize = 256;

/// A server has another state than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetEvent {
    /// The server.
    pub server: String,
    /// The agents whose server it is, in the order of their names.
    pub agents: Vec<String>,
    /// Its state from now on.
    pub state: ServerState,
    /// How often it was started again in a row.
    pub restarts: u32,
    /// What went wrong, where something did: one clean line, without secrets. It may quote the server:
    /// for people, not for a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where events are told, and heard. A clone is the same.
#[derive(Debug, Clone)]
pub(crate) struct Events(broadcast::Sender<FleetEvent>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }
}

impl Events {
    pub(crate) fn hear(&self) -> broadcast::Receiver<FleetEvent> {
        self.0.subscribe()
    }

    /// Tells of the changes of one server, whoever uses it by then.
    pub(crate) fn teller(&self, server: &str, users: &Users) -> impl Fn(Change<'_>) + Send + use<> {
        let (events, server, users) = (self.clone(), server.to_owned(), users.clone());
        move |change: Change<'_>| {
            let event = FleetEvent {
                server: server.clone(),
                agents: users.names(),
                state: change.state,
                restarts: change.restarts,
                reason: change.trouble.map(|trouble| trouble.message.clone()),
            };
            // Mostly nobody listens.
            let _ = events.0.send(event);
        }
    }
}

/// The agents that use a server. A clone is the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Users(Arc<Mutex<BTreeSet<AgentId>>>);

impl Users {
    pub(crate) fn add(&self, agent: &AgentId) {
        self.lock().insert(agent.clone());
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().iter().map(ToString::to_string).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<AgentId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
