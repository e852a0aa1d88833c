//! Why a server is not available, for users and for models.

use super::status::ServerState;
use super::supervisor::ServerError;

/// Why a server is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MCP server '{server}' is not available: {}", self.reason())]
pub struct Unavailable {
    /// The name of the server.
    pub server: String,
    /// Its state.
    pub state: ServerState,
    /// The last error.
    pub trouble: Option<ServerError>,
}

fn state_text(state: ServerState) -> &'static str {
    match state {
        ServerState::Disabled => "disabled",
        ServerState::Idle => "not started yet",
        ServerState::Connecting => "still connecting",
        ServerState::Ready => "connection lost",
        ServerState::NeedsAuth => "login required",
        ServerState::Restarting => "restarting",
        ServerState::Failed => "failed",
        ServerState::Closed => "closed",
    }
}

impl Unavailable {
    /// Returns the error without its cause: the cause may quote the server, so a model must not see
    /// it.
    pub fn for_model(&self) -> String {
        format!("MCP server '{}' is not available: {}.", self.server, state_text(self.state))
    }

    /// Returns the state and the last error, for users.
    pub fn reason(&self) -> String {
        match &self.trouble {
            Some(trouble) => format!("{} ({})", state_text(self.state), trouble.message),
            None => state_text(self.state).to_owned(),
        }
    }
}
