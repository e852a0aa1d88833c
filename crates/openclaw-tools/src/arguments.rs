//! The arguments of a call: raw JSON, parsed at most once.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, OnceLock};

use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, member_count, tree_bytes};
use openclaw_content::{Untrusted, clean_line};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Maximum length of a member's name that is quoted, in characters.
const MAX_NAME: usize = 100;
/// The memory of a name at most while names are compared: a hash in a table that is partly empty and grows.
const COMPARED_NAME: usize = 32;

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
    /// They cannot be checked.
    #[error("{0}")]
    Memory(BudgetSpent),
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
    /// The memory of the caller.
    budget: Option<&'a Arc<ByteBudget>>,
    parsed: OnceLock<Result<ParsedArguments, NoValue>>,
}

#[derive(Debug)]
struct ParsedArguments {
    value: Value,
    /// Counts the value as long as it is there.
    _memory: Option<BytePermit>,
}

/// Why there is no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// It cannot be parsed (nested too deeply).
    Unreadable,
    /// The caller has no memory left for it.
    Memory(BudgetSpent),
}

impl<'a> Arguments<'a> {
    /// Wraps raw arguments.
    pub fn new(raw: &'a RawValue) -> Self {
        Self { raw, budget: None, parsed: OnceLock::new() }
    }

    /// Counts what is parsed as memory of the caller.
    #[must_use]
    pub(crate) fn counted_by(self, budget: Option<&'a Arc<ByteBudget>>) -> Self {
        Self { budget, ..self }
    }

    /// Counts one more copy of the value.
    pub(crate) fn memory_for_copy(&self) -> Result<Option<BytePermit>, BudgetSpent> {
        let text = self.raw.get();
        let hold = |budget: &Arc<ByteBudget>| budget.hold(tree_bytes(text.as_bytes()) + text.len());
        self.budget.map(hold).transpose()
    }

    /// Returns the JSON as given.
    pub fn raw(&self) -> &'a RawValue {
        self.raw
    }

    /// Returns the parsed value; `None` if it cannot be parsed (nested too deeply), or the caller has no
    /// memory left for it.
    pub fn value(&self) -> Option<&Value> {
        self.parsed().ok()
    }

    /// Returns the parsed value.
    pub(crate) fn parsed(&self) -> Result<&Value, NoValue> {
        let parse = || {
            let _memory = self.memory_for_copy().map_err(NoValue::Memory)?;
            let value = serde_json::from_str(self.raw.get()).map_err(|_| NoValue::Unreadable)?;
            Ok(ParsedArguments { value, _memory })
        };
        self.parsed.get_or_init(parse).as_ref().map(|it| &it.value).map_err(|why| *why)
    }

    /// Checks that no object in the arguments has two members with the same name.
    ///
    /// # Errors
    /// If one has, or the caller has no memory left to compare them.
    pub(crate) fn check_members(&self) -> Result<(), InvalidArguments> {
        let text = self.raw.get();
        let names = || member_count(text.as_bytes()).saturating_mul(COMPARED_NAME);
        let hold = |budget: &Arc<ByteBudget>| budget.hold(names());
        let _memory = self.budget.map(hold).transpose().map_err(InvalidArguments::Memory)?;
        let mut reader = serde_json::Deserializer::from_str(text);
        match Unambiguous(&RandomState::new()).deserialize(&mut reader) {
            Err(error) if error.is_data() => Err(InvalidArguments::Ambiguous(error)),
            // Nested too deeply.
            Err(_) | Ok(()) => Ok(()),
        }
    }

    /// Returns the members that are not `null`: models send `null` for omitted arguments.
    pub fn members(&self) -> Map<String, Value> {
        let Some(Value::Object(members)) = self.value() else { return Map::new() };
        let given = members.iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Reads JSON whose objects have each member once. Names are compared by hashes that nobody can choose:
/// they take less memory.
#[derive(Clone, Copy)]
struct Unambiguous<'a>(&'a RandomState);

impl<'de> DeserializeSeed<'de> for Unambiguous<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value_seed(self)?;
            if !names.insert(self.0.hash_one(&name)) {
                let name = clean_line(Untrusted::new(&name), MAX_NAME);
                return Err(de::Error::custom(format_args!("two members `{name}`")));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
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
        // As many names as take all memory.
        let many: Vec<_> = (0..4_096).map(|name| format!("\"{name}\":0")).collect();
        let many = format!("{{{}}}", many.join(","));
        let many = Given::Text(&many).read().unwrap();
        let budgets = [1, 2].map(|part| ByteBudget::new(part * 4_096 * COMPARED_NAME / 2));
        for (budget, fits) in std::iter::zip(&budgets, [false, true]) {
            let checked = Arguments::new(many.raw()).counted_by(Some(budget)).check_members();
            assert_eq!(checked.is_ok(), fits);
            assert_eq!(budget.used(), 0);
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
