//! The tools that a server lists.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::other::OtherMembers;
use super::{Dropped, ListedEntry, Listing, NOT_A_NAME, is_name, list};
use crate::wire::{CallError, FastLane, TimeLimits};

/// A tool as its server describes it. Untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// The server's name for it.
    pub name: String,
    /// Its title for users.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, an object.
    pub input_schema: Arc<Map<String, Value>>,
    /// The effects that the server claims, from `annotations`. They may be wrong.
    pub hints: Hints,
    /// Whether it can be called as a task, from `execution`.
    pub task_support: TaskSupport,
    /// The other members of the entry.
    pub other: OtherMembers,
}

/// The member `execution`. One that cannot be read is ignored.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Execution {
    task_support: TaskSupport,
}

/// Whether a tool can be called as a task (2025-11-25).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// No.
    #[default]
    Forbidden,
    /// Yes, but it is called without.
    Optional,
    /// It can only be called as one.
    Required,
    /// Of a later version.
    #[serde(other)]
    Other,
}

/// The effects of a tool, as claimed by its server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may be destructive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
}

impl<'de> Deserialize<'de> for ListedTool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entry)
    }
}

/// Parses an entry in one pass.
struct Entry;

/// A key of an object: borrowed unless it contains an escape.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for Entry {
    type Value = ListedTool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tool")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ListedTool, A::Error> {
        let mut name = None;
        let mut input_schema = None;
        let mut title = None;
        let mut description = None;
        let mut hints = Hints::default();
        let mut other = OtherMembers::default();
        let mut task_support = TaskSupport::default();
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                "name" => once("name", &mut name, map.next_value()?)?,
                "title" => once("title", &mut title, map.next_value::<Option<String>>()?)?,
                "description" => {
                    once("description", &mut description, map.next_value::<Option<String>>()?)?;
                }
                "inputSchema" => once("inputSchema", &mut input_schema, map.next_value()?)?,
                _ => {
                    let value: Box<RawValue> = map.next_value()?;
                    if key == "annotations" {
                        let read = serde_json::from_str::<Option<Hints>>(value.get());
                        hints = read.map_err(A::Error::custom)?.unwrap_or_default();
                    } else if key == "execution" {
                        let read = serde_json::from_str::<Execution>(value.get());
                        task_support = read.unwrap_or_default().task_support;
                    }
                    other.add(key.into_owned(), value);
                }
            }
        }
        Ok(ListedTool {
            name: name.ok_or_else(|| A::Error::missing_field("name"))?,
            title: title.flatten(),
            description: description.flatten(),
            input_schema: input_schema.ok_or_else(|| A::Error::missing_field("inputSchema"))?,
            hints,
            task_support,
            other,
        })
    }
}

/// Sets a member that must not be repeated: which one counts would be a guess.
fn once<T, E: serde::de::Error>(
    name: &'static str,
    member: &mut Option<T>,
    value: T,
) -> Result<(), E> {
    match member.replace(value) {
        Some(_) => Err(E::duplicate_field(name)),
        None => Ok(()),
    }
}

impl Serialize for ListedTool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        for (name, text) in [("title", &self.title), ("description", &self.description)] {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        map.serialize_entry("inputSchema", &self.input_schema)?;
        // They were too large, but approvals depend on the hints.
        if self.other.get("annotations").is_none() && self.hints != Hints::default() {
            map.serialize_entry("annotations", &self.hints)?;
        }
        for (name, value) in self.other.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The members of an entry that is invalid, to find out why.
#[derive(Deserialize)]
struct RawTool<'a> {
    name: String,
    #[serde(borrow, rename = "inputSchema", default)]
    input_schema: Option<&'a RawValue>,
}

/// Lists the tools of a server. Of several with the same name the last one counts; the others are
/// dropped (B11).
///
/// # Errors
/// If the server does not answer a page request.
pub async fn tools(
    lane: &FastLane,
    meta: Option<&RawValue>,
    limits: TimeLimits,
) -> Result<Listing<ListedTool>, CallError> {
    let mut listing = list::<ListedTool>(lane, meta, limits).await?;
    let names: HashSet<&str> = listing.entries.iter().map(|tool| tool.name.as_str()).collect();
    if names.len() < listing.entries.len() {
        let names = listing.entries.iter().map(|tool| tool.name.clone());
        let last: HashMap<_, _> = names.zip(0..).collect();
        let mut index = 0;
        listing.keep(|tool| {
            let counts = last.get(&tool.name) == Some(&index);
            index += 1;
            let reason = "a later tool in the list has the same name";
            if counts { Ok(()) } else { Err(Dropped::new(&tool.name, reason)) }
        });
    }
    Ok(listing)
}

impl ListedEntry for ListedTool {
    const METHOD: &'static str = "tools/list";
    const KEY: &'static str = "tools";

    fn label(&self) -> &str {
        &self.name
    }

    fn flaw(&self) -> Option<&'static str> {
        (!is_name(&self.name)).then_some(NOT_A_NAME)
    }

    fn read(raw: &RawValue) -> Result<Self, Dropped> {
        let tool: Self = serde_json::from_str(raw.get()).map_err(|error| flaw(raw, &error))?;
        tool.checked()
    }
}

/// Returns why an entry is invalid, more precisely than the parser.
fn flaw(raw: &RawValue, error: &serde_json::Error) -> Dropped {
    let Ok(tool) = serde_json::from_str::<RawTool<'_>>(raw.get()) else {
        return Dropped::unreadable(raw, error);
    };
    if !is_name(&tool.name) {
        return Dropped::new(&tool.name, NOT_A_NAME);
    }
    let Some(schema) = tool.input_schema else {
        return Dropped::new(&tool.name, "no input schema");
    };
    match serde_json::from_str::<Value>(schema.get()) {
        Ok(Value::Object(_)) => Dropped::unreadable(raw, error),
        Ok(_) => Dropped::new(&tool.name, "the input schema is not an object"),
        Err(_) => Dropped::new(&tool.name, "the input schema is nested too deeply"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(json: &str) -> Result<ListedTool, String> {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        ListedTool::read(&raw).map_err(|dropped| dropped.reason)
    }

    #[test]
    fn an_entry_is_cached_with_all_its_members() {
        let long = "x".repeat(300_000);
        for json in [
            r#"{"name":"a","inputSchema":{}}"#.to_owned(),
            r#"{"name":"a","title":"A","description":"b","inputSchema":{"type":"object"},
                "annotations":{"readOnlyHint":true,"x":[1.50]},"icons":[],"y":null}"#
                .to_owned(),
            r#"{"name":"a","title":null,"inputSchema":{},"annotations":null}"#.to_owned(),
            format!(
                r#"{{"name":"a","inputSchema":{{}},"annotations":{{"destructiveHint":true,"x":"{long}"}}}}"#
            ),
        ] {
            let listed = read_text(&json).unwrap();
            let cached = serde_json::to_vec(&listed).unwrap();
            let recalled: ListedTool = serde_json::from_reader(&cached[..]).unwrap();
            assert_eq!(recalled.hints, listed.hints);
            let is_whole = listed.other.omitted() == 0;
            assert_eq!(recalled == listed, is_whole, "{listed:?}");
        }
        let listed = read_text(r#"{"name":"a","inputSchema":{},"icons":[1.50]}"#).unwrap();
        assert_eq!(listed.other.get("icons").map(RawValue::get), Some("[1.50]"));
    }

    #[test]
    fn a_repeated_or_misshapen_member_makes_an_entry_invalid() {
        for (json, reason) in [
            (r#"{"name":"a","name":"b","inputSchema":{}}"#, "duplicate field `name`"),
            (r#"{"name":"a","inputSchema":{},"inputSchema":{}}"#, "duplicate field `inputSchema`"),
            (r#"{"name":"a","inputSchema":{},"title":5}"#, "invalid type: integer `5`"),
            (
                r#"{"name":"a","inputSchema":{},"annotations":{"readOnlyHint":"yes"}}"#,
                "invalid type",
            ),
            (r#"{"name":"","inputSchema":{}}"#, NOT_A_NAME),
            (r#"{"name":"a"}"#, "no input schema"),
            (r#"{"name":"a","inputSchema":true}"#, "the input schema is not an object"),
        ] {
            let said = read_text(json).unwrap_err();
            assert!(said.contains(reason), "{json}: {said}");
        }
    }
}
