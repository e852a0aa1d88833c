//! The tools that a server lists, page by page, within bounds (T9).
//!
//! Each tool is read by itself: one with a schema that is none, or nested without end, is dropped by
//! name with the reason, and takes no other with it (B3).

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::{CallError, FastLane, Limits};

/// More pages than this are not asked for.
const MAX_PAGES: usize = 1_000;
/// More tools than this are not taken.
const MAX_TOOLS: usize = 20_000;
/// A longer name is no name.
const MAX_NAME: usize = 1_024;

/// A tool as its server describes it. All of it comes from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// What the server calls it.
    pub name: String,
    /// What it calls it for people.
    pub title: Option<String>,
    /// What it says that it does.
    pub description: Option<String>,
    /// The JSON Schema of its arguments: an object.
    pub input_schema: Map<String, Value>,
    /// What it says about its effects. A hint, and perhaps a lie.
    pub hints: Hints,
}

/// What a server says about the effects of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    /// It changes nothing.
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    pub destructive_hint: Option<bool>,
}

/// A tool that was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Its name, as far as it has one.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// What a server lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// The tools, in the server's order.
    pub tools: Vec<ListedTool>,
    /// Those that cannot be used.
    pub dropped: Vec<Dropped>,
    /// Why the list may be incomplete.
    pub cut: Option<&'static str>,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor", default)]
    next_cursor: Option<String>,
}

/// A tool before its schema is looked at.
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
}

/// Lists the tools of a server. `meta` is what stands in the `_meta` of every request, if anything.
///
/// # Errors
/// If the server does not answer a page.
pub async fn tools(
    lane: &FastLane,
    meta: Option<&Map<String, Value>>,
    limits: Limits,
) -> Result<Listing, CallError> {
    let mut listing = Listing::default();
    let mut seen = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let answer = lane.request("tools/list", &params(cursor.as_deref(), meta), limits).await?;
        let Ok(page) = serde_json::from_str::<Page<'_>>(answer.get()) else {
            listing.cut = Some("a page of the list is not a list");
            return Ok(listing);
        };
        for tool in page.tools {
            if listing.tools.len() == MAX_TOOLS {
                listing.cut = Some("there are more tools than can be taken");
                return Ok(listing);
            }
            match read(tool) {
                Ok(tool) => listing.tools.push(tool),
                Err(dropped) => listing.dropped.push(dropped),
            }
        }
        let Some(next) = page.next_cursor else { return Ok(listing) };
        // A server that names a page twice would have us go round in circles.
        if !seen.insert(next.clone()) {
            listing.cut = Some("the server repeats a page");
            return Ok(listing);
        }
        cursor = Some(next);
    }
    listing.cut = Some("the list has no end");
    Ok(listing)
}

fn params(cursor: Option<&str>, meta: Option<&Map<String, Value>>) -> Box<RawValue> {
    let mut params = Map::new();
    if let Some(cursor) = cursor {
        params.insert("cursor".to_owned(), cursor.into());
    }
    if let Some(meta) = meta {
        params.insert("_meta".to_owned(), meta.clone().into());
    }
    // Serializing plain data cannot fail.
    serde_json::value::to_raw_value(&params).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn read(raw: &RawValue) -> Result<ListedTool, Dropped> {
    let tool: RawTool<'_> = serde_json::from_str(raw.get()).map_err(|error| Dropped {
        name: "(unnamed)".to_owned(),
        reason: format!("its entry is no tool: {error}"),
    })?;
    let refuse = |reason: &str| {
        // The name may be 300 characters of anything.
        let name =
            tool.name.chars().take(64).map(|c| if c.is_control() { ' ' } else { c }).collect();
        Dropped { name, reason: reason.to_owned() }
    };
    if tool.name.is_empty() || tool.name.len() > MAX_NAME {
        return Err(refuse("its name is empty or far too long"));
    }
    let Some(schema) = tool.input_schema else { return Err(refuse("it has no input schema")) };
    let input_schema = serde_json::from_str::<Value>(schema.get())
        .map_err(|_| refuse("its input schema is nested too deeply"))?;
    let Value::Object(input_schema) = input_schema else {
        return Err(refuse("its input schema is not an object"));
    };
    Ok(ListedTool {
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema,
        hints: tool.annotations.unwrap_or_default(),
    })
}
