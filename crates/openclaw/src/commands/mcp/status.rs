//! `openclaw mcp status`: all that is to be known about one server (L9).

use std::path::Path;
use std::time::Duration;

use comfy_table::{Attribute, Cell};
use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::mcp::{auth, state};
use openclaw_mcp::status::{ServerState, ServerStatus, TransportKind};
use openclaw_protocol::mcp::ServerParams;
use openclaw_protocol::rpc;
use serde_json::json;

use super::beside::beside;
use super::host::{Need, Session, unknown_server, with_session};
use crate::cli::StatusArgs;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{Output, printable};

/// How much of what a server says about itself is shown.
const PROGRAM_CHARS: usize = 200;

pub(super) fn status(
    args: &StatusArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let exit = beside(&args.by, flag, edge, output, async |gateway, output| {
        let (agent_id, server) = (args.whose.agent.clone(), args.name.clone());
        let params = ServerParams { agent_id, server };
        let status = gateway.ask::<rpc::McpStatus>(params, output).await?;
        let status: ServerStatus = serde_json::from_str(status.get()).map_err(|error| {
            output.problem(&format!("the status cannot be read: {error}"), None);
            Exit::Failed
        })?;
        Ok(show(&status, output))
    });
    exit.unwrap_or_else(|| {
        let need = Need::of(&args.whose);
        with_session(need, flag, edge, output, async |session, output| {
            if let Some(server) = session.tools.server(&args.name) {
                // Why it is not ready is part of its status.
                let _ = session.start(server).await;
            }
            match current(&args.name, session) {
                Some(status) => show(&status, output),
                None => unknown_server(&args.name, &session.names(), output),
            }
        })
    })
}

fn current(name: &str, session: &Session) -> Option<ServerStatus> {
    let mut status = session.tools.statuses().into_iter().find(|status| status.name == name)?;
    if let Some(server) = session.tools.server(name) {
        status.lazy = session.is_lazy(server);
    }
    Some(status)
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
        rows.extend(trouble.hint.iter().map(|hint| ("What to do", hint.clone())));
        if !trouble.last_lines.is_empty() {
            rows.push(("Its stderr", trouble.last_lines.join("\n")));
        }
    }
    rows
}

fn uptime(ms: u64) -> String {
    format!("{:.1} s", Duration::from_millis(ms).as_secs_f64())
}
