//! How `add`, `remove`, `connect` and `import` change the file: what would come of it is checked first,
//! and a file that would have errors is not written (C10).

use openclaw_config::{Config, Document, EditError, Paths, Report, ServerConfig, ServerName};
use openclaw_mcp::private;
use serde_json::Value;

use super::find;
use crate::edge::Edge;
use crate::exit::Exit;
use crate::output::{FAINT, GOOD, Output};

/// A server to be put into the file.
pub(super) struct NewServer {
    pub(super) name: ServerName,
    pub(super) entry: Value,
}

/// What came of it.
pub(super) struct Written {
    pub(super) config: Config,
    pub(super) report: Report,
}

/// Puts servers into the file, or reports why not. The caller has seen to it that those that are there
/// may be replaced.
pub(super) fn put(
    servers: &[NewServer],
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<Written, Exit> {
    let _turn = take_turn(paths);
    let document = open(paths, edge, output)?;
    for NewServer { name, entry } in servers {
        if let Err(error) = document.put_server(name, entry) {
            return Err(failed(&error, paths, output));
        }
    }
    save(&document, paths, edge, output)
}

/// Keeps other commands from changing the file until this is dropped. Where that cannot be had, the last
/// one wins.
pub(super) fn take_turn(paths: &Paths) -> Option<std::fs::File> {
    private::make_folder(&paths.state).ok()?;
    let mut options = private::options();
    options.write(true).create(true).truncate(false);
    let file = options.open(paths.state.join("config.lock")).ok()?;
    file.lock().ok()?;
    Some(file)
}

/// Opens the file; one that does not exist is empty.
pub(super) fn open(paths: &Paths, edge: &Edge, output: &mut Output) -> Result<Document, Exit> {
    Document::open(&paths.config).map_err(|error| match error {
        EditError::Syntax(_) => {
            output.refuse(&edge.load(&paths.config).report);
            Exit::Config
        }
        error => failed(&error, paths, output),
    })
}

/// Checks what would be written, and writes it.
pub(super) fn save(
    document: &Document,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Result<Written, Exit> {
    let loaded = edge.load_text(&paths.config, &document.to_string());
    let Some(config) = loaded.config else {
        output.refuse(&loaded.report);
        output.warning(&format!("{} was left as it was", paths.config.display()));
        return Err(Exit::Config);
    };
    document.save(&paths.config).map_err(|error| failed(&error, paths, output))?;
    Ok(Written { config, report: loaded.report })
}

fn failed(error: &EditError, paths: &Paths, output: &mut Output) -> Exit {
    output.problem(&format!("{} cannot be changed: {error}", paths.config.display()), None);
    Exit::Failed
}

/// The configuration as it is now; none without a file, and where it has errors (of which `save`
/// speaks).
pub(super) fn current(paths: &Paths, edge: &Edge) -> Option<Config> {
    edge.load(&paths.config).config.filter(|config| config.file.is_some())
}

/// Whether a server of this name is in the configuration, be it in the file or in one that it includes.
pub(super) fn exists(name: &str, paths: &Paths, edge: &Edge) -> bool {
    let in_file = Document::open(&paths.config)
        .is_ok_and(|document| document.servers().iter().any(|(known, _)| known == name));
    in_file || current(paths, edge).is_some_and(|config| is_known(&config, name))
}

fn is_known(config: &Config, name: &str) -> bool {
    config.agents.iter().any(|agent| agent.mcp.origins.servers.contains_key(name))
}

/// Says that a server cannot be added because there is one.
pub(super) fn refuse_existing(
    name: &ServerName,
    way_out: &str,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
) -> Exit {
    let what = current(paths, edge)
        .and_then(|config| find(&config, name.as_str()).map(ServerConfig::gist));
    let what = what.map(|what| format!(": {what}")).unwrap_or_default();
    output.problem(&format!("there is a server `{name}` already{what}"), Some(way_out));
    Exit::Failed
}

/// Tells what was added, what there is to say about it, and what to do next.
pub(super) fn tell_added(
    name: &ServerName,
    written: &Written,
    is_tried: bool,
    paths: &Paths,
    output: &mut Output,
) {
    let about = written.report.about(&Document::server_path(name));
    if !about.diagnostics().is_empty() {
        output.report(&about);
    }
    let gist = find(&written.config, name.as_str()).map(ServerConfig::gist).unwrap_or_default();
    output.line(format_args!("{GOOD}✓{GOOD:#} {name} added to {}", paths.config.display()));
    if !gist.is_empty() {
        output.line(format_args!("  {FAINT}{}{FAINT:#}", crate::output::printable(&gist)));
    }
    // Trying it tells that, too.
    if !is_tried {
        tell_of_secrets(name, &written.config, output);
    }
}

/// How to find out whether a server's secrets can be had.
fn tell_of_secrets(name: &ServerName, config: &Config, output: &mut Output) {
    let prefix = format!("{name}.");
    let mut users = config.secret_references().into_values().flatten();
    if users.any(|user| user.starts_with(&prefix)) {
        output.line("  its secrets: `openclaw secrets check` tells whether they resolve");
    }
}
