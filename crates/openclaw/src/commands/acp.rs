//! `openclaw acp`: an agent for editors, over stdin and stdout.

use std::cell::Cell;
use std::io::{BufRead as _, IsTerminal as _, Read as _, stdin};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use openclaw_acp::{AcpOptions, ServerSetup, serve};
use openclaw_config::Severity;
use openclaw_mcp::services::CallServices;
use openclaw_mcp_server::hub::stdio;
use serde_json::{Value, json};

use super::link::{self, ClientRole, GatewayTarget, Need, StdioGateway};
use super::workspace::EditorFolders;
use crate::cli::AcpArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandFailure, CommandResult};
use crate::output::Output;
use crate::state_files;

/// How long the first prompt waits for MCP servers of the editor.
const SERVERS: Duration = Duration::from_secs(20);
/// Maximum size of a first request that is answered with an error, in bytes, and how long it may take
/// to arrive.
const FIRST_REQUEST: u64 = 1024 * 1024;
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Maximum number of errors of the configuration in an answer.
const MAX_ERRORS: usize = 5;

pub(crate) fn acp(args: &AcpArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let is_serving = Cell::new(false);
    let result = run(args, edge, output, &is_serving);
    if let (Err(CommandError::Failed(failure)), false) = (&result, is_serving.get()) {
        refuse(failure, output);
    }
    result
}

/// Answers the first request of the client with the error: few editors show stderr.
fn refuse(failure: &CommandFailure, output: &mut Output) {
    if stdin().is_terminal() {
        return;
    }
    let (sender, line) = mpsc::channel();
    // Not joined: it may be blocked on stdin until the process exits, which is now.
    let _ = thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut line = String::new();
        let read = stdin().lock().take(FIRST_REQUEST).read_line(&mut line);
        let _ = sender.send(read.map(|_| line));
    });
    let Ok(Ok(line)) = line.recv_timeout(FIRST_WAIT) else { return };
    let request: Value = serde_json::from_str(&line).unwrap_or_default();
    let id = &request["id"];
    if request["method"].is_string() && (id.is_string() || id.is_number()) {
        let error = json!({ "code": -32603, "message": describe(failure) });
        output.line(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }
}

/// What is also printed to stderr, without the source lines of the configuration.
fn describe(failure: &CommandFailure) -> String {
    let mut lines = vec![failure.line()];
    if let Some(report) = &failure.report {
        let errors = report.diagnostics().iter().filter(|it| it.severity() == Severity::Error);
        lines.extend(errors.take(MAX_ERRORS).map(|error| {
            let place = report.location(error).map(|it| format!("{it}: ")).unwrap_or_default();
            let advice = error.advice().map(|it| format!(" ({it})")).unwrap_or_default();
            format!("{place}{}{advice}", error.message())
        }));
        lines.push("run `openclaw config validate` for details".to_owned());
    }
    lines.extend(failure.hint.clone());
    lines.join("\n")
}

fn run(args: &AcpArgs, edge: &Edge, output: &mut Output, is_serving: &Cell<bool>) -> CommandResult {
    // The user can be asked, through the editor.
    let need = Need::Agents(ClientRole::Chatting);
    let max_servers = edge.editor_limit("OPENCLAW_ACP_MAX_SERVERS")?;
    let max_tools = edge.editor_limit("OPENCLAW_ACP_MAX_TOOLS")?;
    let folder = edge.folder()?;
    let target = GatewayTarget::find(&args.gateway, edge)?;
    let is_elsewhere = target.named().is_some();
    let gateway = StdioGateway { target, need, edge };
    gateway.serve(output, |client, output| {
        is_serving.set(true);
        let mut config = client.config;
        config.acp.max_servers = max_servers.unwrap_or(config.acp.max_servers);
        config.acp.max_tools = max_tools.unwrap_or(config.acp.max_tools);
        let editor_folders = EditorFolders::new(&config, &client.paths, is_elsewhere, edge);
        let spill = state_files::spill(&client.paths.state, output);
        let servers = ServerSetup {
            context: link::dial_context(&config, &client.paths, edge),
            config,
            services: CallServices { spill, tracer: edge.tracer.clone(), ..CallServices::none() },
            patience: SERVERS,
        };
        let options = AcpOptions {
            connect: client.connect,
            works_in: Box::new(move |agent, folder| editor_folders.are_used(agent, folder)),
            agent: args.agent.clone(),
            folder,
            servers,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        async {
            let (input, out) = stdio();
            let served = serve(options, input, out).await;
            served.map_err(|error| error.to_string())
        }
    })
}
