//! The status of an agent's MCP servers, from the gateway.

use openclaw_mcp::server::status::{ServerState, ServerStatus};
use openclaw_protocol::mcp::ServersParams;
use openclaw_protocol::{RequestError, Surface, rpc};

use crate::commands::link::look;

/// Returns the servers of an agent.
pub(crate) async fn servers(
    surface: &dyn Surface,
    agent: Option<&str>,
) -> Result<Vec<ServerStatus>, RequestError> {
    let params = ServersParams { agent_id: agent.map(ToOwned::to_owned) };
    let answer = look::<rpc::McpServers>(surface, params).await?;
    // An entry that cannot be parsed, from a newer gateway, is skipped.
    let read = answer.servers.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok());
    Ok(read.collect())
}

/// Whether the server is still connecting for the first time.
pub(crate) fn is_starting(status: &ServerStatus) -> bool {
    status.state == ServerState::Connecting
}
