//! `openclaw mcp remove`: removes all entries of a server from the file, and its approvals.

use openclaw_config::{Config, Document, Paths};
use openclaw_mcp::store::pins::Pins;
use serde_json::json;

use super::add::warn_about_scope;
use super::{place_of, write};
use crate::cli::NameArgs;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::output::Output;
use crate::state_files;
use openclaw_terminal::style::FAINT;

pub(super) fn remove(args: &NameArgs, edge: &Edge, output: &mut Output) -> CommandResult {
    let name = args.name.as_str();
    let paths = edge.paths()?;
    warn_about_scope(args.scope.scope, &paths, output);
    let remove = |document: &Document| Ok(document.remove_server(name));
    let removed = write::change(name, "remove it there", &paths, edge, remove)?;
    forget_approvals(name, &paths, output);
    let said = format!("removed {name} from {}", paths.config.display());
    write::report(name, &paths, ("removed", json!(removed)), &said, output);
    if !output.json {
        for place in removed {
            output.line(format_args!("  {FAINT}{place}{FAINT:#}"));
        }
    }
    Ok(Exit::Ok)
}

/// Removes the approvals of the server's tools: if it is added again, each needs a new one.
fn forget_approvals(name: &str, paths: &Paths, output: &mut Output) {
    let file = state_files::pins(&paths.state);
    if let Err(error) = Pins::load(&file).and_then(|pins| pins.forget(name)) {
        let file = file.display();
        output.warning(&format!("cannot remove the approvals of {name} from {file}: {error}"));
    }
}

/// The error for a server that is not in the file. `there` says what to do in the file that it is in.
pub(super) fn not_found(
    name: &str,
    document: &Document,
    there: &str,
    paths: &Paths,
    edge: &Edge,
) -> CommandError {
    let mut known: Vec<String> = document.servers().into_iter().map(|(name, _)| name).collect();
    let config = edge.load(&paths.config).config;
    if let Some((config, place)) = config.and_then(|it| origin(&it, name).map(|at| (it, at))) {
        // It is in an included file, or built in, which this command does not change.
        return match config.file {
            Some(file) => CommandError::failed(format!(
                "server `{name}` is defined in {place}, not in {}",
                file.display()
            ))
            .hint(there),
            None => CommandError::failed(format!("server `{name}` is built in"))
                .hint("run `openclaw mcp add`: the first added server replaces it"),
        };
    }
    known.sort();
    known.dedup();
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let hint = openclaw_gateway::mcp::unknown_server(name, &names).hint;
    CommandError::failed(format!("no server `{name}` in {}", paths.config.display()))
        .with(|failure| failure.hint = hint)
}

/// Returns the file and line of a server.
fn origin(config: &Config, name: &str) -> Option<String> {
    let mut agents = config.agents.iter();
    place_of(agents.find_map(|agent| agent.mcp.origins.servers.get(name))?)
}
