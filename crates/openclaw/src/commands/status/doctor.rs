//! `openclaw doctor`: like `status`, but also starts servers and opens the database.

use openclaw_config::{Config, Paths, Report, ServerConfig, ServerName};
use openclaw_sessions::{ListFilter, SessionStore as _, SqliteStore};
use serde_json::Value;

use super::{files, logins, look, remote, show};
use crate::cli::GatewayChoice;
use crate::commands::check::{Check, SubjectChecks, Verdict, is_well};
use crate::commands::gateway::gateway_state;
use crate::commands::link::GatewayTarget;
use crate::commands::{block_on, mcp};
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, chain};
use crate::output::{Output, plural};

pub(crate) fn doctor(edge: &Edge, output: &mut Output) -> CommandResult {
    let paths = edge.paths()?;
    let loaded = edge.load(&paths.config);
    let target = GatewayTarget::find(&GatewayChoice::default(), edge)?;
    let (gateway, mut findings) = block_on(async {
        let gateway_state = gateway_state(&paths.state, edge).await;
        let mut gateway = gateway_state.to_json();
        let mut findings = Box::pin(look(&paths, &loaded, &gateway_state, edge)).await;
        // The one that commands use.
        if let GatewayTarget::Named(named) = &target {
            let remote = remote::look(named, edge).await;
            gateway = remote.to_json();
            for finding in findings.iter_mut().filter(|finding| finding.about == "Gateway") {
                *finding = remote.finding();
            }
        }
        findings.push(SubjectChecks::new("Sessions", database(&paths).await));
        findings.push(SubjectChecks::new("Logins", logins::checks(&paths.state, edge).await));
        findings
            .push(SubjectChecks::new("Permissions", permissions(loaded.config.as_ref(), &paths)));
        Ok((gateway, findings))
    })?;
    if let Some(first) = findings.first_mut() {
        let told = diagnostics(&loaded.report.for_validation());
        // Each error is a problem of its own, their summary is not another one.
        if !is_well(&told) {
            for check in &mut first.checks {
                (check.verdict, check.advice) = (Verdict::Note, None);
            }
        }
        first.checks.extend(told);
    }
    if let Some(config) = &loaded.config {
        let servers = servers(config, &paths, edge, output)?;
        // Replaced by a finding for each server; without any, it says why there are none.
        if !servers.is_empty() {
            findings.retain(|finding| finding.about != "Servers");
        }
        findings.extend(servers);
    }
    Ok(show(&findings, &gateway, &paths, output))
}

/// Returns the errors and warnings about the configuration.
fn diagnostics(report: &Report) -> Vec<Check> {
    let told = serde_json::to_value(report.to_json()).unwrap_or_default();
    let told = told.as_array().into_iter().flatten();
    told.filter_map(|it| {
        let text = |key: &str| it.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
        let what = format!("{}{}", text("message")?, place(it).unwrap_or_default());
        match text("severity")?.as_str() {
            "error" => Some(Check::bad(what, text("help"))),
            "warning" => Some(Check::note(what)),
            _ => None,
        }
    })
    .collect()
}

/// Returns the place of a diagnostic: ` (file:line:column)`.
fn place(diagnostic: &Value) -> Option<String> {
    let location = diagnostic.get("location")?;
    let number = |key: &str| location.get(key).and_then(Value::as_u64);
    let file = location.get("file")?.as_str()?;
    Some(format!(" ({file}:{}:{})", number("line")?, number("column")?))
}

/// Starts every server of every agent, once each.
fn servers(
    config: &Config,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<Vec<SubjectChecks>, CommandError> {
    let mut all = Vec::new();
    for (at, agent) in config.agents.iter().enumerate() {
        let mut agent = agent.clone();
        let before = config.agents.get(..at).unwrap_or_default();
        let is_new = |name: &ServerName, server: &ServerConfig| {
            !before.iter().any(|other| other.mcp.servers.get(name) == Some(server))
        };
        agent.mcp.servers.retain(|name, server| is_new(name, server));
        agent.mcp.held_back.retain(|name, held_back| {
            !before.iter().any(|other| other.mcp.held_back.get(name) == Some(held_back))
        });
        let id = agent.id.to_string();
        let only = Config { agents: vec![agent], ..config.clone() };
        let findings = mcp::findings(&only, &id, paths, edge, output)?;
        all.extend(findings.into_iter().map(|finding| {
            let of = if at == 0 { String::new() } else { format!(" (agent {id})") };
            SubjectChecks::new(format!("Server {}{of}", finding.about), finding.checks)
        }));
    }
    Ok(all)
}

/// Checks that the database of conversations can be opened and read.
async fn database(paths: &Paths) -> Vec<Check> {
    let file = paths.state.join("sessions.db");
    if !file.exists() {
        return vec![Check::note("none yet")];
    }
    let opened = match SqliteStore::open(&file).await {
        Ok(opened) => opened,
        Err(error) => {
            let advice = format!("check the owner of {}, and the free disk space", file.display());
            return vec![Check::bad(chain(&error), Some(advice))];
        }
    };
    let mut checks: Vec<Check> =
        opened.note.into_iter().map(|note| Check::bad(note, None)).collect();
    checks.push(match opened.store.list(ListFilter::default()).await {
        Ok(listed) => Check::good(format!("{} readable", plural(listed.len(), "session"))),
        Err(error) => Check::bad(error.to_string(), None),
    });
    opened.store.close().await;
    checks
}

fn permissions(config: Option<&Config>, paths: &Paths) -> Vec<Check> {
    let mut checks = files::permissions(&paths.state);
    let plain = config.into_iter().flat_map(|config| &config.agents);
    let mut plain: Vec<&str> = plain
        .flat_map(|agent| agent.mcp.plaintext_credentials.iter().map(|name| name.as_str()))
        .collect();
    // Agents share servers.
    plain.sort_unstable();
    plain.dedup();
    if !plain.is_empty() {
        let advice = "store them elsewhere, and refer to them with `secret://env/NAME` or `secret://keychain/NAME`";
        let words = format!("plaintext credentials in the configuration: {}", plain.join(", "));
        checks.push(Check { advice: Some(advice.to_owned()), ..Check::note(words) });
    }
    checks
}
