//! `openclaw mcp status`: all that is to be known about one server (L9).

use std::path::Path;
use std::time::Duration;

use comfy_table::{Attribute, Cell};
use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::mcp::{auth, state};
use openclaw_mcp::fleet::StartMode;
use openclaw_mcp::server::status::{ServerState, ServerStatus, TransportKind};
use openclaw_protocol::mcp::ServerParams;
use openclaw_protocol::rpc;
use serde_json::json;

use super::shell::{servers_of, with_shell};
use crate::cli::StatusArgs;
use crate::commands::link::Servers;
use crate::edge::Edge;
use crate::error::{CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::{Output, printable};

/// How much of what a server says about itself is shown.
const PROGRAM_CHARS: usize = 200;

pub(super) fn status(
    args: &StatusArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    // Why it is not ready is part of its status: one that runs nowhere is started.
    let start = StartMode::Only(args.name.clone());
    let servers = Servers { start, ..servers_of(&args.whose, &args.by, edge) };
    with_shell(servers, flag, edge, output, async |shell, output| {
        shell.tried().await;
        let (agent_id, server) = (args.whose.agent.clone(), args.name.clone());
        let params = ServerParams { agent_id, server };
        let status = shell.ask::<rpc::McpStatus>(params, Some(&args.name)).await?;
        let status: ServerStatus =
            serde_json::from_str(status.get()).context("cannot read the status")?;
        Ok(show(&status, output))
    })
}

fn show(status: &ServerStatus, output: &mut Output) -> Exit {
    let exit = match status.state {
        ServerState::Ready | ServerState::Idle => Exit::Ok,
        _ => Exit::Unavailable,
    };
    if output.json {
        output.value(&json!(status));
        return exit;
    }
    output.table(rows(status).into_iter().map(|(key, value)| {
        vec![Cell::new(key).add_attribute(Attribute::Bold), Cell::new(printable(&value))]
    }));
    exit
}

fn rows(status: &ServerStatus) -> Vec<(&'static str, String)> {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let milliseconds = |value: Option<f64>| or_dash(value.map(|value| format!("{value} ms")));
    let yes_or_no = |value: bool| if value { "yes" } else { "no" }.to_owned();
    let transport = match status.transport {
        TransportKind::Stdio => "stdio",
        TransportKind::Http => "http",
        TransportKind::Sse => "sse",
    };
    let program = status.program.as_deref();
    let program = program.map(|text| clean_line(Untrusted::new(text), PROGRAM_CHARS));
    let mut rows = vec![
        ("Name", status.name.clone()),
        ("State", state(status)),
        ("Transport", transport.to_owned()),
        ("Target", status.target.clone()),
        ("Program", or_dash(program)),
        ("Protocol", or_dash(status.protocol_version.clone())),
        ("Session", or_dash(status.session_id.clone())),
        ("Auth", auth(status.auth).to_owned()),
        ("Lazy", yes_or_no(status.lazy)),
        ("Required", yes_or_no(status.required)),
        ("Uptime", or_dash(status.uptime_ms.map(uptime))),
        ("Restarts", status.restarts.to_string()),
        ("Tools", status.tools.to_string()),
        ("Resources", status.resources.to_string()),
        ("Prompts", status.prompts.to_string()),
        ("Calls", format!("{} ({} failed)", status.calls, status.errors)),
        ("Latency p50", milliseconds(status.p50_ms)),
        ("Latency p95", milliseconds(status.p95_ms)),
    ];
    if let Some(trouble) = &status.last_error {
        rows.push(("Last error", trouble.message.clone()));
        rows.extend(trouble.hint.iter().map(|hint| ("Hint", hint.clone())));
        if !trouble.last_lines.is_empty() {
            rows.push(("Stderr", trouble.last_lines.join("\n")));
        }
    }
    rows
}

fn uptime(ms: u64) -> String {
    format!("{:.1} s", Duration::from_millis(ms).as_secs_f64())
}
