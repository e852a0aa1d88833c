//! Events about state changes of the servers in a fleet (L6).

use openclaw_mcp_client::host::Users;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::server::status::ServerState;
use crate::server::supervisor::StateChange;

/// How many events are buffered for a slow receiver. A slower one loses the oldest and learns how
/// many it lost.
const KEPT: usize = 256;

/// A state change of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerEvent {
    /// The name of the server.
    pub server: String,
    /// The agents that use it, sorted by name.
    pub agents: Vec<String>,
    /// The new state.
    pub state: ServerState,
    /// The number of restarts in a row.
    pub restarts: u32,
    /// The last error, if any, as one sanitized line without secrets. It may quote the server, so
    /// it must not be passed to a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The broadcast channel for events. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct EventChannel(broadcast::Sender<ServerEvent>);

impl Default for EventChannel {
    fn default() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }
}

impl EventChannel {
    pub(crate) fn hear(&self) -> broadcast::Receiver<ServerEvent> {
        self.0.subscribe()
    }

    /// Returns an observer that sends the state changes of one server, with the agents that use it
    /// at that time.
    pub(crate) fn teller(
        &self,
        server: &str,
        users: &Users,
    ) -> impl Fn(StateChange<'_>) + Send + use<> {
        let events = self.clone();
        let server = server.to_owned();
        let users = users.clone();
        move |change: StateChange<'_>| {
            let event = ServerEvent {
                server: server.clone(),
                agents: users.names(),
                state: change.state,
                restarts: change.restarts,
                reason: change.trouble.map(|trouble| trouble.message.clone()),
            };
            // Fails if there is no receiver.
            let _ = events.0.send(event);
        }
    }
}
