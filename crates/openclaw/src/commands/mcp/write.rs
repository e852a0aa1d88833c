//! Changes the file for `add`, `remove`, `connect` and `import`: the result is validated first, and
//! not written if it has errors (C10).

use std::io::ErrorKind::{InvalidInput, IsADirectory};
use std::time::Duration;

use openclaw_config::{Config, Document, EditError, Paths, Report, ServerConfig, ServerName};
use serde_json::{Value, json};

use super::find;
use super::remove::not_found;
use crate::commands::link::reload_running;
use crate::edge::Edge;
use crate::error::CommandError;
use crate::output::Output;
use openclaw_terminal::style::{FAINT, GOOD};

/// How long to wait for another command that changes the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// A server to write to the file.
pub(super) struct NewServer {
    pub(super) name: ServerName,
    pub(super) entry: Value,
}

/// The configuration that was written.
pub(crate) struct Written {
    pub(crate) config: Config,
    pub(crate) report: Report,
}

/// Writes servers to the file, and replaces those of the same name; the caller has checked that.
pub(super) fn put(
    servers: &[NewServer],
    paths: &Paths,
    edge: &Edge,
) -> Result<Written, CommandError> {
    let _turn = take_turn(paths);
    let document = open(paths, edge)?;
    for NewServer { name, entry } in servers {
        document.put_server(name, entry).map_err(|error| failed(&error, paths))?;
    }
    save(&document, paths, edge)
}

/// Changes a server in the file, and writes it. Returns the paths of its entries.
///
/// # Errors
/// If the server is not in the file (`there` says what to do in the file that it is in), or the file
/// cannot be changed.
pub(super) fn change(
    name: &str,
    there: &str,
    paths: &Paths,
    edge: &Edge,
    change: impl FnOnce(&Document) -> Result<Vec<String>, EditError>,
) -> Result<Vec<String>, CommandError> {
    let _turn = take_turn(paths);
    let document = open(paths, edge)?;
    let places = change(&document).map_err(|error| failed(&error, paths))?;
    if places.is_empty() {
        return Err(not_found(name, &document, there, paths, edge));
    }
    save(&document, paths, edge)?;
    Ok(places)
}

/// Locks the file against other commands until dropped. Without the lock, the last write wins.
pub(crate) fn take_turn(paths: &Paths) -> Option<std::fs::File> {
    openclaw_files::make_folder(&paths.state).ok()?;
    openclaw_files::lock(&paths.state.join("config.lock"), PATIENCE).ok()
}

/// Opens the file; a missing one is empty.
pub(crate) fn open(paths: &Paths, edge: &Edge) -> Result<Document, CommandError> {
    Document::open(&paths.config).map_err(|error| match error {
        EditError::Syntax(_) => CommandError::config(edge.load(&paths.config).report),
        error => failed(&error, paths),
    })
}

/// Validates the document, writes it, and makes a running gateway apply it.
pub(crate) fn save(
    document: &Document,
    paths: &Paths,
    edge: &Edge,
) -> Result<Written, CommandError> {
    let loaded = edge.load_text(&paths.config, &document.to_string());
    let Some(config) = loaded.config else {
        let file = paths.config.display();
        // Errors that were there before are not those of the change.
        let hint = match edge.load(&paths.config).config {
            Some(_) => format!("correct it, and run the command again; {file} was not changed"),
            None => {
                let command = edge.config_command("config edit");
                format!("run `{command}` to correct {file}, which was not changed")
            }
        };
        return Err(CommandError::config(loaded.report).hint(hint));
    };
    document.save(&paths.config).map_err(|error| failed(&error, paths))?;
    reload_running(paths, edge);
    Ok(Written { config, report: loaded.report })
}

/// The error for a file that cannot be changed.
pub(crate) fn failed(error: &EditError, paths: &Paths) -> CommandError {
    let failed = CommandError::failed(format!("cannot change {}", paths.config.display()))
        .cause(error.to_string());
    match error {
        EditError::Write(cause) if matches!(cause.kind(), InvalidInput | IsADirectory) => {
            failed.hint("choose a regular file with `--config FILE`")
        }
        _ => failed,
    }
}

/// Returns the current configuration; `None` without a file, or with errors (`save` reports them).
pub(super) fn current(paths: &Paths, edge: &Edge) -> Option<Config> {
    edge.load(&paths.config).config.filter(|config| config.file.is_some())
}

/// Whether a server of this name is in the file, or in one that it includes.
pub(super) fn exists(name: &str, paths: &Paths, edge: &Edge) -> bool {
    let in_file = Document::open(&paths.config)
        .is_ok_and(|document| document.servers().iter().any(|(known, _)| known == name));
    in_file || current(paths, edge).is_some_and(|config| is_known(&config, name))
}

fn is_known(config: &Config, name: &str) -> bool {
    config.agents.iter().any(|agent| agent.mcp.origins.servers.contains_key(name))
}

/// The error for a name that is taken.
pub(super) fn already_exists(
    name: &ServerName,
    way_out: &str,
    paths: &Paths,
    edge: &Edge,
) -> CommandError {
    let what = current(paths, edge)
        .and_then(|config| find(&config, name.as_str()).map(ServerConfig::gist));
    let what = what.map(|what| format!(": {what}")).unwrap_or_default();
    CommandError::failed(format!("server `{name}` already exists{what}")).hint(way_out)
}

/// Reports the change of a server: `said` to a person, `change` to a program.
pub(super) fn report(
    name: &str,
    paths: &Paths,
    change: (&str, Value),
    said: &str,
    output: &mut Output,
) {
    if output.json {
        let (key, value) = change;
        let file = paths.config.to_string_lossy();
        output.value(&json!({ "ok": true, "server": name, "file": file, key: value }));
    } else {
        output.line(format_args!("{GOOD}✓{GOOD:#} {said}"));
    }
}

/// Reports an added server, the findings about it, and the next step.
pub(super) fn print_added(
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
    output.line(format_args!("{GOOD}✓{GOOD:#} added {name} to {}", paths.config.display()));
    if !gist.is_empty() {
        output.line(format_args!("  {FAINT}{}{FAINT:#}", crate::output::printable(&gist)));
    }
    // A connection test resolves the secrets, too.
    if !is_tried {
        warn_about_secrets(name, &written.config, output);
    }
}

/// Prints how to check a server's secrets.
fn warn_about_secrets(name: &ServerName, config: &Config, output: &mut Output) {
    let prefix = format!("{name}.");
    let mut users = config.secret_references().into_values().flatten();
    if users.any(|user| user.starts_with(&prefix)) {
        output.line("  run `openclaw secrets check` to check its secrets");
    }
}
