//! Parses JSON5 into a tree in which every key and value has its position.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind};

use crate::diagnostic::Diagnostic;
use crate::source::{SourceId, SourceSpan, Sources};

/// A value and its position. No `Debug`: it may contain credentials.
#[derive(Clone)]
pub(crate) struct ConfigNode {
    pub(crate) at: SourceSpan,
    pub(crate) value: ConfigValue,
}

#[derive(Clone)]
pub(crate) enum ConfigValue {
    Null,
    Bool(bool),
    /// As written: `30000`, `3e4`, `0x7530`, `+1`, `.5`, `Infinity`.
    Number(String),
    String(String),
    Array(Vec<ConfigNode>),
    Object(Vec<ConfigMember>),
}

/// A key and its value.
#[derive(Clone)]
pub(crate) struct ConfigMember {
    pub(crate) key: String,
    pub(crate) key_at: SourceSpan,
    pub(crate) node: ConfigNode,
}

impl ConfigNode {
    /// Returns the span to mark in messages: of an object or an array only the first character,
    /// because it may have many lines.
    pub(crate) fn mark(&self) -> SourceSpan {
        match self.value {
            ConfigValue::Array(_) | ConfigValue::Object(_) => {
                SourceSpan { end: self.at.end.min(self.at.start + 1), ..self.at }
            }
            _ => self.at,
        }
    }
}

impl ConfigMember {
    /// Returns the span to mark in messages: the key if the value may have many lines, else the value.
    pub(crate) fn mark(&self) -> SourceSpan {
        match self.node.value {
            ConfigValue::Array(_) | ConfigValue::Object(_) => self.key_at,
            _ => self.node.at,
        }
    }
}

impl ConfigValue {
    /// Returns its type for messages. Never the value: it may be a credential.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// Parser options for strict JSON5.
pub(crate) fn json5() -> ParseOptions {
    ParseOptions { allow_missing_commas: false, ..ParseOptions::default() }
}

/// Parses one of the `sources`. An empty file is an empty object.
pub(crate) fn parse(sources: &Sources, id: SourceId) -> Result<ConfigNode, Box<Diagnostic>> {
    let text = &sources.get(id).text;
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &json5())
        .map_err(|error| Box::new(explain(&error, text, id)))?;
    Ok(match parsed.value {
        Some(value) => convert(value, id),
        None => {
            ConfigNode { at: SourceSpan::new(id, 0..0), value: ConfigValue::Object(Vec::new()) }
        }
    })
}

/// Whether a text contains nothing but comments.
pub(crate) fn is_blank(text: &str) -> bool {
    // A quick check, so that most texts are not parsed a second time.
    let begins = text.trim_start_matches('\u{feff}').trim_start();
    !begins.starts_with(['{', '['])
        && jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &json5())
            .is_ok_and(|parsed| parsed.value.is_none())
}

// The parser bounds the nesting depth, and with it this recursion.
fn convert(value: ast::Value<'_>, id: SourceId) -> ConfigNode {
    let at = SourceSpan::new(id, value.start()..value.end());
    let value = match value {
        ast::Value::NullKeyword(_) => ConfigValue::Null,
        ast::Value::BooleanLit(literal) => ConfigValue::Bool(literal.value),
        ast::Value::NumberLit(literal) => ConfigValue::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => ConfigValue::String(literal.value.into_owned()),
        ast::Value::Array(array) => ConfigValue::Array(
            array.elements.into_iter().map(|element| convert(element, id)).collect(),
        ),
        ast::Value::Object(object) => ConfigValue::Object(
            object
                .properties
                .into_iter()
                .map(|property| ConfigMember {
                    key_at: SourceSpan::new(id, property.name.start()..property.name.end()),
                    key: property.name.into_string(),
                    node: convert(property.value, id),
                })
                .collect(),
        ),
    };
    ConfigNode { at, value }
}

/// Describes a syntax error and how to fix it.
fn explain(error: &ParseError, text: &str, id: SourceId) -> Diagnostic {
    use ParseErrorKind as Kind;
    let range = error.range();
    let (message, label, help) = match error.kind() {
        Kind::ExpectedComma => (
            "missing comma".to_owned(),
            "expected `,` here",
            Some("entries of an object or array are separated by commas"),
        ),
        Kind::ExpectedColonAfterObjectKey => {
            ("missing colon after the key".to_owned(), "expected `:` here", None)
        }
        Kind::ExpectedObjectValue => {
            ("missing value after the key".to_owned(), "expected a value", None)
        }
        Kind::UnterminatedObject => {
            ("unclosed object".to_owned(), "`{` opened here", Some("add the missing `}`"))
        }
        Kind::UnterminatedArray => {
            ("unclosed array".to_owned(), "`[` opened here", Some("add the missing `]`"))
        }
        Kind::UnterminatedCommentBlock => {
            ("unclosed comment".to_owned(), "opened here", Some("add the missing `*/`"))
        }
        Kind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            ("unclosed string".to_owned(), "opened here", Some("add the missing quote"))
        }
        Kind::MultipleRootJsonValues => (
            "unexpected text after the end of the configuration".to_owned(),
            "not expected here",
            Some("a configuration is one object: `{ … }`"),
        ),
        Kind::NestingDepthExceeded => (
            "nested too deeply".to_owned(),
            "too many levels",
            Some("a configuration needs fewer than ten levels"),
        ),
        Kind::UnexpectedToken | Kind::UnexpectedWord | Kind::UnexpectedTokenInObject => (
            "invalid JSON5".to_owned(),
            "not expected here",
            Some("strings need quotes, comments begin with `//`"),
        ),
        other => (format!("invalid JSON5: {}", lower_first(&other.to_string())), "here", None),
    };
    let start = text.floor_char_boundary(range.start);
    let end = text.floor_char_boundary(range.end).max(start);
    // Mark only the opening token: the rest may be the whole file.
    let end = match error.kind() {
        Kind::UnterminatedObject | Kind::UnterminatedArray => (start + 1).min(text.len()),
        Kind::UnterminatedCommentBlock => (start + 2).min(text.len()),
        Kind::String(_) => end.min(text[start..].find('\n').map_or(end, |line| start + line)),
        _ => end,
    };
    let mut diagnostic = Diagnostic::error(message).at(SourceSpan::new(id, start..end), label);
    if let Some(help) = help {
        diagnostic = diagnostic.help(help);
    }
    diagnostic
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
