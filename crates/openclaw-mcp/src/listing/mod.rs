//! What a server lists — tools, resources, prompts — page by page, within bounds (T9).
//!
//! Each entry is read by itself: one that is broken is dropped by name with the reason, and takes no
//! other with it (B3).

mod prompts;
mod resources;
mod tools;

pub use prompts::{ListedArgument, ListedPrompt, prompts};
pub use resources::{ListedResource, ListedTemplate, resources, templates};
pub use tools::{Hints, ListedTool, tools};

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::{CallError, FastLane, Limits};

/// More pages than this are not asked for.
const MAX_PAGES: usize = 1_000;
/// More entries than this are not taken.
const MAX_ENTRIES: usize = 20_000;
/// A longer name is no name.
const MAX_NAME: usize = 1_024;

/// What a server lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<T> {
    /// The entries, in the server's order.
    pub entries: Vec<T>,
    /// Those that cannot be used.
    pub dropped: Vec<Dropped>,
    /// Why the list may be incomplete.
    pub cut: Option<&'static str>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), dropped: Vec::new(), cut: None }
    }
}

impl<T> Listing<T> {
    /// Drops the entries that do not pass.
    pub(crate) fn keep(&mut self, passes: impl Fn(&T) -> Result<(), Dropped>) {
        let dropped = &mut self.dropped;
        self.entries.retain(|entry| match passes(entry) {
            Ok(()) => true,
            Err(reason) => {
                dropped.push(reason);
                false
            }
        });
    }
}

/// An entry that was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// Its name, as far as it has one.
    pub name: String,
    /// Why.
    pub reason: String,
}

impl Dropped {
    pub(crate) fn new(name: &str, reason: impl Into<String>) -> Self {
        // The name may be 300 characters of anything.
        let name = name.chars().take(64).map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { name, reason: reason.into() }
    }

    fn unnamed(error: &serde_json::Error) -> Self {
        Self::new("(unnamed)", format!("its entry cannot be read: {error}"))
    }
}

/// What is listed: the method, and the key of the entries in its answer.
struct List {
    method: &'static str,
    key: &'static str,
}

/// Reads a list to its end. `meta` is what stands in the `_meta` of every request, if anything.
async fn pages<T>(
    list: List,
    lane: &FastLane,
    meta: Option<&Map<String, Value>>,
    limits: Limits,
    read: impl Fn(&RawValue) -> Result<T, Dropped>,
) -> Result<Listing<T>, CallError> {
    let mut listing = Listing::default();
    let mut seen = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let answer = lane.request(list.method, &params(cursor.as_deref(), meta), limits).await?;
        let Some((entries, next)) = page(&answer, list.key) else {
            listing.cut = Some("a page of the list is not a list");
            return Ok(listing);
        };
        for entry in entries {
            if listing.entries.len() == MAX_ENTRIES {
                listing.cut = Some("there are more entries than can be taken");
                return Ok(listing);
            }
            match read(entry) {
                Ok(entry) => listing.entries.push(entry),
                Err(dropped) => listing.dropped.push(dropped),
            }
        }
        let Some(next) = next else { return Ok(listing) };
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

/// The entries of a page, and where the next begins.
fn page<'a>(answer: &'a RawValue, key: &str) -> Option<(Vec<&'a RawValue>, Option<String>)> {
    let page: std::collections::BTreeMap<&str, &'a RawValue> =
        serde_json::from_str(answer.get()).ok()?;
    let entries = match page.get(key) {
        Some(entries) => serde_json::from_str(entries.get()).ok()?,
        None => Vec::new(),
    };
    let next = page.get("nextCursor").map(|next| serde_json::from_str(next.get()));
    Some((entries, next.transpose().ok()?.flatten()))
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

/// Whether a name can be one.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME
}
