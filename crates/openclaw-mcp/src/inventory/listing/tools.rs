//! The tools that a server lists.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Dropped, List, Listing, is_name, pages};
use crate::wire::{CallError, FastLane, Limits};

/// A tool as its server describes it. Untrusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTool {
    /// The server's name for it.
    pub name: String,
    /// Its title for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments, an object.
    pub input_schema: Arc<Map<String, Value>>,
    /// The effects that the server claims. They may be wrong.
    #[serde(default, rename = "annotations")]
    pub hints: Hints,
    /// How it can be called.
    #[serde(default, skip_serializing_if = "Execution::is_default")]
    pub execution: Execution,
}

/// How a tool can be called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Execution {
    /// Whether as a task.
    pub task_support: TaskSupport,
}

impl Execution {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
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

/// A tool before its schema is parsed.
#[derive(Deserialize)]
struct RawTool<'a> {
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(borrow, rename = "inputSchema", default)]
    input_schema: Option<&'a RawValue>,
    #[serde(default)]
    annotations: Option<Hints>,
    #[serde(borrow, default)]
    execution: Option<&'a RawValue>,
}

/// Lists the tools of a server. Of several with the same name the last one counts; the others are
/// dropped (B11).
///
/// # Errors
/// If the server does not answer a page request.
pub async fn tools(
    lane: &FastLane,
    meta: Option<&Map<String, Value>>,
    limits: Limits,
) -> Result<Listing<ListedTool>, CallError> {
    let list = List { method: "tools/list", key: "tools" };
    let mut listing = pages(list, lane, meta, limits, read).await?;
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

fn read(raw: &RawValue) -> Result<ListedTool, Dropped> {
    // The fast path; entries that fail are parsed again for a precise error.
    match serde_json::from_str::<ListedTool>(raw.get()) {
        Ok(tool) if is_name(&tool.name) => Ok(tool),
        _ => read_closely(raw),
    }
}

/// Parses an entry leniently, or returns why it is invalid.
fn read_closely(raw: &RawValue) -> Result<ListedTool, Dropped> {
    let tool: RawTool<'_> =
        serde_json::from_str(raw.get()).map_err(|error| Dropped::unreadable(raw, &error))?;
    let refuse = |reason: &str| Dropped::new(&tool.name, reason);
    if !is_name(&tool.name) {
        return Err(refuse("the name is empty or too long"));
    }
    let Some(schema) = tool.input_schema else { return Err(refuse("no input schema")) };
    let input_schema = serde_json::from_str::<Value>(schema.get())
        .map_err(|_| refuse("the input schema is nested too deeply"))?;
    let Value::Object(input_schema) = input_schema else {
        return Err(refuse("the input schema is not an object"));
    };
    Ok(ListedTool {
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema: Arc::new(input_schema),
        hints: tool.annotations.unwrap_or_default(),
        execution: tool
            .execution
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default(),
    })
}
