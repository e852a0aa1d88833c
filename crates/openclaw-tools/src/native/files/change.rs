//! `write` and `edit`: files are replaced atomically.

use std::io::Read as _;

use serde::Deserialize;

use super::super::reply::{OutcomeBuilder, named};
use super::super::workspace::{Workspace, WriteLock};
use super::refused;

/// Maximum size of an edited file, in bytes.
const MAX_EDITED: u64 = 16 * 1024 * 1024;

#[derive(Debug, Deserialize)]
pub(in super::super) struct WriteArguments {
    path: String,
    content: String,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct EditArguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

pub(in super::super) fn write(
    workspace: &Workspace,
    asked: &WriteArguments,
    _: usize,
) -> OutcomeBuilder {
    let WriteArguments { path, content } = asked;
    match workspace.replace(&workspace.turn(), path, content.as_bytes()) {
        Ok(was_there) => {
            let done = if was_there { "was replaced" } else { "was written" };
            let (size, s) = (content.len(), if content.len() == 1 { "" } else { "s" });
            OutcomeBuilder::default().say(format!("{} {done}: {size} byte{s}.", named(path)))
        }
        Err(why) => refused(path, &why),
    }
}

pub(in super::super) fn edit(
    workspace: &Workspace,
    asked: &EditArguments,
    _: usize,
) -> OutcomeBuilder {
    let EditArguments { path, old, new, all } = asked;
    let turn = workspace.turn();
    let text = match text_of(workspace, path, &turn) {
        Ok(text) => text,
        Err(reply) => return reply,
    };
    if old == new {
        return OutcomeBuilder::error("`old` and `new` are the same. The file was not changed.");
    }
    let count = text.matches(old).count();
    // Overlapping occurrences count as several, too.
    let is_one = text.find(old) == text.rfind(old);
    let name = named(path);
    if count == 0 {
        let words = format!("`old` does not occur in {name}. The file was not changed.");
        return OutcomeBuilder::error(words);
    }
    if !is_one && !all {
        let times = if count == 1 { "more than once".to_owned() } else { format!("{count} times") };
        return OutcomeBuilder::error(format!(
            "`old` occurs {times} in {name}. The file was not changed: include more surrounding \
             text to make it unique, or set `all`."
        ));
    }
    match workspace.replace(&turn, path, text.replace(old, new).as_bytes()) {
        Ok(_) => {
            let places = if count == 1 { "place" } else { "places" };
            OutcomeBuilder::default().say(format!("{name} was changed in {count} {places}."))
        }
        Err(why) => refused(path, &why),
    }
}

/// Reads a file as text. While the turn is held, no other call changes it.
fn text_of(
    workspace: &Workspace,
    path: &str,
    _turn: &WriteLock<'_>,
) -> Result<String, OutcomeBuilder> {
    let (file, _) = workspace.open_file(path).map_err(|why| refused(path, &why))?;
    let mut bytes = Vec::new();
    file.take(MAX_EDITED + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| refused(path, &error.into()))?;
    let name = named(path);
    if bytes.len() as u64 > MAX_EDITED {
        let most = MAX_EDITED / 1024 / 1024;
        return Err(OutcomeBuilder::error(format!(
            "{name} is larger than {most} MB: too large to be edited."
        )));
    }
    String::from_utf8(bytes)
        .map_err(|_| OutcomeBuilder::error(format!("{name} is not a text file (UTF-8).")))
}
