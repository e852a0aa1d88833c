//! `openclaw status` and `openclaw doctor`: the state of all parts, with advice for problems (M4).

mod doctor;
mod files;
mod inside;
mod keys;
mod logins;
mod remote;
mod secrets;
mod servers;

use std::path::Path;

use openclaw_config::{Config, Loaded, Paths, Severity};
use openclaw_secrets::Checked;
use serde_json::{Value, json};

use super::block_on;
use super::check::{Check, SubjectChecks};
use super::gateway::{GatewayState, gateway_state};
use super::link::GatewayTarget;
use crate::cli::GatewayChoice;
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::{Output, plural, summary};

pub(crate) use doctor::doctor;
pub(crate) use keys::unusable_models;

pub(crate) fn status(choice: &GatewayChoice, edge: &Edge, output: &mut Output) -> CommandResult {
    let paths = edge.paths()?;
    let loaded = edge.load(&paths.config);
    if let GatewayTarget::Named(gateway) = GatewayTarget::find(choice, edge)? {
        let remote = block_on(async { Ok(remote::look(&gateway, edge).await) })?;
        let findings = [
            configuration(&paths, &loaded, edge),
            remote.finding(),
            SubjectChecks::new("State", files::sizes(&paths.state)),
        ];
        return Ok(show(&findings, &remote.to_json(), &paths, output));
    }
    let (gateway_state, findings) = block_on(async {
        let gateway_state = gateway_state(&paths.state, edge).await;
        let findings = Box::pin(look(&paths, &loaded, &gateway_state, edge)).await;
        Ok((gateway_state, findings))
    })?;
    Ok(show(&findings, &gateway_state.to_json(), &paths, output))
}

/// Runs all checks that start no server.
async fn look(
    paths: &Paths,
    loaded: &Loaded,
    gateway_state: &GatewayState,
    edge: &Edge,
) -> Vec<SubjectChecks> {
    let mut findings = vec![configuration(paths, loaded, edge), gateway(gateway_state, paths)];
    if let Some(config) = &loaded.config {
        let resolver = edge.resolver(config);
        let checked = resolver.check_all(config.secret_references().keys()).await;
        findings.push(models(config, paths, gateway_state, edge, &checked).await);
        let checks = servers::checks(config, gateway_state, &paths.state);
        let table = servers::table(config, gateway_state, &paths.state);
        findings.push(SubjectChecks::new("Servers", checks).with_servers(table));
        findings.push(SubjectChecks::new("Secrets", secrets::checks(&checked, &resolver).await));
    }
    findings.push(SubjectChecks::new("State", files::sizes(&paths.state)));
    findings
}

fn configuration(paths: &Paths, loaded: &Loaded, edge: &Edge) -> SubjectChecks {
    let file = paths.config.display();
    // As `config validate` counts them.
    let report = &loaded.report.for_validation();
    let command = edge.config_command("config validate");
    let all = || Some(format!("run `{command}` for details"));
    let check = match &loaded.config {
        None => Check::bad(format!("{file} has {}", summary(report)), all()),
        Some(config) if config.file.is_none() => {
            Check::good(format!("{file} does not exist; the built-in default is used"))
        }
        Some(config) => {
            let agents = plural(config.agents.len(), "agent");
            let words = format!("{file}: {agents}, {}", summary(report));
            if report.has_errors() { Check::bad(words, all()) } else { Check::good(words) }
        }
    };
    let mut checks = vec![check];
    if !report.has_errors() && report.count(Severity::Warning) > 0 {
        checks.push(Check::note(format!("run `{command}` to see the warnings")));
    }
    SubjectChecks::new("Configuration", checks)
}

fn gateway(gateway_state: &GatewayState, paths: &Paths) -> SubjectChecks {
    let words = gateway_state.words();
    let checks = match gateway_state {
        GatewayState::Stopped | GatewayState::Stopping(_) => vec![Check::note(words)],
        GatewayState::Unresponsive(_, _, hint) => vec![Check::bad(words, hint.clone())],
        GatewayState::Running(gateway) => {
            let mut checks = vec![Check::good(words)];
            let ours = env!("CARGO_PKG_VERSION");
            if gateway.running.version != ours {
                let advice = "run `openclaw gateway restart`";
                let words = format!(
                    "the gateway has version {}, this program has version {ours}",
                    gateway.running.version
                );
                checks.push(Check::bad(words, Some(advice.to_owned())));
            }
            let whole =
                |path: &Path| openclaw_files::canonical(path).unwrap_or_else(|_| path.to_owned());
            let theirs = gateway.config.as_deref().map(Path::new);
            if let Some(theirs) = theirs.filter(|theirs| whole(theirs) != whole(&paths.config)) {
                let words = format!(
                    "it uses {}; commands with {} run standalone",
                    theirs.display(),
                    paths.config.display()
                );
                checks.push(Check::note(words));
            }
            if !gateway.config_issues.is_empty() {
                let advice = "run `openclaw config validate`".to_owned();
                let words = "its configuration file has errors; it uses the last valid version";
                checks.push(Check::bad(words, Some(advice)));
            }
            checks
        }
    };
    SubjectChecks::new("Gateway", checks)
}

/// Reports the model of each agent, and where its API key comes from.
async fn models(
    config: &Config,
    paths: &Paths,
    gateway_state: &GatewayState,
    edge: &Edge,
    secrets: &[Checked],
) -> SubjectChecks {
    let agents = match gateway_state {
        GatewayState::Running(gateway) => Ok((gateway.agents.clone(), Vec::new())),
        _ => inside::agents(config, paths, edge).await,
    };
    let checks = match agents {
        Ok((agents, notes)) => {
            let checks = agents.iter().flat_map(|agent| {
                let check = |model: &str, origin: &str| {
                    let key = keys::source(model, config, edge, secrets);
                    let what = format!("{}: {model} ({origin}); {}", agent.id, key.what);
                    Check { what, ..key }
                };
                let first = check(&agent.model, &agent.model_origin);
                let fallbacks = agent.fallbacks.iter().map(move |model| check(model, "fallback"));
                std::iter::once(first).chain(fallbacks)
            });
            checks.chain(notes).collect()
        }
        Err(problem) => vec![problem],
    };
    SubjectChecks::new("Models", checks)
}

fn show(findings: &[SubjectChecks], gateway: &Value, paths: &Paths, output: &mut Output) -> Exit {
    let problems: Vec<Value> = findings.iter().flat_map(SubjectChecks::problems).collect();
    let exit = if problems.is_empty() { Exit::Ok } else { Exit::Failed };
    if output.json {
        let sections: Vec<Value> = findings.iter().map(SubjectChecks::to_json).collect();
        output.value(&json!({
            "ok": problems.is_empty(),
            "version": env!("CARGO_PKG_VERSION"),
            "config": paths.config.to_string_lossy(),
            "stateDir": paths.state.to_string_lossy(),
            "gateway": gateway,
            "sections": sections,
            "problems": problems,
        }));
        return exit;
    }
    output.line(format_args!("OpenClaw {}", env!("CARGO_PKG_VERSION")));
    for finding in findings {
        output.line("");
        finding.show(output);
    }
    output.line("");
    output.line(match problems.len() {
        0 => "No problems found.".to_owned(),
        count => format!("{}; see the lines marked ✗.", plural(count, "problem")),
    });
    exit
}
