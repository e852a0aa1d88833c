//! The MCP servers of an agent, as a front end sees them.

use std::time::Duration;

use openclaw_gateway::mcp::with_try;
use openclaw_protocol::mcp::{ServersParams, ServersResult};
use openclaw_protocol::{AskError, Received, Surface, names, rpc};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::commands::link::look;
use crate::output::plural;

/// How a server is. What else its status holds is of no interest here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) tools: usize,
    pub(crate) restarts: u32,
    pub(crate) last_error: Option<Trouble>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Trouble {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Server {
    /// Whether it is on its way.
    pub(crate) fn is_starting(&self) -> bool {
        self.state == "connecting"
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.state == "ready"
    }

    /// Whether it was lost, and is tried again.
    pub(crate) fn is_restarting(&self) -> bool {
        self.state == "restarting"
    }

    /// Whether it rests, and that is as it should be.
    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.state.as_str(), "idle" | "disabled" | "closed")
    }

    /// How it is, in a few words.
    pub(crate) fn words(&self) -> String {
        match self.state.as_str() {
            "ready" => plural(self.tools, "tool"),
            "connecting" => "starting".to_owned(),
            "idle" => "starts on first use".to_owned(),
            "disabled" => "disabled".to_owned(),
            "closed" => "stopped".to_owned(),
            "needs-auth" => {
                let hint = self.last_error.as_ref().and_then(|trouble| trouble.hint.as_deref());
                hint.map_or("login required".to_owned(), |hint| format!("login required: {hint}"))
            }
            "restarting" => {
                let words = with_try("restarting", self.restarts);
                match &self.last_error {
                    Some(trouble) => format!("{words}: {}", trouble.message),
                    None => words,
                }
            }
            _ => match &self.last_error {
                Some(trouble) => trouble.message.clone(),
                None => "not available".to_owned(),
            },
        }
    }
}

/// The servers of an agent.
pub(crate) async fn servers(
    surface: &dyn Surface,
    agent: Option<&str>,
) -> Result<Vec<Server>, AskError> {
    let params = ServersParams { agent_id: agent.map(ToOwned::to_owned) };
    let answer: ServersResult = look::<rpc::McpServers>(surface, params).await?;
    // One that cannot be read is left out: it is of a newer gateway.
    let read = answer.servers.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok());
    Ok(read.collect())
}

/// Waits until no server is on its way any more, at most so long. Tools that come too late are missing
/// in a turn.
pub(crate) async fn settled(surface: &dyn Surface, agent: Option<&str>, limit: Duration) {
    let deadline = Instant::now() + limit;
    let mut events = surface.events();
    loop {
        match servers(surface, agent).await {
            Ok(servers) if servers.iter().any(Server::is_starting) => {}
            _ => return,
        }
        let changed = async {
            loop {
                match events.next().await {
                    Some(Received::Event(event)) if event.event != names::MCP_SERVER => {}
                    other => return other.is_some(),
                }
            }
        };
        if !timeout_at(deadline, changed).await.unwrap_or(false) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_tried_again_is_said_to_restart_and_why() {
        let message = "exited with status 1".to_owned();
        let last_error = Some(Trouble { message, hint: None });
        let lost = Server { state: "restarting".to_owned(), last_error, ..Server::default() };
        assert_eq!(lost.words(), "restarting: exited with status 1");
        let again = Server { restarts: 2, ..lost.clone() };
        assert_eq!(again.words(), "restarting (attempt 2): exited with status 1");
        let given_up = Server { state: "failed".to_owned(), ..lost };
        assert_eq!(given_up.words(), "exited with status 1");
    }
}
