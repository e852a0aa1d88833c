//! The status of an agent's MCP servers, from the gateway.

use std::time::Duration;

use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_protocol::mcp::{ServersParams, ServersResult};
use openclaw_protocol::{Received, RequestError, Surface, names, rpc};
use tokio::time::{Instant, timeout_at};

use crate::commands::link::look;

/// Returns the servers of an agent.
pub(crate) async fn servers(
    surface: &dyn Surface,
    agent: Option<&str>,
) -> Result<Vec<ServerStatus>, RequestError> {
    let params = ServersParams { agent_id: agent.map(ToOwned::to_owned) };
    let answer: ServersResult = look::<rpc::McpServers>(surface, params).await?;
    // An entry that cannot be parsed, from a newer gateway, is skipped.
    let read = answer.servers.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok());
    Ok(read.collect())
}

/// Waits until no server is starting any more, at most until the limit: tools of a server that
/// starts later are missing in the turn.
pub(crate) async fn settled(surface: &dyn Surface, agent: Option<&str>, limit: Duration) {
    let deadline = Instant::now() + limit;
    let mut events = surface.events();
    loop {
        match servers(surface, agent).await {
            Ok(servers) if servers.iter().any(is_starting) => {}
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

/// Whether the server is still connecting for the first time.
pub(crate) fn is_starting(status: &ServerStatus) -> bool {
    status.state == ServerState::Connecting
}
