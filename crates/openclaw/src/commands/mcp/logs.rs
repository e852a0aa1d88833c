//! `openclaw mcp logs`: a server's stderr and its state changes. Nothing is started.

use std::time::Duration;

use openclaw_config::ServerName;
use openclaw_gateway::mcp::unknown_server;
use openclaw_mcp_client::log::{Follower, ServerLog};
use openclaw_protocol::mcp::{LogsParams, LogsResult};
use openclaw_protocol::rpc;
use serde_json::json;

use super::shell::{servers_of, with_shell};
use crate::cli::{ContextArgs, LogsArgs};
use crate::commands::{LoadedConfig, load_config};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, printable};
use crate::state_files;

/// The interval of polling for new lines.
const EVERY: Duration = Duration::from_millis(200);

pub(super) fn logs(args: &LogsArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    if args.follow {
        // Every process that runs the server writes to the same file.
        return follow(args, edge, output);
    }
    let context = ContextArgs { agent: None, no_gateway: args.no_gateway };
    let servers = servers_of(&context, edge);
    with_shell(servers, edge, output, async |shell, output| {
        let lines = u32::try_from(args.lines).unwrap_or(u32::MAX);
        let params = LogsParams { server: args.name.clone(), lines: Some(lines) };
        let result = shell.ask::<rpc::McpLogs>(params, None).await?;
        Ok(show(&result, args.lines > 0, output))
    })
}

fn show(result: &LogsResult, is_wanted: bool, output: &mut Output) -> Exit {
    let LogsResult { server, lines } = result;
    if output.json {
        output.value(&json!(result));
    } else if lines.is_empty() && is_wanted {
        output.note(&format!("`{server}` has no log: it has not been started yet"));
    } else {
        lines.iter().for_each(|line| output.line(printable(line)));
    }
    Exit::Ok
}

fn follow(args: &LogsArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let LoadedConfig { config, paths, .. } = load_config(edge, output)?;
    let name = args.name.as_str();
    // At least one line, to detect whether there is a log.
    let followed = ServerLog::follow(&state_files::logs(&paths.state), name, args.lines.max(1));
    let (lines, follower) = followed.map_err(|error| cannot_be_read(name, &error))?;
    // The log of a removed server may still exist.
    let servers = config.agents.iter().flat_map(|agent| agent.mcp.origins.servers.keys());
    let mut known: Vec<&str> = servers.map(ServerName::as_str).collect();
    known.dedup();
    if lines.is_empty() && !known.contains(&name) {
        return Err(unknown_server(name, &known).into());
    }
    let lines = if args.lines == 0 { Vec::new() } else { lines };
    show_added(name, lines, follower, output)
}

/// Prints new lines until stdout is closed. Ctrl-C kills the process, which has no children.
fn show_added(
    name: &str,
    mut lines: Vec<String>,
    mut more: Follower,
    output: &mut Output,
) -> CommandResult {
    while !output.has_failed() {
        for line in &lines {
            match output.json {
                true => output.document(&json!({ "server": name, "line": line }).to_string()),
                false => output.line(printable(line)),
            }
        }
        output.flush();
        std::thread::sleep(EVERY);
        lines = more.added().map_err(|error| cannot_be_read(name, &error))?;
    }
    Ok(Exit::Ok)
}

fn cannot_be_read(name: &str, error: &std::io::Error) -> CommandError {
    CommandError::failed(format!("cannot read the log of `{name}`: {error}"))
}
