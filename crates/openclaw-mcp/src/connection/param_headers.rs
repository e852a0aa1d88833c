//! Arguments that are also sent as headers, so that intermediaries need not parse the body
//! (2026-07-28, `x-mcp-header`).
//!
//! A property that the tool's schema marks with `"x-mcp-header": "Region"` is sent as
//! `Mcp-Param-Region` in addition to the body. A tool with invalid marks must not be offered over
//! HTTP.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

const MARK: &str = "x-mcp-header";
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// An argument that is also sent as a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    /// `mcp-param-…`
    name: HeaderName,
    /// The path of properties to the argument.
    path: Vec<String>,
}

impl ParamHeader {
    /// Returns the name of the header.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Returns the header for these arguments; `None` if the argument is absent or null.
    pub(crate) fn of(&self, arguments: &Value) -> Option<(HeaderName, HeaderValue)> {
        let argument = self.path.iter().try_fold(arguments, |value, key| value.get(key))?;
        let text = match argument {
            Value::String(text) => header_value(text),
            Value::Bool(_) | Value::Number(_) => header_value(&argument.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
        Some((self.name.clone(), text?))
    }
}

/// Converts text to a header value, encoded as Base64 if it could not be sent unchanged.
pub(crate) fn header_value(text: &str) -> Option<HeaderValue> {
    let (prefix, suffix) = ENCODED;
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let has_edges = text.starts_with(' ') || text.ends_with(' ');
    let looks_encoded = text.starts_with(prefix) && text.ends_with(suffix);
    if is_plain && !has_edges && !looks_encoded {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("{prefix}{}{suffix}", BASE64_STANDARD.encode(text))).ok()
}

/// Returns the arguments that a tool's schema marks.
///
/// # Errors
/// If the schema breaks a rule. The tool must not be offered over HTTP then.
pub fn of_schema(schema: &Map<String, Value>) -> Result<Vec<ParamHeader>, String> {
    if schema.contains_key(MARK) {
        return Err(format!("`{MARK}` marks the whole schema instead of a property"));
    }
    let mut found = Found::default();
    found.object(schema, &mut Vec::new())?;
    Ok(found.headers)
}

#[derive(Default)]
struct Found {
    headers: Vec<ParamHeader>,
    names: BTreeSet<String>,
}

impl Found {
    /// Visits a schema that is reachable through `properties` alone.
    fn object(
        &mut self,
        schema: &Map<String, Value>,
        path: &mut Vec<String>,
    ) -> Result<(), String> {
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        let Value::Object(property) = property else { continue };
                        path.push(name.clone());
                        if let Some(mark) = property.get(MARK) {
                            self.mark(mark, property, path)?;
                        }
                        self.object(property, path)?;
                        path.pop();
                    }
                }
                // Values, not schemas.
                (MARK | "default" | "const" | "enum" | "examples", _) => {}
                _ if is_marked(value) => {
                    return Err(format!("`{MARK}` within `{keyword}` is ambiguous"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn mark(
        &mut self,
        mark: &Value,
        property: &Map<String, Value>,
        path: &[String],
    ) -> Result<(), String> {
        let at = path.join(".");
        let Value::String(mark) = mark else {
            return Err(format!("`{MARK}` of `{at}` is not a string"));
        };
        if mark.is_empty() {
            return Err(format!("`{MARK}` of `{at}` is empty"));
        }
        let is_token = mark.bytes().all(is_token_byte);
        let name = HeaderName::from_bytes(format!("mcp-param-{mark}").as_bytes());
        let (true, Ok(name)) = (is_token, name) else {
            return Err(format!("`{MARK}` of `{at}` is not a valid header name"));
        };
        if !self.names.insert(mark.to_ascii_lowercase()) {
            return Err(format!("`{MARK}` of `{at}` is used twice"));
        }
        if !is_primitive(property.get("type")) {
            return Err(format!(
                "`{MARK}` of `{at}` marks something other than a string, an integer or a boolean"
            ));
        }
        self.headers.push(ParamHeader { name, path: path.to_vec() });
        Ok(())
    }
}

/// Returns whether a part of a schema that is not reachable through `properties` alone has a mark.
fn is_marked(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.contains_key(MARK) || object.values().any(is_marked),
        Value::Array(items) => items.iter().any(is_marked),
        _ => false,
    }
}

/// Returns whether values of this type fit into a header: one of three types, optionally with null.
fn is_primitive(kind: Option<&Value>) -> bool {
    let fits = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Some(Value::Array(kinds)) => {
            kinds.iter().any(fits) && kinds.iter().all(|kind| fits(kind) || kind == "null")
        }
        Some(kind) => fits(kind),
        None => false,
    }
}

/// RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(properties: &Value) -> Result<Vec<ParamHeader>, String> {
        let schema = json!({ "type": "object", "properties": properties });
        of_schema(schema.as_object().unwrap())
    }

    /// Returns the headers of a call as text.
    fn told(properties: &Value, arguments: &Value) -> Vec<(String, String)> {
        let headers = of(properties).unwrap();
        let told = headers.iter().filter_map(|header| header.of(arguments));
        told.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
    }

    #[test]
    fn strings_integers_and_booleans_are_sent_including_nested_ones() {
        let properties = json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "priority": { "type": "integer", "x-mcp-header": "Priority" },
            "verbose": { "type": ["boolean", "null"], "x-mcp-header": "Verbose" },
            "method": { "type": "string", "x-mcp-header": "Method" },
            "query": { "type": "string" },
            "where": { "type": "object", "properties": {
                "city": { "type": "string", "x-mcp-header": "City" },
            } },
        });
        let arguments = json!({
            "region": "us west 1", "priority": 42, "verbose": false, "method": "",
            "query": "SELECT", "where": { "city": "Rome" },
        });
        let expected = [
            ("mcp-param-region", "us west 1"),
            ("mcp-param-priority", "42"),
            ("mcp-param-verbose", "false"),
            ("mcp-param-method", ""),
            ("mcp-param-city", "Rome"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(told(&properties, &arguments), expected);
    }

    #[test]
    fn absent_null_and_compound_arguments_are_not_sent() {
        let properties = json!({
            "a": { "type": "string", "x-mcp-header": "A" },
            "b": { "type": "object", "properties": {
                "c": { "type": "string", "x-mcp-header": "C" },
            } },
        });
        for arguments in [
            json!({}),
            json!({ "a": null, "b": null }),
            json!({ "a": [1], "b": { "c": {} } }),
            json!([]),
        ] {
            assert_eq!(told(&properties, &arguments), [], "{arguments}");
        }
    }

    #[test]
    fn text_that_a_header_cannot_carry_is_encoded() {
        let properties = json!({ "a": { "type": "string", "x-mcp-header": "A" } });
        for text in [
            "Hello, 世界",
            " padded ",
            " x",
            "x ",
            "line1\nline2",
            "a\r\nEvil: 1",
            "\tindented",
            "=?base64?eA==?=",
            "\u{7f}",
        ] {
            let told = told(&properties, &json!({ "a": text }));
            let value = told[0].1.strip_prefix("=?base64?").and_then(|it| it.strip_suffix("?="));
            let decoded = BASE64_STANDARD.decode(value.unwrap()).unwrap();
            assert_eq!(decoded, text.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn invalid_marks_are_rejected() {
        let refused = [
            json!({ "a": { "type": "string", "x-mcp-header": "" } }),
            json!({ "a": { "type": "string", "x-mcp-header": 5 } }),
            json!({ "a": { "type": "object", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "array", "items": {}, "x-mcp-header": "A" } }),
            json!({ "a": { "type": "null", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
            json!({ "a": { "x-mcp-header": "A" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "My Region" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "Region:Primary" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "Région" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "Region\t1" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "Same" },
                    "b": { "type": "string", "x-mcp-header": "same" } }),
            json!({ "a": { "type": "array", "items": { "type": "string", "x-mcp-header": "A" } } }),
            json!({ "a": { "anyOf": [{ "type": "string", "x-mcp-header": "A" }] } }),
            json!({ "a": { "type": "object", "additionalProperties": {
                "type": "string", "x-mcp-header": "A" } } }),
        ];
        for properties in refused {
            assert!(of(&properties).is_err(), "{properties}");
        }
        let of_root = json!({ "type": "object", "x-mcp-header": "A" });
        assert!(of_schema(of_root.as_object().unwrap()).is_err());
    }

    #[test]
    fn a_schema_without_marks_has_no_headers_and_values_are_not_schemas() {
        let properties = json!({
            "a": { "type": "object", "default": { "x-mcp-header": 1 }, "enum": [{ "x-mcp-header": 2 }] },
            "b": true,
        });
        assert_eq!(of(&properties), Ok(Vec::new()));
        assert_eq!(of_schema(&Map::new()), Ok(Vec::new()));
    }
}
