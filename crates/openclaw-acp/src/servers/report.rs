//! The servers of a session as the user sees them: `/mcp …`, and why one is not available.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::server::status::{ActiveTransport, AuthKind, ServerState, ServerStatus};
use openclaw_mcp::server::supervisor::ServerError;
use openclaw_protocol::mcp::ServersParams;
use openclaw_protocol::rpc;
use openclaw_tools::ToolSource as _;
use serde::Deserialize;

use super::{SessionServers, lent_name};
use crate::gateway::GatewaySession;
use crate::servers_command::ServersCommand;

/// The timeout of a request to the gateway.
const ANSWER: Duration = Duration::from_secs(10);
/// Maximum number of lines that are shown of a server's stderr.
const STDERR_LINES: usize = 3;
/// Maximum length of such a line, and of a description, in characters.
const LINE: usize = 300;
const DESCRIPTION: usize = 100;

/// Why a server is not available.
pub(super) struct ServerFailure {
    name: String,
    /// Whether it was not tried yet.
    is_starting: bool,
    message: String,
}

/// Returns what is to be reported: each server once, and again if it has failed after it was still
/// starting. `reported` has the servers that were reported, and whether they were starting then.
pub(super) fn unreported(
    reported: &mut BTreeMap<String, bool>,
    failures: Vec<ServerFailure>,
    with_starting: bool,
) -> Vec<String> {
    reported.retain(|known, _| failures.iter().any(|failure| failure.name == *known));
    let is_new = |failure: &ServerFailure| match reported.get(&failure.name) {
        None => with_starting || !failure.is_starting,
        Some(was_starting) => *was_starting && !failure.is_starting,
    };
    let new: Vec<ServerFailure> = failures.into_iter().filter(is_new).collect();
    let new = new.into_iter().map(|failure| {
        reported.insert(failure.name, failure.is_starting);
        failure.message
    });
    new.collect()
}

impl SessionServers {
    fn statuses(&self) -> Vec<ServerStatus> {
        self.view().map(|view| view.statuses()).unwrap_or_default()
    }

    /// The names of the servers that were not tried yet.
    pub(crate) fn starting(&self) -> Vec<String> {
        let failures = self.failures().into_iter().filter(|failure| failure.is_starting);
        failures.map(|failure| failure.name).collect()
    }

    /// Describes the servers that are not available.
    pub(super) fn failures(&self) -> Vec<ServerFailure> {
        self.statuses().iter().filter_map(|status| failure(status, self.uses_logins)).collect()
    }

    /// Answers a command if only servers of the session are concerned.
    pub(crate) async fn answer(
        &self,
        gateway: &GatewaySession,
        command: &ServersCommand,
    ) -> Option<String> {
        let is_known = |name: &str| self.statuses().iter().any(|status| status.name == name);
        if command.server().is_some_and(|name| !is_known(name)) {
            return None;
        }
        let others = names_of_gateway(gateway).await;
        let is_of_gateway = match command.server() {
            None => !others.is_empty(),
            Some(name) => others.iter().any(|other| other == name),
        };
        match command {
            _ if is_of_gateway => None,
            ServersCommand::Other(name) => Some(format!(
                "`{name}` is a server of the editor: change it in the settings of the editor. \
                 `/mcp status {name}` shows its state."
            )),
            command => self.report(command).await,
        }
    }

    /// Returns what the servers of the session add to the answer of the gateway.
    pub(crate) async fn report(&self, command: &ServersCommand) -> Option<String> {
        if let ServersCommand::Refresh(name) = command {
            self.refresh(name.as_deref()).await;
        }
        let statuses = self.statuses();
        let of_command = |name: &str| command.server().is_none_or(|wanted| wanted == name);
        let mut shown = statuses.iter().filter(|status| of_command(&status.name)).peekable();
        shown.peek()?;
        match command {
            ServersCommand::Servers | ServersCommand::Refresh(_) => {
                let lines: Vec<String> = shown.map(line).collect();
                Some(format!("MCP servers of this session:\n{}", lines.join("\n")))
            }
            ServersCommand::Tools(server) => Some(self.tool_list(server.as_deref())),
            ServersCommand::Status(_) => shown.next().map(|status| table(status, self.uses_logins)),
            ServersCommand::Other(_) => None,
        }
    }

    async fn refresh(&self, name: Option<&str>) {
        let Some(view) = self.view() else { return };
        let servers = view.servers().iter();
        let servers = servers.filter(|it| name.is_none_or(|name| it.name().as_str() == name));
        // The state of a server that cannot be refreshed has the reason.
        join_all(servers.map(|server| server.refresh())).await;
    }

    fn tool_list(&self, server: Option<&str>) -> String {
        let tools = self.view().map(|view| view.tools()).unwrap_or_default();
        let tools = tools.iter().filter(|it| server.is_none_or(|name| it.origin().server == name));
        let lines: Vec<String> = tools
            .map(|tool| {
                let spec = tool.spec();
                let description = clean(&spec.description, DESCRIPTION);
                format!("- `{}`: {description}", lent_name(spec.name.as_str()))
            })
            .collect();
        let servers = server
            .map_or_else(|| "the MCP servers".to_owned(), |name| format!("MCP server `{name}`"));
        if lines.is_empty() {
            return format!("No tools from {servers} of this session.");
        }
        format!("Tools of {servers} of this session:\n{}", lines.join("\n"))
    }
}

/// Returns the names of the gateway's servers.
async fn names_of_gateway(gateway: &GatewaySession) -> Vec<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let params = ServersParams { agent_id: Some(gateway.agent.clone()) };
    let listed = gateway.ask_within::<rpc::McpServers>(ANSWER, params).await;
    let servers = listed.map(|listed| listed.servers).unwrap_or_default();
    let names = servers.iter().filter_map(|it| serde_json::from_str::<Named>(it.get()).ok());
    names.map(|it| it.name).collect()
}

fn failure(status: &ServerStatus, uses_logins: bool) -> Option<ServerFailure> {
    let name = &status.name;
    let unavailable = |why: &str| format!("MCP server `{name}` is not available: {why}");
    let message = match (status.state, &status.last_error) {
        (ServerState::Ready | ServerState::Idle | ServerState::Closed, _) => return None,
        (ServerState::NeedsAuth, _) => login_hint(status, uses_logins),
        (_, Some(error)) => unavailable(&reason(error)),
        (ServerState::Connecting, None) => {
            unavailable("it is still starting, and joins when it is ready")
        }
        (_, None) => unavailable("it does not respond"),
    };
    let is_starting = status.state == ServerState::Connecting && status.last_error.is_none();
    Some(ServerFailure { name: name.clone(), is_starting, message })
}

fn login_hint(status: &ServerStatus, uses_logins: bool) -> String {
    let name = &status.name;
    if status.auth == AuthKind::Header {
        return format!(
            "MCP server `{name}` rejected the token that the editor sends. Set a valid one in its \
             `headers` in the editor."
        );
    }
    let setting = if uses_logins { "" } else { ", and set `acp.useLogins: true`" };
    format!(
        "MCP server `{name}` requires a login. Set a token in its `headers` in the editor; or add it \
         to openclaw with the same URL, run `openclaw mcp login {name}`{setting}."
    )
}

/// The message of an error, and the last lines that the server wrote to stderr.
fn reason(error: &ServerError) -> String {
    // An indented line continues the one before it, as in a stack trace.
    let lines = error.last_lines.iter().filter(|line| !line.starts_with([' ', '\t']));
    let mut lines: Vec<String> =
        lines.rev().take(STDERR_LINES).map(|it| format!("  | {}", clean(it, LINE))).collect();
    lines.push(error.message.clone());
    lines.reverse();
    lines.join("\n")
}

/// A server in the list.
fn line(status: &ServerStatus) -> String {
    let tools = match status.tools {
        1 => "1 tool".to_owned(),
        count => format!("{count} tools"),
    };
    let state = match (status.state, &status.last_error) {
        (ServerState::Ready, _) => format!("ready, {tools}"),
        (ServerState::NeedsAuth, _) => "login required".to_owned(),
        (ServerState::Connecting, None) => "starting".to_owned(),
        (ServerState::Connecting | ServerState::Restarting, Some(error)) => {
            format!("restarting: {}", reason(error))
        }
        (state, Some(error)) => format!("{}: {}", state.name(), reason(error)),
        (state, None) => state.name().to_owned(),
    };
    format!("- {}: {state}", status.name)
}

/// The details of a server.
fn table(status: &ServerStatus, uses_logins: bool) -> String {
    let transport = match status.transport {
        ActiveTransport::Stdio => "stdio",
        ActiveTransport::Http => "http",
        ActiveTransport::Sse => "sse",
    };
    let mut lines = vec![
        format!("MCP server of this session:\n{}", line(status)),
        format!("- transport: {transport}, {}", clean(&status.target, LINE)),
    ];
    if let Some(program) = &status.program {
        lines.push(format!("- program: {}", clean(program, LINE)));
    }
    if let Some(version) = &status.protocol_version {
        lines.push(format!("- protocol: {}", clean(version, LINE)));
    }
    lines.push(format!(
        "- tools: {}, resources: {}, prompts: {}",
        status.tools, status.resources, status.prompts
    ));
    lines.push(format!("- calls: {} ({} failed)", status.calls, status.errors));
    if status.state == ServerState::NeedsAuth {
        lines.push(login_hint(status, uses_logins));
    }
    lines.join("\n")
}

fn clean(text: &str, most: usize) -> String {
    clean_line(Untrusted::new(text), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: ServerState, error: Option<ServerError>) -> ServerStatus {
        ServerStatus { name: "x".to_owned(), state, last_error: error, ..ServerStatus::default() }
    }

    fn told(status: &ServerStatus) -> String {
        failure(status, false).map(|failure| failure.message).unwrap_or_default()
    }

    #[test]
    fn a_server_that_was_starting_is_reported_again_when_it_has_failed() {
        let starting = || failure(&status(ServerState::Connecting, None), false).into_iter();
        let failed = || {
            let error = ServerError::new("timed out");
            failure(&status(ServerState::Restarting, Some(error)), false).into_iter()
        };
        let mut reported = BTreeMap::new();
        let mut news = |failures: Vec<ServerFailure>, with_starting| {
            unreported(&mut reported, failures, with_starting).join("\n")
        };
        assert_eq!(news(starting().collect(), false), "", "not yet");
        assert!(
            news(starting().collect(), true)
                .ends_with("it is still starting, and joins when it is ready")
        );
        assert_eq!(news(starting().collect(), true), "", "once");
        assert!(news(failed().collect(), false).ends_with("not available: timed out"));
        assert_eq!(news(failed().collect(), true), "", "once");
        assert_eq!(news(Vec::new(), true), "", "available again");
        assert!(news(failed().collect(), true).ends_with("timed out"));
    }

    #[test]
    fn the_reason_has_the_last_lines_of_stderr() {
        let lines =
            ["one", "Error: API_KEY\u{1b}[2J is not set", "    at main (a.js)", "two", "three"];
        let error = ServerError {
            last_lines: lines.map(ToOwned::to_owned).to_vec(),
            ..ServerError::new("exited with status 1 during startup")
        };
        let told = told(&status(ServerState::Failed, Some(error)));
        let (first, rest) = told.split_once('\n').unwrap();
        assert_eq!(first, "MCP server `x` is not available: exited with status 1 during startup");
        assert!(rest.starts_with("  | Error: API_KEY"), "{rest}");
        assert!(rest.ends_with("is not set\n  | two\n  | three"), "{rest}");
        assert!(!rest.contains('\u{1b}'), "{rest}");
    }

    #[test]
    fn a_rejected_token_is_not_a_missing_one() {
        let missing = told(&status(ServerState::NeedsAuth, None));
        assert!(
            missing.contains("run `openclaw mcp login x`, and set `acp.useLogins"),
            "{missing}"
        );
        let rejected =
            ServerStatus { auth: AuthKind::Header, ..status(ServerState::NeedsAuth, None) };
        assert!(told(&rejected).contains("rejected the token"), "{}", told(&rejected));
    }

    #[test]
    fn states_are_shown_in_plain_words() {
        let error = || Some(ServerError::new("gone"));
        for (state, error, expected) in [
            (ServerState::Ready, None, "- x: ready, 0 tools"),
            (ServerState::NeedsAuth, error(), "- x: login required"),
            (ServerState::Connecting, None, "- x: starting"),
            (ServerState::Connecting, error(), "- x: restarting: gone"),
            (ServerState::Failed, error(), "- x: failed: gone"),
        ] {
            assert_eq!(line(&status(state, error)), expected);
        }
    }
}
