//! The arguments of a call: raw JSON, parsed at most once.

use std::sync::{Arc, OnceLock};

use openclaw_budget::{BudgetSpent, ByteBudget, BytePermit, tree_bytes};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Why arguments cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidArguments {
    #[error("The arguments are not valid JSON: {0}.")]
    NotJson(serde_json::Error),
    #[error("The arguments must be a JSON object.")]
    NotAnObject,
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

    /// Returns the members that are not `null`: models send `null` for omitted arguments.
    pub fn members(&self) -> Map<String, Value> {
        let Some(Value::Object(members)) = self.value() else { return Map::new() };
        let given = members.iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| (name.clone(), value.clone())).collect()
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
    fn arguments_are_parsed_once() {
        let arguments = Given::Text(r#"{"a":null,"b":2}"#).read().unwrap();
        let first: *const Value = arguments.value().unwrap();
        assert!(std::ptr::eq(first, arguments.value().unwrap()));
        assert_eq!(Value::Object(arguments.members()), serde_json::json!({"b": 2}));
    }
}
