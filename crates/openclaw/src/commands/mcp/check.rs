//! Tests the connection to a server that was just added.

use openclaw_config::{Config, OAuthGrant, Paths, ServerName, Transport};
use openclaw_mcp::server::Server;
use openclaw_mcp::server::status::ServerState;
use openclaw_mcp::server::supervisor::ServerError;
use openclaw_mcp_client::connection::remote::uses_tokens;
use serde_json::{Value, json};

use super::shell::with_own_servers;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{Output, plural, printable};
use openclaw_terminal::style::{BAD, FAINT, GOOD, WARNING};

/// The result of a connection test.
#[derive(Debug)]
pub(super) enum ConnectionTest {
    /// Ready, with the number of tools.
    Ready(usize),
    /// A login is required, which this user can do.
    NeedsLogin(ServerError),
    /// Not available.
    Failed(ServerError),
}

/// Tests the connection to a server. Returns `None` if it is disabled or cannot start. The exit code
/// tells whether the test was interrupted.
pub(super) fn check(
    name: &ServerName,
    config: &Config,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> (Option<ConnectionTest>, Exit) {
    let is_enabled = |server: &openclaw_config::ServerConfig| server.enabled;
    let has =
        |agent: &&openclaw_config::AgentConfig| agent.mcp.servers.get(name).is_some_and(is_enabled);
    let Some(agent) = config.agents.iter().find(has) else { return (None, Exit::Ok) };
    let mut check = None;
    let result = with_own_servers(config, agent, paths, edge, output, async |own, _| {
        let Some(server) = own.tools.server(name.as_str()) else { return Ok(Exit::Ok) };
        check = Some(match own.watching(server.ready()).await {
            Ok(_) => ConnectionTest::Ready(server.cache().inventory().tools.len()),
            Err(unavailable) => {
                let reason = unavailable.reason();
                let trouble = unavailable.trouble.unwrap_or_else(|| ServerError::new(reason));
                match unavailable.state == ServerState::NeedsAuth && has_logins(server) {
                    true => ConnectionTest::NeedsLogin(trouble),
                    false => ConnectionTest::Failed(trouble),
                }
            }
        });
        Ok(Exit::Ok)
    });
    let exit = result.unwrap_or_else(|error| {
        // Printed here, not returned: the server was added, which is reported anyway.
        output.error(&error);
        error.exit()
    });
    (check, exit)
}

/// Whether a user can log in to the server.
fn has_logins(server: &Server) -> bool {
    match &server.connection().transport {
        Transport::Http(http) => {
            uses_tokens(http) && http.oauth.grant == OAuthGrant::AuthorizationCode
        }
        Transport::Stdio(_) => false,
    }
}

impl ConnectionTest {
    pub(super) fn needs_login(&self) -> bool {
        matches!(self, Self::NeedsLogin(_))
    }

    pub(super) fn show(&self, name: &ServerName, output: &mut Output) {
        match self {
            Self::Ready(tools) => {
                let tools = plural(*tools, "tool");
                output.line(format_args!("{GOOD}✓{GOOD:#} connected: {tools}"));
            }
            Self::NeedsLogin(_) => {
                output.line(format_args!("{WARNING}!{WARNING:#} `{name}` requires a login"));
                output.line(format_args!("  run `openclaw mcp login {name}`"));
            }
            Self::Failed(trouble) => {
                let message = printable(&trouble.message).into_owned();
                output.line(format_args!("{BAD}✗{BAD:#} not available: {message}"));
                for line in &trouble.last_lines {
                    output.line(format_args!("  {FAINT}| {}{FAINT:#}", printable(line)));
                }
                let look = format!("run `openclaw mcp doctor {name}`");
                let hint = trouble.hint.as_deref().unwrap_or(&look);
                output.line(format_args!("  {}", printable(hint)));
            }
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Ready(tools) => json!({ "ok": true, "tools": tools }),
            Self::NeedsLogin(trouble) | Self::Failed(trouble) => json!({
                "ok": false,
                "needsLogin": self.needs_login(),
                "error": trouble.message,
                "hint": trouble.hint,
            }),
        }
    }
}
