//! Manages MCP servers at run time (M1): one implementation for the command `/mcp`, the tool
//! `mcp_manage`, and the protocol.

mod auth;
mod parse;
mod text;
mod tool;

pub(crate) use auth::{AuthOrder, Logins, auth};
pub(crate) use parse::{Order, VERBS, Verb};
pub(crate) use tool::{ManageTool, NAME};

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use openclaw_config::AgentId;
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::fleet::agent::AgentTools;
use openclaw_mcp::server::Server;
use openclaw_mcp::server::status::{ActiveTransport, ServerState, ServerStatus};
use openclaw_protocol::Method;
use openclaw_protocol::mcp::{AuthResult, GrantInfo, RefreshResult, ServersResult, ToolsResult};
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::mcp::{self, Problem, ProblemKind, ToolsWanted, WaitFor};

/// How long a listing waits for servers that are connecting.
const LISTS_WAIT: Duration = Duration::from_secs(5);

/// The result of a command.
pub(crate) enum Done {
    Servers(ServersResult, Vec<ServerStatus>),
    Tools(ToolsResult),
    /// With the login at the server, if there is one.
    Status(Box<ServerStatus>, Option<GrantInfo>),
    Refreshed(RefreshResult),
    Connected(Box<ServerStatus>),
    Disconnected(Box<ServerStatus>),
    Auth(String, AuthResult),
    LoggedOut(String, AuthResult),
}

/// Executes a command for a caller with these scopes.
pub(crate) async fn carry_out(
    gateway: &Gateway,
    id: &AgentId,
    verb: &Verb,
    scopes: &[String],
) -> Result<Done, Problem> {
    let may = |method: Method| method.scope().is_in(scopes);
    if !may(verb.method()) {
        let scope = verb.method().scope().name().unwrap_or_default();
        let words = format!("`{}` of MCP servers needs the scope `{scope}`", verb.name());
        return Err(Problem::new(ProblemKind::Forbidden, words));
    }
    let agent = tools_of(gateway, id)?;
    Ok(match verb {
        Verb::Servers => {
            let statuses = statuses(gateway, id, &agent);
            Done::Servers(mcp::servers_as(&agent, &statuses), statuses)
        }
        Verb::Tools { server } => {
            if let Some(name) = server {
                gateway.server_of(id, name)?;
            }
            let patience = WaitFor::AtMost(LISTS_WAIT);
            let is_lazy = |server: &Server| server.is_lazy();
            let gathered = mcp::gather(&agent, server.as_deref(), patience, is_lazy).await?;
            Done::Tools(mcp::tools(&agent, &gathered, ToolsWanted::default()))
        }
        Verb::Status { server } => {
            let status = status(gateway, id, server)?;
            let login = match status.transport {
                ActiveTransport::Stdio => None,
                _ if !may(Method::McpAuth) => None,
                _ => auth(gateway, id, server, AuthOrder::Status).await?.grant,
            };
            Done::Status(Box::new(status), login)
        }
        Verb::Refresh { server } => Done::Refreshed(refresh(gateway, id, server.as_deref()).await?),
        Verb::Connect { url, name } => {
            let status = gateway.connect(id, url, name.as_deref()).await?;
            Done::Connected(Box::new(status))
        }
        Verb::ConnectAgain { server } => {
            Done::Connected(Box::new(connect_again(gateway, id, server).await?))
        }
        Verb::Disconnect { server } => {
            Done::Disconnected(Box::new(gateway.disconnect(id, server).await?))
        }
        Verb::Auth { server, code } => {
            let order = match code {
                Some(code) => AuthOrder::Finish(code.clone().into()),
                None => AuthOrder::Begin { scopes: BTreeSet::new(), issuer: None },
            };
            let done = auth(gateway, id, server, order).await?;
            Done::Auth(server.clone(), done)
        }
        Verb::AuthState { server } => {
            let AuthResult { ok, state, .. } = auth(gateway, id, server, AuthOrder::Status).await?;
            let result =
                AuthResult { ok, state, url: None, message: None, issuer: None, grant: None };
            Done::Auth(server.clone(), result)
        }
        Verb::Logout { server } => {
            let done = auth(gateway, id, server, AuthOrder::Logout).await?;
            Done::LoggedOut(server.clone(), done)
        }
    })
}

impl Done {
    /// The result as JSON, as the protocol's methods return it.
    pub(crate) fn json(&self) -> String {
        let value = match self {
            Self::Servers(result, _) => json!(result),
            Self::Tools(result) => json!(result),
            Self::Status(status, _) => json!(status),
            Self::Refreshed(result) => json!(result),
            Self::Connected(status) => {
                json!({ "ok": status.state == ServerState::Ready, "server": status })
            }
            Self::Disconnected(status) => json!({ "ok": true, "server": status }),
            Self::Auth(_, result) | Self::LoggedOut(_, result) => json!(result),
        };
        format!("{value:#}")
    }
}

/// A problem as text, in the form of the errors of other commands.
pub(crate) fn problem_text(problem: &Problem) -> String {
    let clean = |line: &str| clean_line(Untrusted::new(line), 1_000);
    let mut lines = vec![format!("error: {}", clean(&problem.message))];
    lines.extend(problem.last_lines.iter().map(|line| format!("  | {}", clean(line))));
    lines.extend(problem.hint.iter().map(|hint| format!("hint: {}", clean(hint))));
    lines.join("\n")
}

/// A problem as JSON.
pub(crate) fn problem_json(problem: &Problem) -> String {
    let value: Value = json!({ "ok": false, "error": problem.message, "hint": problem.hint });
    format!("{value:#}")
}

fn tools_of(gateway: &Gateway, id: &AgentId) -> Result<Arc<AgentTools>, Problem> {
    let gone = || Problem::new(ProblemKind::Invalid, format!("agent `{id}` no longer exists"));
    gateway.fleet.agent(id.as_str()).ok_or_else(gone)
}

/// The status of a server, whatever its state.
pub(crate) fn status(gateway: &Gateway, id: &AgentId, name: &str) -> Result<ServerStatus, Problem> {
    let agent = tools_of(gateway, id)?;
    let status = statuses(gateway, id, &agent).into_iter().find(|it| it.name == name);
    status.ok_or_else(|| mcp::unknown(name, &agent.statuses()))
}

/// The statuses of an agent's servers. A server disconnected at run time is reported as closed, not
/// as disabled.
pub(crate) fn statuses(gateway: &Gateway, id: &AgentId, agent: &AgentTools) -> Vec<ServerStatus> {
    let mut statuses = agent.statuses();
    for status in &mut statuses {
        if gateway.connections.is_off(id, &status.name) {
            status.state = ServerState::Closed;
        }
    }
    statuses
}

/// Connects to a server that was disconnected or has failed.
pub(crate) async fn connect_again(
    gateway: &Gateway,
    id: &AgentId,
    name: &str,
) -> Result<ServerStatus, Problem> {
    let was_off = gateway.reconnect(id, name).await;
    let server = gateway.server_of(id, name)?;
    if was_off || server.status().state == ServerState::Ready {
        server.ready().await.map(|_| ()).map_err(Problem::from)?;
    } else {
        server.refresh().await.map_err(Problem::from)?;
    }
    Ok(server.status())
}

/// Reloads the lists of one server, or of all. A disconnected server is reconnected; one that is
/// not ready is retried.
pub(crate) async fn refresh(
    gateway: &Gateway,
    id: &AgentId,
    name: Option<&str>,
) -> Result<RefreshResult, Problem> {
    if let Some(name) = name {
        gateway.reconnect(id, name).await;
    }
    let servers = match name {
        Some(name) => vec![gateway.server_of(id, name)?],
        None => tools_of(gateway, id)?.servers().to_vec(),
    };
    let each = servers.iter().map(|server| async {
        let before = server.cache().inventory();
        match server.refresh().await {
            Ok(()) => mcp::refreshed(server, &before),
            Err(unavailable) => mcp::not_refreshed(server, unavailable),
        }
    });
    let servers = join_all(each).await;
    Ok(RefreshResult { ok: servers.iter().all(|it| it.ok), servers })
}
