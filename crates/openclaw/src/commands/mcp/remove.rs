//! `openclaw mcp remove`: a server out of the file, wherever it stands there.

use std::path::Path;

use openclaw_config::{Config, Paths};
use serde_json::json;

use super::standing;
use super::write::{open, save, take_turn};
use crate::commands::with_paths;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{FAINT, GOOD, Output};

pub(super) fn remove(name: &str, flag: Option<&Path>, edge: &Edge, output: &mut Output) -> Exit {
    with_paths(flag, edge, output, |paths, output| {
        remove_from(name, paths, edge, output).unwrap_or_else(|exit| exit)
    })
}

fn remove_from(name: &str, paths: &Paths, edge: &Edge, output: &mut Output) -> Result<Exit, Exit> {
    let _turn = take_turn(paths);
    let document = open(paths, edge, output)?;
    let removed = document.remove_server(name);
    if removed.is_empty() {
        let known = document.servers().into_iter().map(|(name, _)| name).collect();
        return Err(not_found(name, known, paths, edge, output));
    }
    save(&document, paths, edge, output)?;
    let file = paths.config.display();
    if output.json {
        output.value(&json!({
            "ok": true,
            "server": name,
            "file": paths.config.to_string_lossy(),
            "removed": removed,
        }));
    } else {
        output.line(format_args!("{GOOD}✓{GOOD:#} {name} removed from {file}"));
        for place in removed {
            output.line(format_args!("  {FAINT}{place}{FAINT:#}"));
        }
    }
    Ok(Exit::Ok)
}

fn not_found(
    name: &str,
    mut known: Vec<String>,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let config = edge.load(&paths.config).config;
    if let Some((config, place)) = config.and_then(|it| origin(&it, name).map(|at| (it, at))) {
        // It is in an included file, or built in: that is not ours to change.
        let (message, hint) = match config.file {
            Some(file) => (
                format!("`{name}` stands in {place}, not in {}", file.display()),
                "remove it there",
            ),
            None => (
                format!("`{name}` is built in"),
                "it goes away with the first server that is added",
            ),
        };
        output.problem(&message, Some(hint));
        return Exit::Failed;
    }
    known.sort();
    known.dedup();
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let hint = openclaw_gateway::mcp::unknown_server(name, &names).hint;
    output.problem(
        &format!("there is no server `{name}` in {}", paths.config.display()),
        hint.as_deref(),
    );
    Exit::Failed
}

/// The file and line that a server comes from.
fn origin(config: &Config, name: &str) -> Option<String> {
    let mut agents = config.agents.iter();
    standing(agents.find_map(|agent| agent.mcp.origins.servers.get(name))?)
}
