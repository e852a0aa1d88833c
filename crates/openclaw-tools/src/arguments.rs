//! The arguments of a call: raw JSON, parsed at most once.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::OnceLock;

use openclaw_content::{Untrusted, clean_line};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Maximum length of a member's name that is quoted, in characters.
const MAX_NAME: usize = 100;

/// Why arguments cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidArguments {
    #[error("The arguments are not valid JSON: {0}.")]
    NotJson(serde_json::Error),
    #[error("The arguments must be a JSON object.")]
    NotAnObject,
    /// Which of them counts is up to the reader: the one that was approved need not be the one that runs.
    #[error("The arguments are ambiguous: {0}.")]
    Ambiguous(serde_json::Error),
}

/// Arguments as given by a caller.
#[derive(Debug, Clone, Copy)]
pub enum Given<'a> {
    /// JSON.
    Json(&'a RawValue),
    /// Text written by a model: it may be anything. Models often send nothing, or `null`, for no
    /// arguments.
    Text(&'a str),
}

impl<'a> Given<'a> {
    /// Returns the text as given.
    pub fn text(&self) -> &'a str {
        match self {
            Self::Json(json) => json.get(),
            Self::Text(text) => text,
        }
    }

    /// Parses the arguments.
    ///
    /// # Errors
    /// If they are not a JSON object.
    pub(crate) fn read(self) -> Result<Arguments<'a>, InvalidArguments> {
        let text = match self {
            Self::Json(json) => return Ok(Arguments::new(json)),
            Self::Text(text) => match text.trim() {
                "" | "null" => "{}",
                text => text,
            },
        };
        let json: &RawValue = serde_json::from_str(text).map_err(InvalidArguments::NotJson)?;
        if json.get().starts_with('{') {
            Ok(Arguments::new(json))
        } else {
            Err(InvalidArguments::NotAnObject)
        }
    }
}

impl<'a> From<&'a RawValue> for Given<'a> {
    fn from(json: &'a RawValue) -> Self {
        Self::Json(json)
    }
}

/// The arguments of a call. They stay raw until a check or a tool needs the value, which is parsed
/// once and shared.
#[derive(Debug)]
pub struct Arguments<'a> {
    raw: &'a RawValue,
    parsed: OnceLock<Option<Value>>,
}

impl<'a> Arguments<'a> {
    /// Wraps raw arguments.
    pub fn new(raw: &'a RawValue) -> Self {
        Self { raw, parsed: OnceLock::new() }
    }

    /// Returns the JSON as given.
    pub fn raw(&self) -> &'a RawValue {
        self.raw
    }

    /// Returns the parsed value; `None` if it cannot be parsed (nested too deeply).
    pub fn value(&self) -> Option<&Value> {
        self.parsed.get_or_init(|| serde_json::from_str(self.raw.get()).ok()).as_ref()
    }

    /// Checks that no object in the arguments has two members with the same name.
    ///
    /// # Errors
    /// If one has.
    pub(crate) fn check_members(&self) -> Result<(), InvalidArguments> {
        match serde_json::from_str::<Unambiguous>(self.raw.get()) {
            Err(error) if error.is_data() => Err(InvalidArguments::Ambiguous(error)),
            // Nested too deeply.
            Err(_) | Ok(Unambiguous) => Ok(()),
        }
    }

    /// Returns the members that are not `null`: models send `null` for omitted arguments.
    pub fn members(&self) -> Map<String, Value> {
        let Some(Value::Object(members)) = self.value() else { return Map::new() };
        let given = members.iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// JSON whose objects have each member once.
struct Unambiguous;

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut names = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<Self>()?;
            if let Some(name) = names.replace(name) {
                let name = clean_line(Untrusted::new(&name), MAX_NAME);
                return Err(de::Error::custom(format_args!("two members `{name}`")));
            }
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_arguments_are_an_empty_object_and_invalid_json_is_rejected() {
        for nothing in ["", "  ", "null", "{}"] {
            assert_eq!(Given::Text(nothing).read().unwrap().raw().get(), "{}");
        }
        assert_eq!(Given::Text(" {\"a\": 1}\n").read().unwrap().raw().get(), "{\"a\": 1}");
        for bad in ["{", "{} {}", "a"] {
            assert!(Given::Text(bad).read().is_err(), "{bad}");
        }
    }

    #[test]
    fn objects_with_two_members_of_one_name_are_ambiguous() {
        let check = |text: &'static str| Given::Text(text).read().unwrap().check_members();
        for clear in [
            "{}",
            r#"{"a":{"a":1,"b":[{"a":null},{"a":-1.5}]},"b":"a"}"#,
            r#"{"a":123456789012345678901234567890,"A":true}"#,
        ] {
            assert!(check(clear).is_ok(), "{clear}");
        }
        for ambiguous in [
            r#"{"text":"EVIL","text":"good"}"#,
            r#"{"text":"EVIL","te\u0078t":"good"}"#,
            r#"{"a":[1,{"text":1,"text":1}]}"#,
        ] {
            let error = check(ambiguous).unwrap_err().to_string();
            assert!(error.contains("two members `text`"), "{error}");
        }
    }

    #[test]
    fn arguments_are_parsed_once() {
        let arguments = Given::Text(r#"{"a":null,"b":2}"#).read().unwrap();
        let first: *const Value = arguments.value().unwrap();
        assert!(std::ptr::eq(first, arguments.value().unwrap()));
        assert_eq!(Value::Object(arguments.members()), serde_json::json!({"b": 2}));
    }
}
