//! `openclaw mcp logs`: what a server wrote to stderr, and what became of it. Nothing is started.

use std::path::Path;

use openclaw_config::ServerName;
use openclaw_mcp::server_log::ServerLog;
use serde_json::json;

use super::host;
use crate::cli::LogsArgs;
use crate::commands::with_state;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{Output, printable};

pub(super) fn logs(args: &LogsArgs, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    with_state(flag, edge, output, |config, paths, output| {
        let name = args.name.as_str();
        let folder = host::logs(&paths.state);
        // One at least: whether there is a log must be known.
        let lines = match ServerLog::tail(&folder, name, args.lines.max(1)) {
            Ok(lines) => lines,
            Err(error) => {
                output.problem(&format!("the log of `{name}` cannot be read: {error}"), None);
                return Exit::Failed;
            }
        };
        // Of a server that was removed the log may still be there.
        let servers = config.agents.iter().flat_map(|agent| agent.mcp.origins.servers.keys());
        let mut known: Vec<&str> = servers.map(ServerName::as_str).collect();
        known.dedup();
        if lines.is_empty() && !known.contains(&name) {
            return host::unknown_server(name, &known, output);
        }
        let wanted = if args.lines == 0 { &[][..] } else { &lines[..] };
        if output.json {
            output.value(&json!({ "server": name, "lines": wanted }));
        } else if lines.is_empty() {
            output.note(&format!("`{name}` has not been started yet: there is no log"));
        } else {
            wanted.iter().for_each(|line| output.line(printable(line)));
        }
        Exit::Ok
    })
}
