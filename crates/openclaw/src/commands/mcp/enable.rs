//! `openclaw mcp enable` and `disable`: switch a server on or off in the file.

use std::path::Path;

use serde_json::json;

use super::add::tell_of_scope;
use super::remove::not_found;
use super::write::{failed, open, save, take_turn};
use crate::cli::NameArgs;
use crate::edge::Edge;
use crate::error::CommandResult;
use crate::exit::Exit;
use crate::output::{GOOD, Output};

pub(super) fn set(
    args: &NameArgs,
    enabled: bool,
    flag: Option<&Path>,
    edge: &Edge,
    output: &mut Output,
) -> CommandResult {
    let name = args.name.as_str();
    let paths = edge.paths(flag)?;
    tell_of_scope(args.scope.scope, &paths, output);
    let _turn = take_turn(&paths);
    let document = open(&paths, edge)?;
    let places = document.enable_server(name, enabled).map_err(|error| failed(&error, &paths))?;
    if places.is_empty() {
        return Err(not_found(name, &document, "change it there", &paths, edge));
    }
    save(&document, &paths, edge)?;
    let file = paths.config.display();
    if output.json {
        output.value(&json!({
            "ok": true,
            "server": name,
            "file": paths.config.to_string_lossy(),
            "enabled": enabled,
        }));
    } else {
        let done = if enabled { "enabled" } else { "disabled" };
        output.line(format_args!("{GOOD}✓{GOOD:#} {done} {name} in {file}"));
    }
    Ok(Exit::Ok)
}
