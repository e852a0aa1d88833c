//! `openclaw mcp logs`: what a server wrote to stderr, and what became of it. Nothing is started.

use std::path::Path;
use std::time::Duration;

use openclaw_config::ServerName;
use openclaw_mcp::server_log::{Follower, ServerLog};
use openclaw_protocol::mcp::{LogsParams, LogsResult};
use openclaw_protocol::rpc;
use serde_json::json;

use super::beside::beside;
use super::host;
use crate::cli::LogsArgs;
use crate::commands::with_report;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{Output, printable};

/// How often it is looked for more.
const EVERY: Duration = Duration::from_millis(200);

pub(super) fn logs(args: &LogsArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    if args.follow {
        // A gateway writes to the same file.
        return read(args, flag, edge, output);
    }
    let exit = beside(&args.by, flag, edge, output, async |gateway, output| {
        let lines = u32::try_from(args.lines).unwrap_or(u32::MAX);
        let params = LogsParams { server: args.name.clone(), lines: Some(lines) };
        let result = gateway.ask::<rpc::McpLogs>(params, output).await?;
        Ok(show(&result, args.lines > 0, output))
    });
    exit.unwrap_or_else(|| read(args, flag, edge, output))
}

fn show(result: &LogsResult, is_wanted: bool, output: &mut Output) -> Exit {
    let LogsResult { server, lines } = result;
    if output.json {
        output.value(&json!(result));
    } else if lines.is_empty() && is_wanted {
        output.note(&format!("`{server}` has not been started yet: there is no log"));
    } else {
        lines.iter().for_each(|line| output.line(printable(line)));
    }
    Exit::Ok
}

fn read(args: &LogsArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    with_report(flag, edge, output, |config, _, paths, output| {
        let name = args.name.as_str();
        let folder = host::logs(&paths.state);
        // One at least: whether there is a log must be known.
        let (lines, follower) = match ServerLog::follow(&folder, name, args.lines.max(1)) {
            Ok(found) => found,
            Err(error) => return cannot_be_read(name, &error, output),
        };
        // Of a server that was removed the log may still be there.
        let servers = config.agents.iter().flat_map(|agent| agent.mcp.origins.servers.keys());
        let mut known: Vec<&str> = servers.map(ServerName::as_str).collect();
        known.dedup();
        if lines.is_empty() && !known.contains(&name) {
            return host::unknown_server(name, &known, output);
        }
        let is_wanted = args.lines > 0 || lines.is_empty();
        let lines = if args.lines == 0 { Vec::new() } else { lines };
        if args.follow {
            return follow(name, lines, follower, output);
        }
        show(&LogsResult { server: name.to_owned(), lines }, is_wanted, output)
    })
}

/// Shows lines as they come, until nobody reads them any more. Ctrl-C ends the program: nothing runs that
/// would be left behind.
fn follow(name: &str, mut lines: Vec<String>, mut more: Follower, output: &mut Output) -> Exit {
    while !output.has_failed() {
        for line in &lines {
            match output.json {
                true => output.line(json!({ "server": name, "line": line })),
                false => output.line(printable(line)),
            }
        }
        output.flush();
        std::thread::sleep(EVERY);
        lines = match more.added() {
            Ok(lines) => lines,
            Err(error) => return cannot_be_read(name, &error, output),
        };
    }
    Exit::Ok
}

fn cannot_be_read(name: &str, error: &std::io::Error, output: &mut Output) -> Exit {
    output.problem(&format!("the log of `{name}` cannot be read: {error}"), None);
    Exit::Failed
}
