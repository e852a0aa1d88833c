//! Configuration strings, and the expansion of environment variables in them (C6).

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::decode::{Decode, Decoder, Overlay};
use crate::tree::{ConfigNode, ConfigValue};

/// A string as written in the file. No `Debug`: it may be a credential.
#[derive(Clone)]
pub(crate) struct ConfigText(pub(crate) String);

impl Decode for ConfigText {
    fn decode(node: &ConfigNode, cx: &mut Decoder<'_>) -> Option<Self> {
        if let ConfigValue::String(text) = &node.value {
            return Some(Self(text.clone()));
        }
        cx.wrong_type(node, "a string");
        None
    }
}

impl Overlay for ConfigText {}

impl JsonSchema for ConfigText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Text".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// A string with its environment variables expanded. `Display` and `Debug` show the text as
/// written, because the value of a variable may be a credential.
#[derive(Clone)]
pub struct Expanded {
    value: String,
    written: String,
    has_variables: bool,
}

impl Expanded {
    pub(crate) fn new(expansion: Expansion, written: &str) -> Self {
        let Expansion { value, has_variables, .. } = expansion;
        Self { value, written: written.to_owned(), has_variables }
    }

    /// Returns a text that is taken as it is: nothing in it is a variable.
    #[must_use]
    pub fn literal(text: &str) -> Self {
        Self { value: text.to_owned(), written: text.to_owned(), has_variables: false }
    }

    /// Replaces the value; the text as written stays.
    pub(crate) fn with_value(self, value: String) -> Self {
        Self { value, ..self }
    }

    /// Whether the text uses variables.
    pub(crate) fn has_variables(&self) -> bool {
        self.has_variables
    }

    /// Returns the expanded value. Do not display it.
    pub fn as_str(&self) -> &str {
        &self.value
    }

    /// Returns the text as written in the file, with its variables unexpanded.
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl PartialEq for Expanded {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Expanded {}

impl fmt::Display for Expanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl fmt::Debug for Expanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

/// The result of expanding the variables in a string.
#[derive(Default)]
pub(crate) struct Expansion {
    pub(crate) value: String,
    /// Whether the string uses variables.
    pub(crate) has_variables: bool,
    /// The names of unset variables.
    pub(crate) unset: Vec<String>,
    /// The problem with a `${` that does not begin a valid reference.
    pub(crate) malformed: Option<String>,
}

/// Looks up an environment variable.
pub(crate) type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Expands `${NAME}`, `${NAME:-default}` and `$NAME`; `$$` is a literal `$`. The short form takes
/// upper-case names only, so that text such as `$ref` or `^a$` is left alone.
pub(crate) fn expand(text: &str, lookup: VariableLookup<'_>) -> Expansion {
    let mut out = Expansion::default();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        out.value.push_str(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.value.push('$');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            rest = out.braced(after, lookup);
        } else {
            let short = |c: char| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit();
            let end = rest.find(|c| !short(c)).unwrap_or(rest.len());
            let name = &rest[..end];
            if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                out.value.push('$');
            } else {
                out.variable(name, None, lookup);
                rest = &rest[end..];
            }
        }
    }
    out.value.push_str(rest);
    out
}

impl Expansion {
    /// Expands the text after a `${`. Returns the text after the `}`.
    fn braced<'t>(&mut self, after: &'t str, lookup: VariableLookup<'_>) -> &'t str {
        let Some(close) = after.find('}') else {
            self.malformed = Some("`${` without a `}`".to_owned());
            return "";
        };
        let inner = &after[..close];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if is_variable_name(name) {
            self.variable(name, default, lookup);
        } else {
            self.malformed = Some(format!("`${{{name}}}` does not name a variable"));
        }
        &after[close + 1..]
    }

    fn variable(&mut self, name: &str, default: Option<&str>, lookup: VariableLookup<'_>) {
        self.has_variables = true;
        match lookup(name).or_else(|| default.map(str::to_owned)) {
            Some(value) => self.value.push_str(&value),
            None => self.unset.push(name.to_owned()),
        }
    }
}

/// Whether the whole word is a reference: `secret://…`, `${NAME}`, `${NAME:-}`, `$NAME`. It names a
/// value without containing it, so it may be displayed.
pub(crate) fn is_reference_word(word: &str) -> bool {
    if word.starts_with(openclaw_secrets::SCHEME) {
        return !word.contains(char::is_whitespace);
    }
    let braced = word.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    match (braced, word.strip_prefix('$')) {
        (Some(name), _) => is_variable_name(name.strip_suffix(":-").unwrap_or(name)),
        (None, Some(name)) => {
            is_variable_name(name) && !name.contains(|c: char| c.is_ascii_lowercase())
        }
        (None, None) => false,
    }
}

/// Whether this is a valid environment variable name.
pub(crate) fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Splits a command line into words, as a shell would; `None` if it is a single word, or is not
/// valid. Text with backslashes may be a path of Windows, and is not split.
#[must_use]
pub fn split_command(text: &str) -> Option<Vec<String>> {
    if text.contains('\\') {
        return None;
    }
    shlex::split(text).filter(|words| words.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/h".to_owned()),
            "lower" => Some("l".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_replaced_in_both_forms() {
        let value = |text| expand(text, &lookup).value;
        assert_eq!(value("${HOME}/x"), "/h/x");
        assert_eq!(value("$HOME/x"), "/h/x");
        assert_eq!(value("a${lower}b"), "alb");
        assert_eq!(value("${NOPE:-d}$EMPTY."), "d.");
    }

    #[test]
    fn a_doubled_dollar_and_text_that_only_looks_like_a_variable_stay() {
        let value = |text| expand(text, &lookup).value;
        assert_eq!(value("$${HOME} $$HOME"), "${HOME} $HOME");
        assert_eq!(value("cost: 5$ ^a$ $ref $1"), "cost: 5$ ^a$ $ref $1");
        assert_eq!(value("$$$HOME"), "$/h");
    }

    #[test]
    fn only_what_is_replaced_as_a_whole_counts_as_a_reference() {
        for word in ["secret://env/A", "${name}", "${NAME:-}", "$NAME"] {
            assert!(is_reference_word(word), "{word}");
        }
        for word in
            ["$ecret", "$hunter2", "$$NAME", "${NAME:-hunter2}", "x${NAME}", "secret://a b", ""]
        {
            assert!(!is_reference_word(word), "{word}");
        }
    }

    #[test]
    fn unset_variables_are_named_and_malformed_ones_reported() {
        assert_eq!(expand("${NOPE} $NADA", &lookup).unset, ["NOPE", "NADA"]);
        assert!(expand("${HOME", &lookup).malformed.is_some());
        assert!(expand("${a b}", &lookup).malformed.is_some());
        assert!(expand("${}", &lookup).malformed.is_some());
    }
}
