//! `openclaw mcp servers`: starts all servers, and shows their state.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use openclaw_content::{Untrusted, clean_line, wrap_words};
use openclaw_gateway::mcp::ListedServer;
use openclaw_mcp::server::StartMode;
use openclaw_mcp::server::status::{AuthKind, ServerState, ServerStatus};
use openclaw_protocol::mcp::{GrantInfo, ServersParams, ServersResult};
use openclaw_protocol::rpc;
use serde_json::json;

use super::shell::{servers_of, with_shell};
use super::status::login;
use crate::cli::ServersArgs;
use crate::commands::link::{Servers, missing_servers};
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::Output;
use openclaw_terminal::style::{BAD, FAINT, GOOD, STRONG, WARNING};

/// The least and the greatest width of the column of names.
const NAME_COLUMN: (usize, usize) = (14, 30);
/// In a narrower list, names have lines of their own.
const NARROW: usize = 76;
/// How far the rest is indented then.
const INDENT: usize = 2;
/// The width of most entries beside their name.
const ENTRY: usize = 60;
/// The longest rule.
const RULE: usize = 72;

pub(super) fn servers(args: &ServersArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let servers = Servers { start: StartMode::Eager, ..servers_of(&args.context, edge) };
    with_shell(servers, edge, output, async |shell, output| {
        shell.tried().await;
        let params = ServersParams { agent_id: args.context.agent.clone() };
        let result = shell.ask::<rpc::McpServers>(params, None).await?;
        let servers = result.servers.iter();
        let statuses: Vec<ServerStatus> =
            servers.filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
        let mut logins = BTreeMap::new();
        for status in statuses.iter().filter(|it| output.json && it.auth == AuthKind::OAuth) {
            if let Some(grant) = login(shell, &args.context, status).await {
                logins.insert(status.name.clone(), grant);
            }
        }
        tell(&result, &statuses, &logins, edge, output)
    })
}

fn tell(
    result: &ServersResult,
    statuses: &[ServerStatus],
    logins: &BTreeMap<String, GrantInfo>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    if output.json {
        let mut value = json!(result);
        for server in value["servers"].as_array_mut().into_iter().flatten() {
            let login = server["name"].as_str().and_then(|name| logins.get(name));
            if let Some(login) = login {
                server["login"] = json!(login);
            }
        }
        output.value(&value);
    } else if statuses.is_empty() {
        output.line(super::no_servers(edge));
    } else {
        show(statuses, output);
    }
    match result.missing.is_empty() {
        true => Ok(Exit::Ok),
        // The result itself reports them.
        false if output.json => Ok(Exit::Unavailable),
        false => Err(missing_servers(&result.missing)),
    }
}

/// Shows servers with their state, and the last error of those that have one.
pub(crate) fn show(statuses: &[ServerStatus], output: &mut Output) {
    let width = usize::from(output.width());
    let rule = "─".repeat(RULE.min(width));
    let (least, most) = NAME_COLUMN;
    let longest = statuses.iter().map(|status| status.name.chars().count()).max().unwrap_or(0);
    let column = match width {
        ..NARROW => INDENT,
        width => longest.clamp(least, most.min(width.saturating_sub(ENTRY)).max(least)) + 2,
    };
    let entries = statuses.iter().map(|status| entry(&ListedServer::new(status), column, width));
    let entries = entries.collect::<Vec<_>>().join("\n\n");
    output.laid_out(&format!(
        "{STRONG}MCP Servers ({} configured){STRONG:#}\n{FAINT}{rule}{FAINT:#}\n{entries}\n{FAINT}{rule}{FAINT:#}",
        statuses.len(),
    ));
}

fn entry(server: &ListedServer, column: usize, width: usize) -> String {
    let room = width.saturating_sub(column + 3).max(20);
    let (name, target) = (&server.name, clean(&server.target, room));
    // Names are never truncated: users type them.
    let is_beside = name.chars().count() + 2 <= column && !target.is_empty();
    let mut text = match is_beside {
        true => format!("  {STRONG}{name:column$}{STRONG:#}{target}"),
        false if target.is_empty() => format!("  {STRONG}{name}{STRONG:#}"),
        false => format!("  {STRONG}{name}{STRONG:#}\n  {:column$}{target}", ""),
    };
    let color = match server.state {
        ServerState::Ready => GOOD,
        ServerState::Disabled | ServerState::Idle | ServerState::Connecting => FAINT,
        ServerState::Restarting => WARNING,
        _ => BAD,
    };
    let room_for_state = room.saturating_sub("Status: ".len());
    let state = clean(&server.state_text, room_for_state);
    let details = server.details(room_for_state.saturating_sub(state.chars().count()));
    let _ = write!(text, "\n  {:column$}Status: {color}{state}{color:#}{details}", "");
    for (mark, part) in &server.error {
        for (at, line) in wrap_words(part, room.saturating_sub(2)).iter().enumerate() {
            let mark = if at == 0 { mark } else { " " };
            let _ = write!(text, "\n  {:column$}{BAD}{mark}{BAD:#} {line}", "");
        }
    }
    text
}

fn clean(text: &str, most: usize) -> String {
    clean_line(Untrusted::new(text), most)
}
