//! The schema of a tool for models (B2, B3).
//!
//! Texts in a schema are sanitized and truncated like descriptions. Names and values must stay as
//! they are, because calls depend on them: a tool whose names or values could be mistaken for our own
//! markup is not offered at all.

use std::sync::Arc;

use openclaw_content::{Hazard, Untrusted, hazard, is_clean_line};
use openclaw_tools::schema::{for_each_subschema_mut, holds_for_each_subschema};
use serde_json::{Map, Value};

use super::describe::clean_lines;

/// The maximum length of a description or title inside a schema.
const MAX_INNER: usize = 500;

/// A schema that models may see, if it has no hazard.
#[derive(Debug)]
pub struct ModelSchema {
    /// The schema, with its texts sanitized and truncated.
    pub schema: Arc<Map<String, Value>>,
    /// What sanitizing could not remove.
    pub hazard: Option<Hazard>,
}

impl ModelSchema {
    /// Sanitizes a schema. It is copied only if something changes.
    pub fn of(schema: &Arc<Map<String, Value>>) -> Self {
        let schema = clean(schema);
        let hazard = hazard(&schema);
        Self { schema, hazard }
    }
}

/// Keywords whose value must not be altered: calls and references depend on it.
const TO_THE_LETTER: [&str; 14] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveRef",
    "$ref",
    "$schema",
    "const",
    "contentEncoding",
    "contentMediaType",
    "format",
    "id",
    "pattern",
    "type",
];

/// Formats of JSON Schema, of the `OpenAPI` registry, and of widespread schema generators.
#[rustfmt::skip]
const FORMATS: &[&str] = &[
    "base64url", "binary", "byte", "char", "color", "commonmark", "cuid", "cuid2", "date",
    "date-time", "decimal", "decimal128", "directory-path", "double", "double-int", "duration",
    "email", "emoji", "file-path", "float", "hostname", "html", "http-date", "idn-email",
    "idn-hostname", "int16", "int32", "int64", "int8", "ip", "ipv4", "ipv6", "iri",
    "iri-reference", "json-pointer", "json-string", "markdown", "nanoid", "password", "path",
    "phone", "regex", "relative-json-pointer", "time", "uint16", "uint32", "uint64", "uint8",
    "ulid", "uri", "uri-reference", "uri-template", "url", "uuid",
];
const ENCODINGS: [&str; 8] =
    ["7bit", "8bit", "base16", "base32", "base64", "base64url", "binary", "quoted-printable"];
/// The maximum length of a media type (RFC 6838 allows twice 127 characters).
const MAX_MEDIA_TYPE: usize = 100;

/// Whether a keyword has no registered vocabulary, or its value is in it: an arbitrary text there
/// would reach the model unchanged.
fn is_registered(keyword: &str, value: &Value) -> bool {
    match (keyword, value) {
        ("format", Value::String(format)) => FORMATS.contains(&format.as_str()),
        ("contentEncoding", Value::String(encoding)) => {
            ENCODINGS.iter().any(|known| encoding.eq_ignore_ascii_case(known))
        }
        ("contentMediaType", Value::String(kind)) => is_media_type(kind),
        ("format" | "contentEncoding" | "contentMediaType", _) => false,
        _ => true,
    }
}

/// Whether it has the form of a media type without parameters.
fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        let is_good = |c: u8| c.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&c);
        !part.is_empty() && part.bytes().all(is_good)
    };
    text.len() <= MAX_MEDIA_TYPE
        && text.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Sanitizes and truncates the texts in a schema: descriptions, titles, examples, defaults and
/// unknown keywords. Keywords with a registered vocabulary are dropped if their value is not in it.
fn clean(schema: &Arc<Map<String, Value>>) -> Arc<Map<String, Value>> {
    // Most schemas are clean and need no copy.
    if holds_for_each_subschema(schema, &is_clean) {
        return Arc::clone(schema);
    }
    let mut root = Value::Object(Map::clone(schema));
    for_each_subschema_mut(&mut root, &mut |schema| {
        schema.retain(|key, value| match key.as_str() {
            "$comment" => false,
            "description" | "title" => value.is_string(),
            keyword => is_registered(keyword, value),
        });
        for (key, value) in schema.iter_mut() {
            match value {
                Value::String(text) if !TO_THE_LETTER.contains(&key.as_str()) => {
                    *text = clean_lines(text, MAX_INNER);
                }
                value if matches!(key.as_str(), "default" | "example" | "examples") => {
                    clean_value(value);
                }
                _ => {}
            }
        }
    });
    match root {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}

/// Whether [`clean`] leaves this schema unchanged, not counting its subschemas.
fn is_clean(schema: &Map<String, Value>) -> bool {
    schema.iter().all(|(key, value)| match (key.as_str(), value) {
        ("$comment", _) => false,
        (key, value) if !is_registered(key, value) => false,
        (key, Value::String(text)) => {
            TO_THE_LETTER.contains(&key) || is_clean_line(Untrusted::new(text), MAX_INNER)
        }
        ("description" | "title", _) => false,
        ("default" | "example" | "examples", value) => is_clean_value(value),
        _ => true,
    })
}

fn is_clean_value(value: &Value) -> bool {
    match value {
        Value::String(text) => is_clean_line(Untrusted::new(text), MAX_INNER),
        Value::Array(items) => items.iter().all(is_clean_value),
        Value::Object(members) => members.values().all(is_clean_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Recursion is bounded: listing has limited the nesting.
fn clean_value(value: &mut Value) {
    match value {
        Value::String(text) => *text = clean_lines(text, MAX_INNER),
        Value::Array(items) => items.iter_mut().for_each(clean_value),
        Value::Object(members) => members.values_mut().for_each(clean_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
#[path = "model_schema_tests.rs"]
mod tests;
