//! `openclaw config get | set | unset | edit`: changes keep comments and order, and are written only
//! if the result has no errors.

use std::path::{Path, PathBuf};
use std::process::Command;

use openclaw_config::{Config, Document, EditError, Paths, Setting};
use openclaw_process::exit_words;
use openclaw_process::program::ProgramLookup;
use serde_json::{Map, Value, json};

use super::check::Check;
use super::load_config;
use super::mcp::write;
use super::status::unusable_models;
use crate::edge::Edge;
use crate::error::{CommandError, CommandResult, Context as _};
use crate::exit::Exit;
use crate::output::{Output, printable};
use openclaw_terminal::style::GOOD;

/// How many times a file with errors can be edited again.
const MAX_EDITS: usize = 20;

/// Prints the effective value of a key, as `config show` does: credentials are redacted. A key with
/// several values below it prints them all.
pub(crate) fn get(key: &str, edge: &Edge, output: &mut Output) -> CommandResult {
    let config = load_config(edge, output)?.config;
    let below = format!("{key}.");
    let mut found = settings(&config);
    found.retain(|(name, _)| name == key || name.starts_with(&below));
    match found.as_slice() {
        [] => {
            return Err(CommandError::failed(format!("no setting `{key}`"))
                .hint("run `openclaw config show` to list the settings"));
        }
        [(_, Value::String(text))] if !output.json => output.line(printable(text)),
        [(_, value)] => output.document(&format!("{value:#}")),
        several => {
            let all: Map<_, _> = several.iter().cloned().collect();
            output.document(&format!("{:#}", Value::Object(all)));
        }
    }
    Ok(Exit::Ok)
}

/// The effective settings by key: those of all agents as the default agent has them.
fn settings(config: &Config) -> Vec<(String, Value)> {
    let with = |prefix: &str, settings: &[Setting]| -> Vec<(String, Value)> {
        let named = |it: &Setting| (format!("{prefix}{}", it.key), it.value.clone());
        settings.iter().map(named).collect()
    };
    let mut all = with("", &config.origins);
    if let Some(agent) = config.agents.first() {
        all.extend(with("agents.defaults.", &agent.origins));
        all.extend(with("mcp.", &agent.mcp.origins.settings));
        for (name, settings) in &agent.mcp.origins.servers {
            all.extend(with(&format!("mcp.servers.{name}."), settings));
        }
    }
    all
}

/// Sets a key. The value is JSON or, if it is not, text.
pub(crate) fn set(key: &str, value: &str, edge: &Edge, output: &mut Output) -> CommandResult {
    let value = match serde_json::from_str(value) {
        Ok(value) => value,
        // It was meant as JSON.
        Err(error) if value.trim_start().starts_with(['{', '[']) => {
            return Err(CommandError::usage("the value is not valid JSON").cause(error.to_string()));
        }
        Err(_) => Value::from(value),
    };
    let paths = edge.paths()?;
    change(key, "set", &paths, edge, output, |document, path| {
        let before = unusable(document, &paths, edge);
        document.set(path, &value).map_err(|error| {
            let failed =
                CommandError::usage(format!("cannot set `{key}`")).cause(error.to_string());
            match error {
                // Removing what is there would lose it, such as the list of agents.
                EditError::NotAnObject(_) => {
                    failed.hint("run `openclaw config edit` to change what is there")
                }
                _ => failed,
            }
        })?;
        // `config validate` would call it an error, too.
        let is_new = |check: &Check| before.iter().all(|known| known.what != check.what);
        let Some(problem) = unusable(document, &paths, edge).into_iter().find(is_new) else {
            return Ok(());
        };
        Err(CommandError::usage(format!("cannot set `{key}`"))
            .cause(problem.what)
            .hint(problem.advice.unwrap_or_default()))
    })
}

/// Returns the models that could not be used with this file.
fn unusable(document: &Document, paths: &Paths, edge: &Edge) -> Vec<Check> {
    let loaded = edge.load_text(&paths.config, &document.to_string());
    loaded.config.as_ref().map(unusable_models).unwrap_or_default()
}

/// Removes a key.
pub(crate) fn unset(key: &str, edge: &Edge, output: &mut Output) -> CommandResult {
    let paths = edge.paths()?;
    change(key, "unset", &paths, edge, output, |document, path| match document.remove(path) {
        true => Ok(()),
        false => {
            let file = paths.config.display();
            Err(CommandError::failed(format!("`{key}` is not set in {file}")))
        }
    })
}

/// Changes the value of a key, and writes the file.
fn change(
    key: &str,
    verb: &str,
    paths: &Paths,
    edge: &Edge,
    output: &mut Output,
    change: impl FnOnce(&Document, &[&str]) -> Result<(), CommandError>,
) -> CommandResult {
    let steps = steps(key)?;
    let path: Vec<&str> = steps.iter().map(String::as_str).collect();
    let _turn = write::take_turn(paths);
    let document = write::open(paths, edge)?;
    change(&document, &path)?;
    let written = write::save(&document, paths, edge)?;
    let about = written.report.about(key);
    match output.json {
        true => output.value(&json!({
            "ok": true, "key": key, "file": paths.config.to_string_lossy(),
            "diagnostics": about.to_json(),
        })),
        false => {
            if !about.diagnostics().is_empty() {
                output.report(&about);
            }
            output.line(format_args!("{GOOD}✓{GOOD:#} {verb} {key} in {}", paths.config.display()));
        }
    }
    Ok(Exit::Ok)
}

/// Splits a key at its dots. A part that contains dots is quoted: `mcp.servers."a.b".command`.
fn steps(key: &str) -> Result<Vec<String>, CommandError> {
    let (mut steps, mut step, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in key.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => steps.push(std::mem::take(&mut step)),
            '[' | ']' if !is_quoted => {
                return Err(CommandError::usage(format!("invalid key `{key}`"))
                    .hint("set the whole list, or run `openclaw config edit`"));
            }
            c => step.push(c),
        }
    }
    steps.push(step);
    if is_quoted || steps.iter().any(String::is_empty) {
        return Err(CommandError::usage(format!("invalid key `{key}`"))
            .hint("a key is a path such as `agents.defaults.model` or `mcp.servers.\"a.b\".url`"));
    }
    Ok(steps)
}

/// Opens a copy of the file in the user's editor, and writes it when it has no errors.
pub(crate) fn edit(edge: &Edge, output: &mut Output) -> CommandResult {
    let paths = edge.paths()?;
    let way_out = "use `openclaw config set KEY VALUE`";
    if !edge.has_user() {
        return Err(CommandError::usage("no terminal to edit on").hint(way_out));
    }
    let editor = edge.editor();
    let before = std::fs::read_to_string(&paths.config).unwrap_or_else(|_| "{\n}\n".to_owned());
    openclaw_files::make_folder(&paths.state).context("cannot edit")?;
    let copy = Copy(paths.state.join("edited-config.json5"));
    openclaw_files::replace(&copy.0, before.as_bytes()).context("cannot edit")?;
    for _ in 0..MAX_EDITS {
        run_editor(&editor, &copy.0, edge)?;
        let after = std::fs::read_to_string(&copy.0).context("cannot read the edited text")?;
        if after == before {
            output.line("Nothing has changed.");
            return Ok(Exit::Ok);
        }
        let loaded = edge.load_text(&paths.config, &after);
        if loaded.config.is_some() {
            let _turn = write::take_turn(&paths);
            let document =
                Document::parse(&after).map_err(|error| CommandError::failed(error.to_string()))?;
            write::save(&document, &paths, edge)?;
            if !loaded.report.diagnostics().is_empty() {
                output.report(&loaded.report);
            }
            output.line(format_args!("{GOOD}✓{GOOD:#} wrote {}", paths.config.display()));
            return Ok(Exit::Ok);
        }
        output.report(&loaded.report);
        if !super::sessions::agree("Edit again? (no discards the changes)", way_out, edge, output)?
        {
            break;
        }
    }
    Err(CommandError::failed(format!("{} was not changed", paths.config.display())))
}

/// The text that is being edited. It is removed at the end.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs the editor; its command may have arguments, as in `code --wait`.
fn run_editor(editor: &str, file: &Path, edge: &Edge) -> Result<(), CommandError> {
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let variables = edge.environment().for_child([]);
    let variable = |name: &str| variables.get(name).map(String::as_str);
    let lookup =
        ProgramLookup { path: variable("PATH"), extensions: variable("PATHEXT"), folder: None };
    // As `code`, which is a batch file on Windows. What is not found is reported below.
    let found = lookup.find(program).unwrap_or_else(|_| program.into());
    let status = Command::new(found).args(words).arg(file).status();
    let hint = "set $VISUAL or $EDITOR to another one";
    let status = status
        .context(format!("cannot start the editor `{program}`"))
        .map_err(|error| error.hint(hint))?;
    if status.success() {
        return Ok(());
    }
    let message = format!("the editor `{program}` {}", exit_words(status));
    Err(CommandError::failed(message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_split_at_dots_outside_quotes() {
        assert_eq!(steps("agents.defaults.model").unwrap(), ["agents", "defaults", "model"]);
        assert_eq!(steps("mcp.servers.\"a.b\".url").unwrap(), ["mcp", "servers", "a.b", "url"]);
        for bad in ["", "a..b", ".a", "a.", "a.\"b", "a[0].b"] {
            assert!(steps(bad).is_err(), "{bad}");
        }
    }
}
