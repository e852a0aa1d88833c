//! `openclaw mcp doctor`: checks each server, with advice for problems.

mod machine;
mod network;
mod variables;

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use openclaw_config::{Config, HttpFlavour, Paths, Transport};
use openclaw_content::{Untrusted, clean_line};
use openclaw_gateway::mcp::unknown_server;
use openclaw_mcp::server::Server;
use openclaw_mcp::server::status::{ActiveTransport, ServerState, ServerStatus};
use openclaw_mcp::server::supervisor::ServerError;
use openclaw_mcp::store::memory::Memory;
use openclaw_secrets::{Environment, SecretRef};
use serde_json::{Value, json};

use super::shell::{OwnServers, with_own_servers};
use crate::cli::DoctorArgs;
use crate::commands::check::{Check, SubjectChecks, Verdict, is_well};
use crate::commands::{LoadedConfig, find_agent, load_config, log_warnings};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, plural};
use crate::state_files;

/// The maximum length of a server's version or name.
const PROGRAM_CHARS: usize = 120;

pub(super) fn doctor(args: &DoctorArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let environment = edge.environment();
    let LoadedConfig { config, report, paths } = load_config(edge, output)?;
    log_warnings(&report);
    let agent = find_agent(&config, args.whose.agent.as_deref())?;
    with_own_servers(&config, agent, &paths, edge, output, async |own, output| {
        let all = own.tools.statuses();
        let is_meant = |it: &&ServerStatus| args.name.as_ref().is_none_or(|name| it.name == *name);
        let statuses: Vec<ServerStatus> = all.iter().filter(is_meant).cloned().collect();
        if let (Some(name), true) = (&args.name, statuses.is_empty()) {
            let known: Vec<&str> = all.iter().map(|status| status.name.as_str()).collect();
            return Err(unknown_server(name, &known).into());
        }
        Ok(show(&examine_all(&statuses, own, &environment).await, edge, output))
    })
}

/// Checks all servers of an agent, for `openclaw doctor`.
pub(in crate::commands) fn findings(
    config: &Config,
    agent: &str,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<Vec<SubjectChecks>, CommandError> {
    let agent = find_agent(config, Some(agent))?;
    let environment = edge.environment();
    let mut findings = Vec::new();
    with_own_servers(config, agent, paths, edge, output, async |own, _| {
        findings = examine_all(&own.tools.statuses(), own, &environment).await;
        Ok(Exit::Ok)
    })?;
    Ok(findings)
}

async fn examine_all(
    statuses: &[ServerStatus],
    own: &OwnServers<'_>,
    environment: &Environment,
) -> Vec<SubjectChecks> {
    own.watching(join_all(statuses.iter().map(|status| examine(status, own, environment)))).await
}

/// Checks a server, cheap checks first. It is started only if they found no problem.
async fn examine(
    status: &ServerStatus,
    own: &OwnServers<'_>,
    environment: &Environment,
) -> SubjectChecks {
    let name = status.name.as_str();
    let checks = match own.tools.server(name) {
        Some(server) => {
            let mut checks = vec![Check::good("enabled, and all variables are set")];
            checks.extend(secrets(name, own).await);
            match &server.connection().transport {
                Transport::Stdio(stdio) => checks.extend(machine::checks(stdio, environment)),
                Transport::Http(http) => checks.extend(network::checks(http, environment).await),
            }
            match checks.iter().find(|check| check.verdict == Verdict::Bad) {
                None => checks.extend(start(server).await),
                // It is not started, so that it cannot report the error itself.
                Some(bad) => {
                    let hint = bad.advice.clone();
                    let error = ServerError { hint, ..ServerError::new(bad.what.clone()) };
                    let folder = state_files::catalogue(own.gateway.state());
                    Memory::of(&folder, name, server.connection()).trouble().keep(error);
                }
            }
            if let (Transport::Stdio(stdio), false) =
                (&server.connection().transport, is_well(&checks))
            {
                let missing = variables::not_passed_on(stdio, environment);
                if !missing.is_empty() {
                    checks.push(variables::note(name, stdio, &missing));
                }
            }
            checks
        }
        None => vec![resting(status)],
    };
    SubjectChecks::new(name, checks)
}

fn resting(status: &ServerStatus) -> Check {
    match (&status.state, &status.last_error) {
        (ServerState::Disabled, _) | (_, None) => Check::note("disabled"),
        (_, Some(trouble)) => Check::bad(&trouble.message, trouble.hint.clone()),
    }
}

async fn secrets(name: &str, own: &OwnServers<'_>) -> Vec<Check> {
    let Some(server) = own.config.mcp.servers.get(name) else { return Vec::new() };
    let credentials = server.connection.credentials();
    let references: Vec<&SecretRef> =
        credentials.iter().flat_map(|(_, template)| template.references()).collect();
    if references.is_empty() {
        return Vec::new();
    }
    let checked = own.gateway.resolver().check_all(references).await;
    let failed = checked.iter().filter_map(|checked| checked.error.as_ref());
    let failed: Vec<Check> = failed
        .map(|error| Check::bad(error.to_string(), error.hint().map(str::to_owned)))
        .collect();
    if failed.is_empty() {
        return vec![Check::good(format!("{}: all resolve", plural(checked.len(), "secret")))];
    }
    failed
}

/// Starts the server, and reports the handshake and its listings.
async fn start(server: &Arc<Server>) -> Vec<Check> {
    let started = Instant::now();
    if let Err(unavailable) = server.ready().await {
        let reason = unavailable.reason();
        let (message, hint, last_lines) = match unavailable.trouble {
            Some(trouble) => (trouble.message, trouble.hint, trouble.last_lines),
            None => (reason, None, Vec::new()),
        };
        let advice = hint.unwrap_or_else(|| look_further(server, !last_lines.is_empty()));
        return vec![Check { last_lines, ..Check::bad(message, Some(advice)) }];
    }
    let took = started.elapsed().as_millis();
    let status = server.status();
    let mut checks = vec![match status.pid {
        Some(pid) => Check::good(format!("started (PID {pid}), responded after {took} ms")),
        None => Check::good(format!("responded after {took} ms")),
    }];
    let version = status.protocol_version.as_deref().unwrap_or("unknown");
    let program = status.program.as_deref().unwrap_or("unnamed program");
    let line = |text| clean_line(Untrusted::new(text), PROGRAM_CHARS);
    checks.push(Check::good(format!("protocol {}, {}", line(version), line(program))));
    if let Transport::Http(http) = &server.connection().transport
        && (http.flavour, status.transport) == (HttpFlavour::Streamable, ActiveTransport::Sse)
    {
        let what = "uses the HTTP+SSE transport of 2024-11-05; set `transport: \"sse\"` in its \
                    entry to try that first";
        checks.push(Check::note(what));
    }
    let (tools, resources, prompts) = (
        plural(status.tools, "tool"),
        plural(status.resources, "resource"),
        plural(status.prompts, "prompt"),
    );
    checks.push(Check::good(format!("{tools}, {resources}, {prompts}")));
    for dropped in &server.cache().inventory().left_out {
        let name = line(&dropped.name);
        checks.push(Check::note(format!("skipped {} `{name}`: {}", dropped.kind, dropped.reason)));
    }
    checks
}

/// Returns the advice for an error without a hint. A local server's log contains its stderr.
fn look_further(server: &Server, wrote: bool) -> String {
    match &server.connection().transport {
        Transport::Stdio(stdio) if !wrote => format!(
            "it wrote nothing to stderr; run it manually: `{}`. If it exits without output, \
             it may not be an MCP server, or may need an argument such as `stdio`",
            machine::command_line(stdio)
        ),
        Transport::Stdio(_) => format!("run `openclaw mcp logs {}`", server.name()),
        Transport::Http(_) => "check the log of the server".to_owned(),
    }
}

fn show(findings: &[SubjectChecks], edge: &Edge, output: &mut Output) -> Exit {
    let well = findings.iter().filter(|finding| finding.is_well()).count();
    let off = findings.iter().filter(|finding| finding.was_left_alone()).count();
    let exit = if well == findings.len() { Exit::Ok } else { Exit::Failed };
    if output.json {
        let servers: Vec<Value> = findings.iter().map(SubjectChecks::to_json).collect();
        output.value(&json!({ "ok": exit == Exit::Ok, "servers": servers }));
        return exit;
    }
    if findings.is_empty() {
        output.line(super::no_servers(edge));
        return exit;
    }
    for finding in findings {
        finding.show(output);
        output.line("");
    }
    output.line(summary(well - off, findings.len() - off, off));
    exit
}

/// Formats the summary: "3 of 4 servers OK, 1 disabled". Disabled servers are not checked.
fn summary(well: usize, tried: usize, off: usize) -> String {
    let looked_at = format!("{well} of {tried} servers OK");
    match (tried, off) {
        (_, 0) => looked_at,
        (0, off) => format!("{} disabled", plural(off, "server")),
        (_, off) => format!("{looked_at}, {off} disabled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_servers_are_counted_separately() {
        assert_eq!(summary(2, 2, 0), "2 of 2 servers OK");
        assert_eq!(summary(3, 4, 2), "3 of 4 servers OK, 2 disabled");
        assert_eq!(summary(0, 1, 1), "0 of 1 servers OK, 1 disabled");
        assert_eq!(summary(0, 0, 1), "1 server disabled");
    }
}
