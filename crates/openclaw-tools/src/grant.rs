//! What an approval for later calls covers.

use std::collections::BTreeMap;
use std::fmt;

use openclaw_content::{Untrusted, clean_line};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::arguments::Arguments;

/// Longer commands and values are not repeated in the words of an approval.
const MAX_SHOWN: usize = 80;
/// How many arguments are offered for an approval of their own.
const MAX_OFFERED: usize = 2;
/// How many arguments an approval can depend on.
const MAX_ARGUMENTS: usize = 4;
/// A call with more arguments has no approval by argument.
const MAX_MEMBERS: usize = 1_000;

/// What "always" allows: the rule of an approval. The agent, the server or workspace, and the tool
/// are the key that it is stored under.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantRule {
    /// Every call of the tool.
    Tool,
    /// Exactly this command.
    Command(String),
    /// Every harmless command that begins with these words.
    CommandPrefix(Vec<String>),
    /// Every call in which these arguments have these values, written as JSON.
    Arguments(BTreeMap<String, String>),
    /// Every call for this host.
    Host(String),
}

impl GrantRule {
    /// Creates an approval for calls with these values; `None` if there are none, or one of them is
    /// not plain.
    pub fn for_arguments<'a>(
        arguments: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Option<Self> {
        let plain = |(name, value): (&'a String, &'a Value)| {
            (plain_name(name)).then(|| Some((name.clone(), plain_value(value)?))).flatten()
        };
        let arguments: Option<BTreeMap<_, _>> = arguments.into_iter().map(plain).collect();
        arguments.filter(|it| (1..=MAX_ARGUMENTS).contains(&it.len())).map(Self::Arguments)
    }

    /// Returns the approvals by argument that a call can be covered by, the narrowest first: with
    /// all its arguments, then with one of them.
    pub fn by_argument(arguments: &Arguments<'_>) -> Vec<Self> {
        let Some(members) = members(arguments) else { return Vec::new() };
        let given = || members.iter().filter(|(_, value)| !value.is_null());
        let all = (given().count() > 1).then(|| Self::for_arguments(given())).flatten();
        let single = given().filter_map(|member| Self::for_arguments([member]));
        all.into_iter().chain(single.take(MAX_OFFERED)).collect()
    }

    /// Returns whether it covers a call of its tool by the arguments alone. Approvals of commands and
    /// hosts are checked by the tools that know them.
    pub fn covers(&self, arguments: &Arguments<'_>) -> bool {
        match self {
            Self::Tool => true,
            Self::Arguments(required) => members(arguments).is_some_and(|members| {
                let has = |(name, value): (&String, &String)| {
                    members.get(name).and_then(plain_value).as_ref() == Some(value)
                };
                !required.is_empty() && required.iter().all(has)
            }),
            Self::Command(_) | Self::CommandPrefix(_) | Self::Host(_) => false,
        }
    }

    /// Says what it allows, for the tool with this name.
    pub fn words(&self, tool: &str) -> String {
        match self {
            Self::Tool => format!("`{tool}`"),
            Self::Command(command) => match shown(command) {
                Some(command) => format!("the command {command}"),
                None => "exactly this command".to_owned(),
            },
            Self::CommandPrefix(words) => {
                let needs_quotes = |word: &str| word.is_empty() || word.contains([' ', '\'', '"']);
                let quoted = |word: &String| match needs_quotes(word) {
                    false => word.clone(),
                    true if word.contains('\'') => format!("\"{word}\""),
                    true => format!("'{word}'"),
                };
                let all: Vec<_> = words.iter().map(quoted).collect();
                match shown(&all.join(" ")) {
                    // One word is the whole program.
                    Some(program) if words.len() == 1 => {
                        format!("every harmless {program} command")
                    }
                    Some(words) => format!("every harmless command that begins with {words}"),
                    None => "every harmless command that begins with the same words".to_owned(),
                }
            }
            Self::Arguments(arguments) => {
                let one = |(name, value): (&String, &String)| format!("{name}={value}");
                let arguments: Vec<_> = arguments.iter().map(one).collect();
                format!("`{tool}` with {}", arguments.join(" and "))
            }
            Self::Host(host) => format!("`{tool}` from {host}"),
        }
    }
}

/// A choice of the user: an approval that applies to later calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlwaysOption {
    /// What it covers.
    pub grant: GrantRule,
    /// Says in one line what it allows, where, and for which agent.
    pub words: String,
}

/// Returns a command for display; `None` if it cannot be shown as it is.
fn shown(command: &str) -> Option<String> {
    let line = clean_line(Untrusted::new(command), MAX_SHOWN);
    (line == command && !line.contains('`')).then(|| format!("`{line}`"))
}

/// Whether the name of an argument can be shown as it is.
fn plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && name.len() <= MAX_SHOWN && name.chars().all(is_plain)
}

/// Writes a value that an approval can depend on: one that the user can read in one line.
fn plain_value(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if clean_line(Untrusted::new(text), MAX_SHOWN) != *text => None,
        Value::String(_) | Value::Number(_) | Value::Bool(_) => serde_json::to_string(value).ok(),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The arguments of a call by name; `None` if one is given twice: the tool may read the other one. Those that
/// no approval can depend on are empty.
fn members(arguments: &Arguments<'_>) -> Option<BTreeMap<String, Value>> {
    let members: Distinct = serde_json::from_str(arguments.raw().get()).ok()?;
    Some(members.0)
}

/// A plain value, or an empty array for any other.
struct PlainValue(Value);

impl<'de> Deserialize<'de> for PlainValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Plain;

        impl<'de> Visitor<'de> for Plain {
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

            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(text.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Value::Array(Vec::new()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Value::Array(Vec::new()))
            }
        }

        deserializer.deserialize_any(Plain).map(Self)
    }
}

/// A JSON object whose names are distinct.
struct Distinct(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Distinct;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with distinct names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Distinct, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, PlainValue(value))) = map.next_entry::<String, _>()? {
                    if members.insert(name, value).is_some() {
                        return Err(serde::de::Error::custom("a name is given twice"));
                    }
                    if members.len() > MAX_MEMBERS {
                        return Err(serde::de::Error::custom("too many names"));
                    }
                }
                Ok(Distinct(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn grant(arguments: &Value) -> GrantRule {
        GrantRule::for_arguments(arguments.as_object().unwrap()).unwrap()
    }

    #[test]
    fn an_approval_by_argument_covers_calls_with_that_value() {
        let grant = grant(&json!({"repo": "a/b"}));
        assert_eq!(grant.words("push"), "`push` with repo=\"a/b\"");
        for covered in [r#"{"repo":"a/b"}"#, r#"{"x":{"repo":"c"},"repo":"a\/b","n":1}"#] {
            assert!(grant.covers(&Arguments::new(&raw(covered))), "{covered}");
        }
        for other in [
            "{}",
            r#"{"repo":"a/b "}"#,
            r#"{"repo":"A/B"}"#,
            r#"{"repo":null}"#,
            r#"{"repo":["a/b"]}"#,
            r#"{"x":{"repo":"a/b"}}"#,
            r#"{"Repo":"a/b"}"#,
            r#"{"repo":"a/b","repo":"c/d"}"#,
            r#"{"repo":"c/d","repo":"a/b"}"#,
            r#"{"repo":"a/b","n":1,"n":2}"#,
            r#"["repo","a/b"]"#,
        ] {
            assert!(!grant.covers(&Arguments::new(&raw(other))), "{other}");
        }
        let many: Vec<_> = (0..MAX_MEMBERS).map(|it| format!("\"{it}\":0")).collect();
        let many = format!(r#"{{"repo":"a/b",{}}}"#, many.join(","));
        assert!(!grant.covers(&Arguments::new(&raw(&many))), "too many to compare");
        assert!(!GrantRule::Arguments(BTreeMap::new()).covers(&Arguments::new(&raw("{}"))));
    }

    #[test]
    fn only_values_that_can_be_read_in_one_line_are_offered() {
        let offered = |text: &str| GrantRule::by_argument(&Arguments::new(&raw(text)));
        let (path, mode) = (json!({"path": "a"}), json!({"mode": 1}));
        let both = json!({"path": "a", "mode": 1});
        assert_eq!(
            offered(r#"{"path":"a","mode":1,"none":null}"#),
            [grant(&both), grant(&mode), grant(&path)]
        );
        assert_eq!(offered(r#"{"path":"a"}"#), [grant(&path)]);
        let long = json!({"path": "a", "text": "x".repeat(200)}).to_string();
        assert_eq!(offered(&long), [grant(&path)]);
        for nothing in
            ["{}", r#"{"a":"x\ny"}"#, r#"{"a":"\u001b[8m"}"#, r#"{"a":{}}"#, r#"{"a b":1}"#]
        {
            assert_eq!(offered(nothing), [], "{nothing}");
        }
    }
}
