//! Arguments of a tool from the command line: `key=value`, which the gateway converts to the type
//! in the tool's schema, or JSON.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::{Map, Value};

/// The maximum size of a text from a file or stdin.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

const NOT_BOTH: &str =
    "give either key=value pairs or one JSON object (`-` reads it from stdin), not both";

/// The sources of text that is not on the command line.
#[derive(Clone, Copy)]
pub(super) struct TextSources<'a> {
    pub(super) stdin: &'a str,
    pub(super) file: &'a dyn Fn(&Path) -> io::Result<String>,
}

/// Whether a word is an argument, not a name.
pub(super) fn is_argument(word: &str) -> bool {
    word == "-" || word.starts_with('{') || word.contains('=') || is_option(word)
}

/// Whether a word begins an argument of the form `--key value`.
fn is_option(word: &str) -> bool {
    word.len() > 2 && word.starts_with("--")
}

/// Whether a word contains all arguments.
fn is_whole(word: &str) -> bool {
    word == "-" || word.trim_start().starts_with('{')
}

/// Parsed arguments: values, and texts to be converted to the types in the tool's schema.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ParsedArguments {
    pub(super) values: Map<String, Value>,
    pub(super) texts: BTreeMap<String, String>,
}

/// Parses the arguments.
///
/// # Errors
/// A message that says which argument is invalid.
pub(super) fn read(words: &[String], sources: TextSources<'_>) -> Result<ParsedArguments, String> {
    let mut given = ParsedArguments::default();
    match words {
        [_, _, ..] if words.iter().any(|word| is_whole(word)) => return Err(NOT_BOTH.to_owned()),
        [only] if only == "-" => given.values = object(sources.stdin, "stdin")?,
        [only] if only.trim_start().starts_with('{') => {
            given.values = object(only, "the argument")?;
        }
        _ => {
            let mut words = words.iter().peekable();
            while let Some(word) = words.next() {
                if !is_option(word) || word.contains('=') {
                    given.add(word, sources.file)?;
                    continue;
                }
                // A key without a value is a flag.
                let value = words.next_if(|next| !is_option(next));
                let value = value.map_or("true", String::as_str);
                given.add(&format!("{word}={value}"), sources.file)?;
            }
        }
    }
    Ok(given)
}

impl ParsedArguments {
    /// Adds `key=text`, `key=@file` or `key:=JSON`. The dashes of `--key` are kept: the gateway
    /// then only accepts a key that the tool has.
    fn add(
        &mut self,
        word: &str,
        file: &dyn Fn(&Path) -> io::Result<String>,
    ) -> Result<(), String> {
        let (key, text) = word.split_once('=').ok_or_else(|| no_pair(word))?;
        let (key, is_json) = match key.strip_suffix(':') {
            Some(key) => (key, true),
            None if key.is_empty() => return Err(no_pair(word)),
            None => (key, false),
        };
        if self.values.contains_key(key) || self.texts.contains_key(key) {
            return Err(format!("`{key}` is given twice"));
        }
        if is_json {
            let value = serde_json::from_str(text);
            let value =
                value.map_err(|error| format!("the value of `{key}` is not valid JSON: {error}"));
            self.values.insert(key.to_owned(), value?);
            return Ok(());
        }
        let text = match text.strip_prefix('@') {
            Some(path) => {
                file(Path::new(path)).map_err(|error| format!("cannot read {path}: {error}"))?
            }
            None => text.to_owned(),
        };
        self.texts.insert(key.to_owned(), text);
        Ok(())
    }
}

/// Parses the arguments of a prompt, which are strings.
pub(super) fn texts(words: &[String]) -> Result<BTreeMap<String, String>, String> {
    if let [only] = words
        && only.trim_start().starts_with('{')
    {
        let members = object(only, "the argument")?.into_iter();
        // A value that is not a string is passed as its JSON.
        return Ok(members
            .map(|(key, value)| match value {
                Value::String(text) => (key, text),
                other => (key, other.to_string()),
            })
            .collect());
    }
    if words == ["-"] {
        return Err("`-` is not supported here; give key=value pairs or one JSON object".to_owned());
    }
    if words.iter().any(|word| is_whole(word)) {
        return Err("give either key=value pairs or one JSON object, not both".to_owned());
    }
    let mut arguments = BTreeMap::new();
    for word in words {
        let pair = word.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) = pair.ok_or_else(|| {
            format!("invalid argument `{word}`: expected key=value or one JSON object")
        })?;
        if arguments.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("`{key}` is given twice"));
        }
    }
    Ok(arguments)
}

fn no_pair(word: &str) -> String {
    format!("invalid argument `{word}`: expected key=value, key:=JSON or one JSON object")
}

fn object(text: &str, place: &str) -> Result<Map<String, Value>, String> {
    // Some programs write a byte order mark.
    match serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(format!("{place} is not a JSON object")),
        Err(error) => Err(format!("{place} is not valid JSON: {error}")),
    }
}

/// Reads a text up to the maximum size.
pub(super) fn read_text(input: impl io::Read) -> io::Result<String> {
    let mut text = String::new();
    input.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large"));
    }
    Ok(text)
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
