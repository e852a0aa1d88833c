//! Status of agents if no gateway is running: a temporary one is started, without servers.

use std::time::Duration;

use openclaw_config::{Config, Paths};
use openclaw_gateway::Gateway;
use openclaw_protocol::health::StatusParams;
use openclaw_protocol::rpc;

use crate::commands::check::Check;
use crate::commands::gateway::AgentStatus;
use crate::commands::link::{Need, look, ourselves, setup};
use crate::edge::Edge;
use crate::error::{CommandError, chain};
use crate::output::Output;

/// Returns the agents with their models, and the problems that were found on the way.
pub(super) async fn agents(
    config: &Config,
    paths: &Paths,
    edge: &Edge,
) -> Result<(Vec<AgentStatus>, Vec<Check>), Check> {
    let problem = |cause: String, advice: Option<String>| {
        Check::bad(format!("agents cannot start: {cause}"), advice)
    };
    let failed = |cause: String| problem(cause, Some("run `openclaw doctor`".to_owned()));
    let setup = setup(config.clone(), &Need::Records, paths, edge, &mut Output::new(false))
        .map_err(|error| match error {
            CommandError::Failed(failure) => problem(failure.line(), failure.hint.clone()),
            CommandError::Interrupted => problem("interrupted".to_owned(), None),
        })?;
    let gateway = Gateway::start(setup).await.map_err(|error| failed(chain(&error)))?;
    // A damaged database was moved away.
    let notes: Vec<Check> = gateway.notes().iter().map(|note| Check::bad(note, None)).collect();
    let surface = gateway.caller(ourselves());
    let answer = look::<rpc::Status>(&*surface, StatusParams::default()).await;
    drop(surface);
    gateway.stop(Duration::ZERO).await;
    let status = answer.map_err(|error| failed(error.to_string()))?;
    let agents = status.agents.and_then(|raw| serde_json::from_str(raw.get()).ok());
    Ok((agents.unwrap_or_default(), notes))
}
