//! `openclaw mcp servers`: all servers, started, and how they are.

use std::path::Path;

use openclaw_gateway::mcp::{auth, state, telling_line};
use openclaw_mcp::fleet::StartMode;
use openclaw_mcp::server::status::{ServerState, ServerStatus, TransportKind};
use openclaw_protocol::mcp::{ServersParams, ServersResult};
use openclaw_protocol::rpc;
use serde_json::json;

use super::shell::{servers_of, with_shell};
use crate::cli::ServersArgs;
use crate::commands::link::{Servers, missing_servers};
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::{BAD, FAINT, GOOD, Output, STRONG, WARNING, cut, lines_of, printable};

/// The names' column is at least as wide as this, and no wider than that.
const NAME_COLUMN: (usize, usize) = (14, 30);
/// On a narrower terminal, names stand in lines of their own.
const NARROW: u16 = 76;
/// How far the rest is then moved in.
const INDENT: usize = 2;
/// What mostly stands beside a name takes so much.
const BESIDE: usize = 60;
/// The longest rule.
const RULE: usize = 72;

pub(super) fn servers(
    args: &ServersArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let servers = Servers { start: StartMode::Eager, ..servers_of(&args.whose, &args.by, edge) };
    with_shell(servers, flag, edge, output, async |shell, output| {
        shell.tried().await;
        let params = ServersParams { agent_id: args.whose.agent.clone() };
        let result = shell.ask::<rpc::McpServers>(params, None).await?;
        tell(&result, output)
    })
}

fn tell(result: &ServersResult, output: &mut Output) -> CommandResult {
    let servers = result.servers.iter();
    let statuses: Vec<ServerStatus> =
        servers.filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
    if output.json {
        output.value(&json!(result));
    } else if statuses.is_empty() {
        output.line("No MCP servers. Run `openclaw mcp add` to add one.");
    } else {
        show(&statuses, output);
    }
    match result.missing.is_empty() {
        true => Ok(Exit::Ok),
        // The result itself says so.
        false if output.json => Ok(Exit::Unavailable),
        false => Err(missing_servers(&result.missing)),
    }
}

/// Servers, and how they are, for people.
pub(crate) fn show(statuses: &[ServerStatus], output: &mut Output) {
    let rule = "─".repeat(usize::from(output.width()).min(RULE));
    let (least, most) = NAME_COLUMN;
    let longest = statuses.iter().map(|status| status.name.chars().count()).max().unwrap_or(0);
    let column = match output.width() {
        ..NARROW => INDENT,
        width => {
            let most = most.min(usize::from(width).saturating_sub(BESIDE)).max(least);
            longest.clamp(least, most) + 2
        }
    };
    output.line(format_args!(
        "{STRONG}MCP Servers ({} configured){STRONG:#}\n{FAINT}{rule}{FAINT:#}",
        statuses.len()
    ));
    for (at, status) in statuses.iter().enumerate() {
        if at > 0 {
            output.line("");
        }
        show_one(status, column, output);
    }
    output.line(format_args!("{FAINT}{rule}{FAINT:#}"));
}

fn show_one(status: &ServerStatus, column: usize, output: &mut Output) {
    let room = usize::from(output.width()).saturating_sub(column + 3).max(20);
    let target = match status.transport {
        TransportKind::Stdio if !status.target.is_empty() => format!("stdio://{}", status.target),
        _ => status.target.clone(),
    };
    let (name, target) = (&status.name, cut(&printable(&target), room));
    let style = match status.state {
        ServerState::Ready => GOOD,
        ServerState::Disabled | ServerState::Idle | ServerState::Connecting => FAINT,
        ServerState::Restarting => WARNING,
        _ => BAD,
    };
    // A name is never cut: it is what people type.
    let beside = name.chars().count() + 2 <= column && !target.is_empty();
    match beside {
        true => output.line(format_args!("  {STRONG}{name:column$}{STRONG:#}{target}")),
        false => {
            output.line(format_args!("  {STRONG}{name}{STRONG:#}"));
            if !target.is_empty() {
                output.line(format_args!("  {:column$}{target}", ""));
            }
        }
    }
    let room_after_label = room.saturating_sub("Status: ".len());
    let state = cut(&state(status), room_after_label);
    let rest = beside_state(status, room_after_label.saturating_sub(state.chars().count()));
    output.line(format_args!("  {:column$}Status: {style}{state}{style:#}{rest}", ""));
    let Some(trouble) = &status.last_error else { return };
    let mut tell = |mark: &str, text: &str| {
        for (at, line) in lines_of(&printable(text), room.saturating_sub(2)).iter().enumerate() {
            let mark = if at == 0 { mark } else { " " };
            output.line(format_args!("  {:column$}{BAD}{mark}{BAD:#} {line}", ""));
        }
    };
    tell("✗", &trouble.message);
    if let Some(line) = telling_line(&trouble.last_lines) {
        tell("|", line);
    }
    if let Some(hint) = &trouble.hint {
        tell("→", hint);
    }
}

/// What follows upon the state: where it is narrow, how many tools there are counts for more than how we
/// log in.
fn beside_state(status: &ServerStatus, room: usize) -> String {
    let (auth, tools) = (auth(status.auth), status.tools);
    let all = format!(" | Auth: {auth} | Tools: {tools}");
    let fewer = format!(" | Tools: {tools}");
    [all, fewer].into_iter().find(|text| text.chars().count() <= room).unwrap_or_default()
}
