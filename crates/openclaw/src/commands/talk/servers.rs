//! The MCP servers of an agent, as a front end sees them.

use std::time::Duration;

use openclaw_protocol::mcp::{ServersParams, ServersResult};
use openclaw_protocol::{AskError, Heard, Method, Surface, names};
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

    /// Whether it rests, and that is as it should be.
    pub(crate) fn is_resting(&self) -> bool {
        matches!(self.state.as_str(), "idle" | "disabled" | "closed")
    }

    /// How it is, in a few words.
    pub(crate) fn words(&self) -> String {
        match self.state.as_str() {
            "ready" => plural(self.tools, "tool"),
            "connecting" => "is starting".to_owned(),
            "idle" => "starts when it is used".to_owned(),
            "disabled" => "is switched off".to_owned(),
            "closed" => "was ended".to_owned(),
            "needs-auth" => {
                let hint = self.last_error.as_ref().and_then(|trouble| trouble.hint.as_deref());
                hint.map_or("needs a login".to_owned(), |hint| format!("needs a login: {hint}"))
            }
            state => {
                let again = if state == "restarting" { "; it is tried again" } else { "" };
                match &self.last_error {
                    Some(trouble) => format!("{}{again}", trouble.message),
                    None => format!("is not available{again}"),
                }
            }
        }
    }
}

/// The servers of an agent.
pub(crate) async fn servers(
    surface: &dyn Surface,
    agent: Option<&str>,
) -> Result<Vec<Server>, AskError> {
    let params = ServersParams { agent_id: agent.map(ToOwned::to_owned) };
    let answer: ServersResult = look(surface, Method::McpServers, &params).await?;
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
                    Some(Heard::Event(event)) if event.event != names::MCP_SERVER => {}
                    other => return other.is_some(),
                }
            }
        };
        if !timeout_at(deadline, changed).await.unwrap_or(false) {
            return;
        }
    }
}
