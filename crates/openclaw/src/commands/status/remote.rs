//! The state of a gateway that the user has named.

use openclaw_protocol::agents::ListParams;
use openclaw_protocol::rpc;
use serde_json::{Value, json};

use crate::commands::check::{Check, SubjectChecks};
use crate::commands::link::{NamedGateway, Need, look as ask};
use crate::edge::Edge;
use crate::error::CommandError;
use crate::output::{plural, printable};

/// The state of a named gateway.
pub(super) struct RemoteState {
    url: String,
    found: Result<Reachable, CommandError>,
}

/// A gateway that accepts this client.
struct Reachable {
    version: String,
    scopes: Vec<String>,
    /// Whether it has the methods of this program: `mcp.*`, lent tools.
    is_ours: bool,
    /// Each agent with its model.
    agents: Vec<(String, Option<String>)>,
}

/// Connects to the gateway, and asks for its agents.
pub(super) async fn look(gateway: &NamedGateway, edge: &Edge) -> RemoteState {
    RemoteState { url: gateway.url.clone(), found: reach(gateway, edge).await }
}

async fn reach(gateway: &NamedGateway, edge: &Edge) -> Result<Reachable, CommandError> {
    let client = gateway.connect(&Need::Records, edge).await?;
    let known = ask::<rpc::AgentsList>(&client, ListParams::default()).await?;
    let agents = known.agents.into_iter().map(|agent| {
        let model = agent.model.and_then(|model| model.primary);
        (agent.id, model)
    });
    let hello = client.hello();
    Ok(Reachable {
        version: hello.server.version.clone(),
        scopes: hello.auth.scopes.clone(),
        is_ours: !client.is_foreign(),
        agents: agents.collect(),
    })
}

impl RemoteState {
    pub(super) fn finding(&self) -> SubjectChecks {
        let checks = match &self.found {
            Err(CommandError::Failed(failure)) => {
                vec![Check::bad(failure.line(), failure.hint.clone())]
            }
            Err(CommandError::Interrupted) => vec![Check::bad("interrupted", None)],
            Ok(gateway) => {
                let (url, version) = (printable(&self.url), printable(&gateway.version));
                let agents = plural(gateway.agents.len(), "agent");
                let mut checks = vec![Check::good(format!("{url}, version {version}: {agents}"))];
                for (agent, model) in &gateway.agents {
                    let model = model.as_deref().unwrap_or("its default model");
                    checks.push(Check::note(printable(&format!("{agent}: {model}"))));
                }
                if !gateway.is_ours {
                    checks.push(Check::note(
                        "not a gateway of this program: `openclaw mcp …` uses the servers of this \
                         machine",
                    ));
                }
                checks
            }
        };
        SubjectChecks::new("Gateway", checks)
    }

    pub(super) fn to_json(&self) -> Value {
        match &self.found {
            Err(error) => json!({ "url": self.url, "remote": true, "reachable": false,
                "error": error.to_string() }),
            Ok(gateway) => {
                let agents =
                    gateway.agents.iter().map(|(id, model)| json!({ "id": id, "model": model }));
                json!({
                    "url": self.url,
                    "remote": true,
                    "reachable": true,
                    "version": gateway.version,
                    "scopes": gateway.scopes,
                    "hasMcp": gateway.is_ours,
                    "agents": agents.collect::<Vec<_>>(),
                })
            }
        }
    }
}
