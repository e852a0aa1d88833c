//! Names and values of a JSON Schema that must not reach a model: they cannot be sanitized, because
//! calls depend on them.

use serde_json::{Map, Value};

use crate::label::is_clean_line;
use crate::sanitize::sanitize;
use crate::untrusted::Untrusted;

/// Why a schema must not be shown to a model. It is in a name or a value, which must not be altered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Hazard {
    /// Characters that a model reads and a user does not see.
    #[error("its schema has hidden characters in a name or a value")]
    HiddenCharacters,
    /// A control token of a chat template, or a look-alike of our boundary marker.
    #[error("its schema has a chat control token or a boundary marker in a name or a value")]
    ControlToken,
}

/// Finds what sanitizing left in a schema: in the name of a property, in an `enum` value, in a
/// `pattern`, or elsewhere where the value must not be altered.
pub fn hazard(schema: &Map<String, Value>) -> Option<Hazard> {
    schema.iter().find_map(|(name, value)| in_text(name).or_else(|| in_value(value)))
}

/// Recursion is bounded, as in all JSON that is parsed.
fn in_value(value: &Value) -> Option<Hazard> {
    match value {
        Value::String(text) => in_text(text),
        Value::Array(items) => items.iter().find_map(in_value),
        Value::Object(members) => hazard(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn in_text(text: &str) -> Option<Hazard> {
    // Nearly all names and values are plain.
    if is_clean_line(Untrusted::new(text), usize::MAX) {
        return None;
    }
    if is_disguised(text) {
        return Some(Hazard::HiddenCharacters);
    }
    (!sanitize(Untrusted::new(text)).is_unchanged()).then_some(Hazard::ControlToken)
}

/// Scripts and emoji need joiners and selectors, one at a time and after a non-ASCII character;
/// line breaks and tabs are legitimate values. All other invisible characters are suspicious.
fn is_disguised(text: &str) -> bool {
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if text.is_ascii() {
        return text.chars().any(is_control);
    }
    let is_joiner = |c: char| matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
    let is_hidden = |c: char| {
        matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
    };
    let mut before = ' ';
    text.chars().any(|c| {
        let is_stray = is_joiner(c) && (before.is_ascii() || is_joiner(before));
        before = c;
        is_stray || is_hidden(c) || is_control(c)
    })
}
