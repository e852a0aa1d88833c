//! Entries in a TOML file. A table is added at the end, and removed by its lines; then the result is
//! parsed, and must differ from the original in that entry only.

use serde_json::{Map, Value};

use super::InstallError;
pub(super) use crate::import::parse_toml as parse;

/// Returns the text with the entry at `path` set or removed.
pub(super) fn changed(
    text: &str,
    whole: &Value,
    path: &[&str],
    after: Option<&Value>,
) -> Result<String, InstallError> {
    let mut changed = without(text, path);
    if let Some(entry) = after {
        if !changed.is_empty() && !changed.ends_with("\n\n") {
            changed.push_str(if changed.ends_with('\n') { "\n" } else { "\n\n" });
        }
        changed.push_str(&table(path, entry));
    }
    let mut expected = whole.clone();
    put(&mut expected, path, after);
    match parse(&changed) {
        Ok(result) if pruned(&result) == pruned(&expected) => Ok(changed),
        _ => Err(InstallError::OddForm),
    }
}

/// Removes the table at `path` and the tables in it, with the comments inside.
fn without(text: &str, path: &[&str]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_inside = false;
    for line in text.split_inclusive('\n') {
        if let Some(header) = header(line) {
            is_inside = header.len() >= path.len() && header.iter().zip(path).all(|(a, b)| a == b);
        }
        if !is_inside {
            kept.push_str(line);
        }
    }
    kept
}

/// Returns the keys of a line that is the header of a table.
fn header(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    if !line.starts_with('[') {
        return None;
    }
    // Read by the parser itself, because keys may be quoted. `[[x]]` is an array of tables.
    let mut found = parse(line).ok()?;
    let mut keys = Vec::new();
    while let Value::Object(members) = found {
        let Some((key, inner)) = members.into_iter().next() else { break };
        keys.push(key);
        found = match inner {
            Value::Array(mut elements) => elements.pop().unwrap_or(Value::Null),
            inner => inner,
        };
    }
    (!keys.is_empty()).then_some(keys)
}

fn table(path: &[&str], entry: &Value) -> String {
    let keys: Vec<String> = path.iter().map(|key| quoted(key)).collect();
    let mut table = format!("[{}]\n", keys.join("."));
    let members = || entry.as_object().into_iter().flatten();
    for (key, value) in members().filter(|(_, value)| !value.is_object()) {
        // A JSON string or list of strings is one in TOML, too.
        table.push_str(&format!("{} = {value}\n", quoted(key)));
    }
    for (key, inner) in members().filter(|(_, value)| value.is_object()) {
        let path: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
        table.push('\n');
        table.push_str(&self::table(&path, inner));
    }
    table
}

fn quoted(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !key.is_empty() && key.chars().all(is_bare) {
        true => key.to_owned(),
        false => Value::from(key).to_string(),
    }
}

fn put(whole: &mut Value, path: &[&str], after: Option<&Value>) {
    let Some((name, way)) = path.split_last() else { return };
    let mut at = whole;
    for key in way {
        let Value::Object(members) = at else { return };
        at = members.entry(*key).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(members) = at {
        match after {
            Some(entry) => drop(members.insert((*name).to_owned(), entry.clone())),
            None => drop(members.shift_remove(*name)),
        }
    }
}

/// Without empty tables, which the removal of a table may leave or take away.
fn pruned(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().map(|(key, value)| (key.clone(), pruned(value)));
            let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        other => other.clone(),
    }
}
