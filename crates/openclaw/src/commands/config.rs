//! `openclaw config validate | path`.

use std::path::Path;

use openclaw_config::{ChosenBy, Config, Paths, Severity};
use serde_json::json;

use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{GOOD, Output, summary};

/// Checks the configuration, and says everything that is to be said about it.
pub(crate) fn validate(
    file: Option<&Path>,
    flag: Option<&Path>,
    strict: bool,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let paths = match edge.paths(file.or(flag)) {
        Ok(paths) => paths,
        Err(error) => {
            output.problem(&error, None);
            return Exit::Config;
        }
    };
    // Without a file the default serves, but who names one here wants that one checked.
    if let Some(file) = file.filter(|file| !file.exists()) {
        output.problem(&format!("there is no file {}", file.display()), None);
        return Exit::Config;
    }
    let loaded = edge.load(&paths.config);
    let report = &loaded.report;
    let warned = strict && report.count(Severity::Warning) > 0;
    let ok = loaded.config.is_some() && !warned;
    if output.json {
        output.value(&json!({
            "file": paths.config,
            "exists": loaded.config.as_ref().is_none_or(|config| config.file.is_some()),
            "ok": ok,
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "diagnostics": report.to_json(),
        }));
        return if ok { Exit::Ok } else { Exit::Config };
    }
    if !report.diagnostics().is_empty() {
        output.report(report);
    }
    if let Some(config) = loaded.config.as_ref().filter(|_| ok) {
        tell_if_missing(&paths, config, output);
        let shown =
            config.file.as_ref().map_or("built-in default".into(), |file| file.to_string_lossy());
        let (agents, servers) = (plural(config.agents.len(), "agent"), servers(config));
        output.line(format_args!(
            "{GOOD}✓{GOOD:#} {shown}: {agents}, {servers}, {}",
            summary(report)
        ));
    }
    if ok { Exit::Ok } else { Exit::Config }
}

/// Prints which file is read.
pub(crate) fn path(flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    let paths = match edge.paths(flag) {
        Ok(paths) => paths,
        Err(error) => {
            output.problem(&error, None);
            return Exit::Config;
        }
    };
    if output.json {
        output.value(&json!({
            "path": paths.config,
            "exists": paths.config.exists(),
            "chosenBy": paths.chosen_by,
            "stateDir": paths.state,
        }));
    } else {
        output.line(paths.config.display());
    }
    Exit::Ok
}

/// A missing file is no error, but whoever named one wants to know.
pub(crate) fn tell_if_missing(paths: &Paths, config: &Config, output: &mut Output) {
    if config.file.is_none() && paths.chosen_by != ChosenBy::Default {
        let file = paths.config.display();
        output.warning(&format!("{file} does not exist; the built-in default is used"));
    }
}

fn plural(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// "3 servers (1 disabled, 1 held back)", each counted once, whatever agents share it.
fn servers(config: &Config) -> String {
    let mut names = std::collections::BTreeMap::new();
    for agent in &config.agents {
        for (name, server) in &agent.mcp.servers {
            let on = names.entry(name.as_str()).or_insert((false, false));
            on.0 |= server.enabled;
        }
        for name in agent.mcp.held_back.keys() {
            names.entry(name.as_str()).or_insert((true, false)).1 = true;
        }
    }
    let disabled = names.values().filter(|(enabled, _)| !enabled).count();
    let held_back = names.values().filter(|(_, held_back)| *held_back).count();
    let mut remarks = Vec::new();
    if disabled > 0 {
        remarks.push(format!("{disabled} disabled"));
    }
    if held_back > 0 {
        remarks.push(format!("{held_back} held back"));
    }
    let count = plural(names.len(), "MCP server");
    if remarks.is_empty() { count } else { format!("{count} ({})", remarks.join(", ")) }
}
