//! Waits for the MCP servers of an agent: a turn that begins before they are ready lacks their tools.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use crate::event::{Received, names};
use crate::mcp::ServersParams;
use crate::method::rpc;
use crate::surface::{Surface, ask};

/// The state of a server that connects for the first time.
const CONNECTING: &str = "connecting";

/// Waits until no server of an agent is connecting for the first time, at most for this long. A
/// gateway that does not report its servers is not waited for.
pub async fn servers_settled(surface: &dyn Surface, agent: Option<&str>, limit: Duration) {
    let deadline = Instant::now() + limit;
    // Before the first look, so that no change is missed.
    let mut events = surface.events();
    let settled = async {
        loop {
            let params = ServersParams { agent_id: agent.map(ToOwned::to_owned) };
            match ask::<rpc::McpServers>(surface, params).await {
                Ok(found) if found.servers.iter().any(|server| is_connecting(server)) => {}
                _ => return,
            }
            loop {
                match events.next().await {
                    Some(Received::Event(event)) if event.event != names::MCP_SERVER => {}
                    Some(_) => break,
                    None => return,
                }
            }
        }
    };
    let _ = timeout_at(deadline, settled).await;
}

fn is_connecting(server: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Server<'a> {
        #[serde(borrow, default)]
        state: &'a str,
    }
    serde_json::from_str(server.get()).is_ok_and(|Server { state }| state == CONNECTING)
}
