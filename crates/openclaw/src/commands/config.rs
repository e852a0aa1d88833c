//! `openclaw config validate | path`.

use std::collections::BTreeMap;
use std::path::Path;

use openclaw_config::{Config, Severity};
use serde_json::json;

use super::check::Check;
use super::status::unusable_models;
use super::warn_if_missing;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::{Output, plural, summary};
use openclaw_terminal::style::GOOD;

/// Checks the configuration, and reports all findings.
pub(crate) fn validate(
    file: Option<&Path>,
    strict: bool,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    // A missing configuration means the default, but a file named here must exist.
    if let Some(file) = file.filter(|file| file.symlink_metadata().is_err()) {
        return Err(CommandError::new(Exit::Config, format!("file not found: {}", file.display()))
            .hint("run `openclaw config path` to see which file is read"));
    }
    let paths = edge.paths_with(file.or(edge.config_flag()))?;
    let loaded = edge.load(&paths.config);
    // What cannot be used is an error here, as in `status` and `doctor`.
    let report = &loaded.report.for_validation();
    let warned = strict && report.count(Severity::Warning) > 0;
    let problems = loaded.config.as_ref().map(unusable_models).unwrap_or_default();
    let ok = loaded.config.is_some() && !warned && !report.has_errors() && problems.is_empty();
    let exit = match ok {
        true => Exit::Ok,
        false if loaded.config.is_some() && !warned => Exit::Failed,
        false => Exit::Config,
    };
    if output.json {
        output.value(&json!({
            "file": paths.config.to_string_lossy(),
            "exists": loaded.config.as_ref().is_none_or(|config| config.file.is_some()),
            "ok": ok,
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "diagnostics": report.to_json(),
            "problems": problems.iter().map(Check::to_json).collect::<Vec<_>>(),
        }));
        return Ok(exit);
    }
    if !report.diagnostics().is_empty() {
        output.report(report);
    }
    if let Some(config) = loaded.config.as_ref().filter(|_| ok) {
        warn_if_missing(&paths, config, output);
        let file = config.file.as_ref().map(|file| file.to_string_lossy());
        let shown = file.unwrap_or("built-in default".into());
        let (agents, servers) = (plural(config.agents.len(), "agent"), servers(config));
        let summary = summary(report);
        output.line(format_args!("{GOOD}✓{GOOD:#} {shown}: {agents}, {servers}, {summary}"));
    }
    Ok(exit)
}

/// Prints the path of the configuration file.
pub(crate) fn path(edge: &Edge, output: &mut Output) -> CommandResult {
    let paths = edge.paths()?;
    if output.json {
        output.value(&json!({
            "path": paths.config.to_string_lossy(),
            "exists": paths.config.exists(),
            "chosenBy": paths.chosen_by,
            "stateDir": paths.state.to_string_lossy(),
        }));
    } else {
        output.line(paths.config.display());
    }
    Ok(Exit::Ok)
}

/// Counts servers: "3 MCP servers (1 disabled, 1 cannot start)". A shared one is counted once.
fn servers(config: &Config) -> String {
    #[derive(Default)]
    struct Seen {
        enabled: bool,
        held_back: bool,
    }
    let mut names: BTreeMap<&str, Seen> = BTreeMap::new();
    for agent in &config.agents {
        for (name, server) in &agent.mcp.servers {
            names.entry(name.as_str()).or_default().enabled |= server.enabled;
        }
        for name in agent.mcp.held_back.keys() {
            names.insert(name.as_str(), Seen { enabled: true, held_back: true });
        }
    }
    let disabled = names.values().filter(|seen| !seen.enabled).count();
    let held_back = names.values().filter(|seen| seen.held_back).count();
    let remarks = [(disabled, "disabled"), (held_back, "cannot start")];
    let remarks = remarks.iter().filter(|(count, _)| *count > 0);
    let remarks: Vec<String> = remarks.map(|(count, remark)| format!("{count} {remark}")).collect();
    let count = plural(names.len(), "MCP server");
    if remarks.is_empty() { count } else { format!("{count} ({})", remarks.join(", ")) }
}
