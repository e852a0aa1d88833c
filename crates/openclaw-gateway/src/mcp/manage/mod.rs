//! The command `/mcp` and the tool `mcp_manage`, which do the same (M1).

mod command;
mod text;
mod tool;
mod verbs;

pub(crate) use command::McpChatCommand;
pub(crate) use tool::{ManageTool, NAME};
pub(crate) use verbs::{VERBS, Verb};

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::AgentId;
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::server::Server;
use openclaw_mcp::server::status::{ActiveTransport, ServerState, ServerStatus};
use openclaw_protocol::Method;
use openclaw_protocol::mcp::{AuthResult, GrantInfo, RefreshResult, ServersResult, ToolsResult};
use serde_json::{Value, json};

use super::gather::{WaitFor, gather};
use super::lists::{self, ToolsWanted};
use super::logins::AuthRequest;
use super::problem::{Problem, ProblemKind};
use super::servers::McpServers;

/// How long a listing waits for servers that are connecting.
const LISTS_WAIT: Duration = Duration::from_secs(5);

/// The result of a command.
enum Done {
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
async fn execute(
    servers: &Arc<McpServers>,
    id: &AgentId,
    verb: &Verb,
    scopes: &[String],
) -> Result<Done, Problem> {
    let may = |method: Method| method.scope().is_in(scopes);
    if !may(verb.method()) {
        let scope = verb.method().scope().name().unwrap_or_default();
        let message = format!("`{}` of MCP servers needs the scope `{scope}`", verb.name());
        return Err(Problem::new(ProblemKind::Forbidden, message));
    }
    let agent = servers.tools(id)?;
    Ok(match verb {
        Verb::Servers => {
            let statuses = servers.statuses_of(id, &agent);
            Done::Servers(lists::servers(&agent, &statuses), statuses)
        }
        Verb::Tools { server } => {
            if let Some(name) = server {
                servers.server(id, name)?;
            }
            let patience = WaitFor::AtMost(LISTS_WAIT);
            let is_lazy = |server: &Server| server.is_lazy();
            let gathered = gather(&agent, server.as_deref(), patience, is_lazy).await?;
            Done::Tools(lists::tools(&agent, &gathered, ToolsWanted::default()))
        }
        Verb::Status { server } => {
            let status = servers.status(id, server)?;
            let login = match status.transport {
                ActiveTransport::Stdio => None,
                _ if !may(Method::McpAuth) => None,
                _ => servers.auth(id, server, AuthRequest::Status).await?.grant,
            };
            Done::Status(Box::new(status), login)
        }
        Verb::Refresh { server } => Done::Refreshed(servers.refresh(id, server.as_deref()).await?),
        Verb::Connect { url, name } => {
            let status = servers.connect(id, url, name.as_deref()).await?;
            Done::Connected(Box::new(status))
        }
        Verb::ConnectAgain { server } => {
            Done::Connected(Box::new(servers.connect_again(id, server).await?))
        }
        Verb::Disconnect { server } => {
            Done::Disconnected(Box::new(servers.disconnect(id, server).await?))
        }
        Verb::Auth { server, code } => {
            let request = match code {
                Some(code) => AuthRequest::Finish(code.clone().into()),
                None => AuthRequest::Begin { scopes: BTreeSet::new(), issuer: None },
            };
            let done = servers.auth(id, server, request).await?;
            Done::Auth(server.clone(), done)
        }
        Verb::AuthState { server } => {
            let AuthResult { ok, state, .. } =
                servers.auth(id, server, AuthRequest::Status).await?;
            let result =
                AuthResult { ok, state, url: None, message: None, issuer: None, grant: None };
            Done::Auth(server.clone(), result)
        }
        Verb::Logout { server } => {
            let done = servers.auth(id, server, AuthRequest::Logout).await?;
            Done::LoggedOut(server.clone(), done)
        }
    })
}

impl Done {
    /// The result as JSON, as the protocol's methods return it.
    fn json(&self) -> String {
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
fn problem_text(problem: &Problem) -> String {
    let clean = |line: &str| clean_line(Untrusted::new(line), 1_000);
    let mut lines = vec![format!("error: {}", clean(&problem.message))];
    lines.extend(problem.last_lines.iter().map(|line| format!("  | {}", clean(line))));
    lines.extend(problem.hint.iter().map(|hint| format!("hint: {}", clean(hint))));
    lines.join("\n")
}

/// A problem as JSON.
fn problem_json(problem: &Problem) -> String {
    let value: Value = json!({ "ok": false, "error": problem.message, "hint": problem.hint });
    format!("{value:#}")
}
