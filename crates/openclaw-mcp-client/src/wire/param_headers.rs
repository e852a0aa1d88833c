//! Arguments that are also sent as headers, so that intermediaries need not parse the body
//! (2026-07-28, `x-mcp-header`).
//!
//! A property that the tool's schema marks with `"x-mcp-header": "Region"` is sent as
//! `Mcp-Param-Region` in addition to the body. A tool with invalid marks must not be offered over
//! HTTP.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
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
    pub(crate) fn value(&self, arguments: &Value) -> Option<(HeaderName, HeaderValue)> {
        let (text, _) = self.argument(arguments)?;
        Some((self.name.clone(), header_value(&text)?))
    }

    /// Checks that the headers of a request agree with its arguments. A header without an argument is
    /// ignored.
    ///
    /// # Errors
    /// If the header is missing, present twice, badly encoded or different.
    pub fn check(&self, arguments: &Value, headers: &HeaderMap) -> Result<(), String> {
        let Some((expected, number)) = self.argument(arguments) else { return Ok(()) };
        let name = &self.name;
        let argument = self.path.join(".");
        let mut values = headers.get_all(name).iter();
        let value = match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok().and_then(decoded),
            (None, _) => return Err(format!("`{argument}` needs the header `{name}`")),
            (Some(_), Some(_)) => return Err(format!("there is more than one header `{name}`")),
        };
        let value = value.ok_or_else(|| format!("the header `{name}` is badly encoded"))?;
        let is_equal = *value == *expected
            || number.is_some_and(|it| serde_json::from_str(&value).is_ok_and(|by: f64| by == it));
        let differs = || format!("the header `{name}` and the argument `{argument}` differ");
        is_equal.then_some(()).ok_or_else(differs)
    }

    /// Returns the argument as text, and as a number if it is one.
    fn argument<'a>(&self, arguments: &'a Value) -> Option<(Cow<'a, str>, Option<f64>)> {
        match self.path.iter().try_fold(arguments, |value, key| value.get(key))? {
            Value::String(text) => Some((text.into(), None)),
            Value::Bool(is_on) => Some((is_on.to_string().into(), None)),
            Value::Number(number) => Some((number.to_string().into(), number.as_f64())),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// Returns the arguments of a call that are sent as headers, without a tree of all others.
pub fn marked_arguments(headers: &[ParamHeader], arguments: &RawValue) -> Value {
    let paths: Vec<_> = headers.iter().map(|header| &header.path[..]).collect();
    let mut reader = serde_json::Deserializer::from_str(arguments.get());
    OnlyAt(&paths).deserialize(&mut reader).unwrap_or_default()
}

/// Reads the plain values at these paths of properties; everything else is `null` or left out.
struct OnlyAt<'a>(&'a [&'a [String]]);

impl<'de> DeserializeSeed<'de> for OnlyAt<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OnlyAt<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let below = self.0.iter().filter_map(|path| path.split_first());
            let paths: Vec<_> =
                below.filter(|(first, _)| **first == name).map(|(_, rest)| rest).collect();
            if paths.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                members.insert(name, map.next_value_seed(OnlyAt(&paths))?);
            }
        }
        Ok(Value::Object(members))
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

/// Returns the text of a header value, which may be encoded as Base64.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let (prefix, suffix) = ENCODED;
    let Some(encoded) = value.strip_prefix(prefix).and_then(|it| it.strip_suffix(suffix)) else {
        return Some(value.into());
    };
    Some(String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()?.into())
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
        let raw = serde_json::value::to_raw_value(arguments).unwrap();
        let told: Vec<_> = headers.iter().filter_map(|header| header.value(arguments)).collect();
        let marked = marked_arguments(&headers, &raw);
        assert!(headers.iter().filter_map(|header| header.value(&marked)).eq(told.iter().cloned()));
        let told = told.into_iter();
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
    fn arguments_that_are_not_marked_are_not_kept() {
        let properties = json!({
            "a": { "type": "string", "x-mcp-header": "A" },
            "b": { "type": "object", "properties": {
                "c": { "type": "integer", "x-mcp-header": "C" },
            } },
        });
        let headers = of(&properties).unwrap();
        let marked = |json: &str| {
            marked_arguments(&headers, &RawValue::from_string(json.to_owned()).unwrap())
        };
        let kept = json!({ "a": "x", "b": { "c": 5 } });
        assert_eq!(marked(r#"{"x":[0,{}],"b":{"d":[0],"c":5},"a":"y","a":"x"}"#), kept);
        assert_eq!(
            marked(r#"{"a":[0,{"a":1}],"b":{"c":{"c":1}}}"#),
            json!({ "a": null, "b": { "c": {} } })
        );
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
    fn a_header_agrees_with_its_argument_or_the_request_is_rejected() {
        let properties = json!({
            "a": { "type": "string", "x-mcp-header": "A" },
            "n": { "type": "integer", "x-mcp-header": "N" },
        });
        let marked = of(&properties).unwrap();
        let check = |arguments: &Value, sent: &[(&'static str, &str)]| {
            let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).unwrap();
            let headers =
                sent.iter().map(|(name, text)| (HeaderName::from_static(name), value(text)));
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(name, value);
            }
            marked.iter().try_for_each(|header| header.check(arguments, &map))
        };
        let a = "mcp-param-a";
        let n = "mcp-param-n";
        for (arguments, sent) in [
            (json!({ "a": "Hello" }), &[(a, "Hello")][..]),
            (json!({ "a": "Hello" }), &[(a, "=?base64?SGVsbG8=?=")]),
            (json!({ "a": "SGVsbG8=" }), &[(a, "SGVsbG8=")]),
            (json!({ "a": "=?base64?SGVsbG8=" }), &[(a, "=?base64?SGVsbG8=")]),
            (json!({ "n": 42 }), &[(n, "42.0")]),
            (json!({ "a": null }), &[(a, "ignored")]),
            (json!({}), &[]),
        ] {
            assert_eq!(check(&arguments, sent), Ok(()), "{arguments} {sent:?}");
        }
        for (sent, problem) in [
            (&[][..], "`a` needs the header `mcp-param-a`"),
            (&[(a, "Hello"), (a, "Hello")], "there is more than one header `mcp-param-a`"),
            (&[(a, "=?base64?SGVsbG8?=")], "the header `mcp-param-a` is badly encoded"),
            (&[(a, "=?base64?SGVs!!!bG8=?=")], "the header `mcp-param-a` is badly encoded"),
            (&[(a, "=?base64?/w==?=")], "the header `mcp-param-a` is badly encoded"),
            (&[(a, "\u{e9}")], "the header `mcp-param-a` is badly encoded"),
            (&[(a, "hello")], "the header `mcp-param-a` and the argument `a` differ"),
        ] {
            assert_eq!(check(&json!({ "a": "Hello" }), sent), Err(problem.to_owned()), "{sent:?}");
        }
        assert!(check(&json!({ "n": 42 }), &[(n, "43")]).is_err());
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
