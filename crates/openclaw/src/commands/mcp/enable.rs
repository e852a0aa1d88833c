//! `openclaw mcp enable` and `disable`: switch a server on or off in the file.

use openclaw_config::Document;
use serde_json::json;

use super::add::warn_about_scope;
use super::write;
use crate::cli::NameArgs;
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::Output;

pub(super) fn set(
    args: &NameArgs,
    enabled: bool,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let name = args.name.as_str();
    let paths = edge.paths()?;
    warn_about_scope(args.scope.scope, &paths, output);
    let enable = |document: &Document| document.enable_server(name, enabled);
    write::change(name, "change it there", &paths, edge, enable)?;
    let done = if enabled { "enabled" } else { "disabled" };
    let file = paths.config.display();
    let said = format!("{done} {name} in {file}");
    write::report(name, &paths, ("enabled", json!(enabled)), &said, output);
    Ok(Exit::Ok)
}
