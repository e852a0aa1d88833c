//! Waits for the MCP servers of an agent: a run that begins before they are ready lacks their tools.

use std::time::Duration;

use openclaw_protocol::mcp::ServersParams;
use openclaw_protocol::{RequestError, Surface, ask, rpc};
use serde::Deserialize;
use tokio::time::{sleep, timeout};

/// How long a message waits for servers that are starting.
const PATIENCE: Duration = Duration::from_secs(20);
/// The interval of looking at them.
const INTERVAL: Duration = Duration::from_millis(50);
/// The state of a server that is starting.
const CONNECTING: &str = "connecting";

#[derive(Deserialize)]
struct Server {
    #[serde(default)]
    state: String,
}

/// Waits until no server of an agent is starting any more, for a limited time.
pub(super) async fn settled(surface: &dyn Surface, agent: Option<&str>) {
    let settling = async {
        // A gateway that does not report its servers is not waited for.
        while are_starting(surface, agent).await.unwrap_or(false) {
            sleep(INTERVAL).await;
        }
    };
    let _ = timeout(PATIENCE, settling).await;
}

async fn are_starting(surface: &dyn Surface, agent: Option<&str>) -> Result<bool, RequestError> {
    let params = ServersParams { agent_id: agent.map(ToOwned::to_owned) };
    let found = ask::<rpc::McpServers>(surface, params).await?;
    let is_starting = |server: &str| {
        serde_json::from_str(server).is_ok_and(|Server { state }| state == CONNECTING)
    };
    Ok(found.servers.iter().any(|server| is_starting(server.get())))
}
