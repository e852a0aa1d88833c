//! `openclaw mcp doctor`: for each server what is well, what is not, and what to do about it.

mod machine;
mod network;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use openclaw_config::{HttpFlavour, Transport};
use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::server::Server;
use openclaw_mcp::status::{ServerState, ServerStatus, TransportKind};
use openclaw_secrets::{Environment, SecretRef};
use serde_json::{Value, json};

use super::host::{Need, Session, unknown_server, with_session};
use crate::cli::DoctorArgs;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{BAD, FAINT, GOOD, Output, STRONG, lines_of, plural, printable};

/// How much of what a server says about itself is shown.
const PROGRAM_CHARS: usize = 120;

/// One thing that was looked at.
#[derive(Debug)]
struct Check {
    verdict: Verdict,
    what: String,
    /// What to do about it.
    advice: Option<String>,
    /// What the server wrote last.
    last_lines: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    Bad,
    /// Worth knowing, and no fault.
    Note,
}

impl Check {
    fn new(verdict: Verdict, what: impl Into<String>) -> Self {
        Self { verdict, what: what.into(), advice: None, last_lines: Vec::new() }
    }

    fn good(what: impl Into<String>) -> Self {
        Self::new(Verdict::Good, what)
    }

    fn note(what: impl Into<String>) -> Self {
        Self::new(Verdict::Note, what)
    }

    fn bad(what: impl Into<String>, advice: Option<String>) -> Self {
        Self { advice, ..Self::new(Verdict::Bad, what) }
    }
}

/// What was found out about one server.
struct Finding {
    server: String,
    checks: Vec<Check>,
}

impl Finding {
    fn is_well(&self) -> bool {
        is_well(&self.checks)
    }
}

fn is_well(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.verdict != Verdict::Bad)
}

pub(super) fn doctor(
    args: &DoctorArgs,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let need = Need::of(&args.whose);
    let environment = edge.environment();
    with_session(need, flag, edge, output, async |session, output| {
        let mut statuses = session.tools.statuses();
        if let Some(name) = &args.name {
            statuses.retain(|status| status.name == *name);
            if statuses.is_empty() {
                return unknown_server(name, &session.names(), output);
            }
        }
        let servers: Vec<Arc<Server>> = statuses
            .iter()
            .filter_map(|status| session.tools.server(&status.name).map(Arc::clone))
            .collect();
        let examined =
            join_all(statuses.iter().map(|status| examine(status, session, &environment)));
        let findings = session.watching(&servers, examined).await;
        show(&findings, output)
    })
}

/// What can be found out about a server, cheap things first. What would only repeat a fault that was
/// found is not tried.
async fn examine(status: &ServerStatus, session: &Session, environment: &Environment) -> Finding {
    let name = status.name.as_str();
    let checks = match session.tools.server(name) {
        Some(server) => {
            let mut checks = vec![Check::good("it is switched on, and its variables are set")];
            checks.extend(secrets(name, session).await);
            match &server.config().transport {
                Transport::Stdio(stdio) => checks.extend(machine::checks(stdio, environment)),
                Transport::Http(http) => checks.extend(network::checks(http, environment).await),
            }
            if is_well(&checks) {
                checks.extend(start(server).await);
            }
            checks
        }
        None => vec![resting(status)],
    };
    Finding { server: name.to_owned(), checks }
}

fn resting(status: &ServerStatus) -> Check {
    match (&status.state, &status.last_error) {
        (ServerState::Disabled, _) | (_, None) => Check::note("it is switched off"),
        (_, Some(trouble)) => Check::bad(&trouble.message, trouble.hint.clone()),
    }
}

async fn secrets(name: &str, session: &Session) -> Vec<Check> {
    let Some(server) = session.config.mcp.servers.get(name) else { return Vec::new() };
    let credentials = server.credentials();
    let references: Vec<&SecretRef> =
        credentials.iter().flat_map(|(_, template)| template.references()).collect();
    if references.is_empty() {
        return Vec::new();
    }
    let checked = session.resolver.check_all(references).await;
    let failed = checked.iter().filter_map(|checked| checked.error.as_ref());
    let failed: Vec<Check> = failed
        .map(|error| Check::bad(error.to_string(), error.hint().map(str::to_owned)))
        .collect();
    if failed.is_empty() {
        return vec![Check::good(format!("{}: all resolve", plural(checked.len(), "secret")))];
    }
    failed
}

/// Starts it, shakes hands, and lists what it has.
async fn start(server: &Arc<Server>) -> Vec<Check> {
    let started = Instant::now();
    if let Err(unavailable) = server.ready().await {
        let reason = unavailable.reason();
        let (message, hint, last_lines) = match unavailable.trouble {
            Some(trouble) => (trouble.message, trouble.hint, trouble.last_lines),
            None => (reason, None, Vec::new()),
        };
        let look = || Some(format!("`openclaw mcp logs {}` shows more", server.name()));
        let advice = hint.or_else(look);
        return vec![Check { last_lines, ..Check::bad(message, advice) }];
    }
    let took = started.elapsed().as_millis();
    let status = server.status();
    let mut checks = vec![match status.pid {
        Some(pid) => Check::good(format!("it starts (PID {pid}), and answers after {took} ms")),
        None => Check::good(format!("it answers after {took} ms")),
    }];
    let version = status.protocol_version.as_deref().unwrap_or("unknown");
    let program = status.program.as_deref().unwrap_or("a program without a name");
    let line = |text| clean_line(Untrusted::new(text), PROGRAM_CHARS);
    checks.push(Check::good(format!("protocol {}, {}", line(version), line(program))));
    if let Transport::Http(http) = &server.config().transport
        && (http.flavour, status.transport) == (HttpFlavour::Streamable, TransportKind::Sse)
    {
        let what = "it speaks the transport of 2024-11-05: with `transport: \"sse\"` in its entry \
                    nothing else is tried first";
        checks.push(Check::note(what));
    }
    let (tools, resources, prompts) = (
        plural(status.tools, "tool"),
        plural(status.resources, "resource"),
        plural(status.prompts, "prompt"),
    );
    checks.push(Check::good(format!("it has {tools}, {resources}, {prompts}")));
    for dropped in &server.shelf().inventory().left_out {
        let name = line(&dropped.name);
        checks.push(Check::note(format!("`{name}` is left out: {}", dropped.reason)));
    }
    checks
}

fn show(findings: &[Finding], output: &mut Output) -> Exit {
    let well = findings.iter().filter(|finding| finding.is_well()).count();
    let exit = if well == findings.len() { Exit::Ok } else { Exit::Failed };
    if output.json {
        let servers: Vec<Value> = findings.iter().map(to_json).collect();
        output.value(&json!({ "ok": exit == Exit::Ok, "servers": servers }));
        return exit;
    }
    if findings.is_empty() {
        output.line("There are no servers. `openclaw mcp add` adds one.");
        return exit;
    }
    for finding in findings {
        output.line(format_args!("{STRONG}{}{STRONG:#}", finding.server));
        finding.checks.iter().for_each(|check| show_check(check, output));
        output.line("");
    }
    let are = if findings.len() == 1 { "is" } else { "are" };
    output.line(format_args!("{well} of {} {are} well", plural(findings.len(), "server")));
    exit
}

fn show_check(check: &Check, output: &mut Output) {
    let (mark, style) = match check.verdict {
        Verdict::Good => ("✓", GOOD),
        Verdict::Bad => ("✗", BAD),
        Verdict::Note => ("·", FAINT),
    };
    let room = usize::from(output.width()).saturating_sub(6).max(20);
    for (at, line) in lines_of(&printable(&check.what), room).iter().enumerate() {
        let mark = if at == 0 { mark } else { " " };
        output.line(format_args!("  {style}{mark}{style:#} {line}"));
    }
    for line in &check.last_lines {
        output.line(format_args!("    {FAINT}| {}{FAINT:#}", printable(line)));
    }
    if let Some(advice) = &check.advice {
        for (at, line) in lines_of(&printable(advice), room.saturating_sub(2)).iter().enumerate() {
            let mark = if at == 0 { "→" } else { " " };
            output.line(format_args!("    {mark} {line}"));
        }
    }
}

fn to_json(finding: &Finding) -> Value {
    let checks = finding.checks.iter().map(|check| {
        json!({
            "verdict": match check.verdict {
                Verdict::Good => "good",
                Verdict::Bad => "bad",
                Verdict::Note => "note",
            },
            "what": check.what,
            "advice": check.advice,
            "lastLines": check.last_lines,
        })
    });
    let checks: Vec<Value> = checks.collect();
    json!({ "name": finding.server, "ok": finding.is_well(), "checks": checks })
}
