//! Arguments of a tool from the command line: `key=value`, each with the type that the tool's schema
//! asks for.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::{Map, Value};

/// No arguments are longer.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// References to references are not followed further.
const MAX_REFERENCES: usize = 16;

/// Two ways to say something.
const NOT_BOTH: &str =
    "give either key=value pairs, or one JSON object (or `-` for one on stdin), and not both";

/// Where text comes from that does not stand on the command line.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) stdin: &'a str,
    pub(super) file: &'a dyn Fn(&Path) -> io::Result<String>,
}

/// Whether a word is meant as an argument, and not as a name.
pub(super) fn is_argument(word: &str) -> bool {
    word == "-" || word.starts_with('{') || word.contains('=')
}

/// Whether a word stands for all arguments.
fn is_whole(word: &str) -> bool {
    word == "-" || word.trim_start().starts_with('{')
}

/// What the words mean for a tool with this schema.
///
/// # Errors
/// What is wrong with them.
pub(super) fn read(
    words: &[String],
    schema: &Map<String, Value>,
    sources: Sources<'_>,
) -> Result<Map<String, Value>, String> {
    match words {
        [_, _, ..] if words.iter().any(|word| is_whole(word)) => Err(NOT_BOTH.to_owned()),
        [only] if only == "-" => object(sources.stdin, "stdin"),
        [only] if only.trim_start().starts_with('{') => object(only, "the argument"),
        _ => {
            let mut arguments = Map::new();
            for word in words {
                let (key, value) = pair(word, schema, sources.file)?;
                if arguments.insert(key.to_owned(), value).is_some() {
                    return Err(format!("`{key}` is given twice"));
                }
            }
            Ok(arguments)
        }
    }
}

/// Arguments that are plain text, as prompts take them.
pub(super) fn texts(
    words: &[String],
) -> Result<std::collections::BTreeMap<String, String>, String> {
    if let [only] = words
        && only.trim_start().starts_with('{')
    {
        let members = object(only, "the argument")?.into_iter();
        // A prompt takes texts: what is none is given as it is written.
        return Ok(members
            .map(|(key, value)| match value {
                Value::String(text) => (key, text),
                other => (key, other.to_string()),
            })
            .collect());
    }
    if words == ["-"] {
        return Err("`-` is not taken here: give key=value pairs, or one JSON object".to_owned());
    }
    if words.iter().any(|word| is_whole(word)) {
        return Err("give either key=value pairs, or one JSON object, and not both".to_owned());
    }
    let mut arguments = std::collections::BTreeMap::new();
    for word in words {
        let pair = word.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) = pair.ok_or_else(|| {
            format!("`{word}` is not an argument: write key=value, or one JSON object")
        })?;
        if arguments.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("`{key}` is given twice"));
        }
    }
    Ok(arguments)
}

fn no_pair(word: &str) -> String {
    format!("`{word}` is not an argument: write key=value, key:=JSON, or one JSON object")
}

fn object(text: &str, place: &str) -> Result<Map<String, Value>, String> {
    // Some programs begin every file with a byte order mark.
    match serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(format!("{place} is not a JSON object")),
        Err(error) => Err(format!("{place} is not JSON: {error}")),
    }
}

fn pair<'w>(
    word: &'w str,
    schema: &Map<String, Value>,
    file: &dyn Fn(&Path) -> io::Result<String>,
) -> Result<(&'w str, Value), String> {
    let (key, text) = word.split_once('=').ok_or_else(|| no_pair(word))?;
    if let Some(key) = key.strip_suffix(':') {
        let value = serde_json::from_str(text);
        return match value {
            Ok(value) => Ok((key, value)),
            Err(error) => Err(format!("the value of `{key}` is not JSON: {error}")),
        };
    }
    if key.is_empty() {
        return Err(no_pair(word));
    }
    let wanted = Wanted::of(key, schema);
    let value = match text.strip_prefix('@') {
        Some(path) => {
            let text = file(Path::new(path));
            wanted.value(&text.map_err(|error| format!("{path} cannot be read: {error}"))?)
        }
        None => wanted.value(text),
    };
    value
        .map(|value| (key, value))
        .map_err(|kind| format!("`{key}` takes {kind}; `{key}:=…` takes it as JSON"))
}

/// What a schema allows for a key.
#[derive(Debug, Default)]
struct Wanted<'s> {
    types: BTreeSet<&'s str>,
    values: Vec<&'s Value>,
}

impl<'s> Wanted<'s> {
    fn of(key: &str, schema: &'s Map<String, Value>) -> Self {
        let mut wanted = Self::default();
        let property = schema.get("properties").and_then(|properties| properties.get(key));
        if let Some(property) = property.or_else(|| schema.get("additionalProperties")) {
            wanted.add(property, schema, MAX_REFERENCES);
        }
        wanted
    }

    fn add(&mut self, schema: &'s Value, root: &'s Map<String, Value>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match schema.get("type") {
            Some(Value::String(kind)) => drop(self.types.insert(kind)),
            Some(Value::Array(kinds)) => self.types.extend(kinds.iter().filter_map(Value::as_str)),
            _ => {}
        }
        self.values.extend(schema.get("enum").and_then(Value::as_array).into_iter().flatten());
        self.values.extend(schema.get("const"));
        for key in ["anyOf", "oneOf", "allOf"] {
            let variants = schema.get(key).and_then(Value::as_array);
            variants.into_iter().flatten().for_each(|variant| self.add(variant, root, depth));
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        let path = reference.and_then(|reference| reference.strip_prefix("#/"));
        if let Some(there) = path.and_then(|path| find(path, root)) {
            self.add(there, root, depth);
        }
    }

    /// The text as a value that fits. Where a text would do, too, a number is still taken for a number:
    /// it says so in the schema that it may be one.
    fn value(&self, text: &str) -> Result<Value, &'static str> {
        let spells = |value: &&&Value| match value {
            Value::String(known) => known == text,
            other => other.to_string() == text,
        };
        if let Some(value) = self.values.iter().find(spells) {
            return Ok((**value).clone());
        }
        let parsed = serde_json::from_str::<Value>(text.trim()).ok();
        let takes = |kind| self.types.contains(kind);
        if let Some(value) = parsed.filter(|value| {
            match value {
                Value::Number(_) => takes("number") || takes("integer"),
                Value::Bool(_) => takes("boolean"),
                Value::Array(_) => takes("array"),
                Value::Object(_) => takes("object"),
                // The word `null` where a text may stand, too, is that text.
                Value::Null => takes("null") && !takes("string"),
                Value::String(_) => false,
            }
        }) {
            return Ok(value);
        }
        let only = |kind| takes(kind) && !takes("string");
        match () {
            // Nothing is said of it, or a text fits: the tool is asked whether it does.
            () if self.types.is_empty() || takes("string") => Ok(text.into()),
            () if only("integer") && !takes("number") => Err("a whole number"),
            () if only("number") => Err("a number"),
            () if only("boolean") => Err("true or false"),
            () if only("array") => Err("a list"),
            () if only("object") => Err("an object"),
            () => Ok(text.into()),
        }
    }
}

/// What a JSON pointer (without its beginning) leads to.
fn find<'s>(path: &str, root: &'s Map<String, Value>) -> Option<&'s Value> {
    let mut parts = path.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    let first = root.get(&parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(&part))
}

/// Reads all of a text, within bounds.
pub(super) fn read_text(input: impl io::Read) -> io::Result<String> {
    let mut text = String::new();
    input.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(text)
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
