//! What a server lists — tools, resources, prompts — page by page, within bounds (T9).
//!
//! Each entry is read by itself: one that is broken is dropped by name with the reason, and takes no
//! other with it (B3).

mod page;
mod prompts;
mod resources;
mod tools;

pub use prompts::{ListedArgument, ListedPrompt, prompts};
pub use resources::{ListedResource, ListedTemplate, resources, templates};
pub use tools::{Hints, ListedTool, tools};

use std::collections::BTreeSet;

use openclaw_content::{Untrusted, clean_line};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use page::Page;

use crate::wire::{CallError, FastLane, Limits};

/// More pages than this are not asked for.
const MAX_PAGES: usize = 1_000;
/// More entries than this are not looked at, good or bad.
const MAX_ENTRIES: usize = 20_000;
/// So much is read of a list, all its pages together.
const MAX_BYTES: usize = 128 * 1024 * 1024;
/// A larger entry is not read.
const MAX_ENTRY: usize = 4 * 1024 * 1024;
/// A longer cursor is not sent back.
const MAX_CURSOR: usize = 16 * 1024;
/// Of more entries that are dropped only the number is kept.
const MAX_DROPPED: usize = 100;
/// So much is kept of the reason why an entry was dropped, which may quote it.
const REASON_CHARS: usize = 200;
/// A longer name is no name.
const MAX_NAME: usize = 1_024;

/// What a server lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<T> {
    /// The entries, in the server's order.
    pub entries: Vec<T>,
    /// Those that cannot be used; the first of them, if there are many.
    pub dropped: Vec<Dropped>,
    /// How many more cannot be used.
    pub more_dropped: usize,
    /// Why the list may be incomplete.
    pub cut: Option<&'static str>,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), dropped: Vec::new(), more_dropped: 0, cut: None }
    }
}

impl<T> Listing<T> {
    /// Drops the entries that do not pass.
    pub(crate) fn keep(&mut self, mut passes: impl FnMut(&T) -> Result<(), Dropped>) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|entry| match passes(entry) {
            Ok(()) => true,
            Err(dropped) => {
                self.drop_one(dropped);
                false
            }
        });
        self.entries = entries;
    }

    fn drop_one(&mut self, dropped: Dropped) {
        if self.dropped.len() < MAX_DROPPED {
            self.dropped.push(dropped);
        } else {
            self.more_dropped += 1;
        }
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
        let reason = clean_line(Untrusted::new(&reason.into()), REASON_CHARS);
        Self { name, reason }
    }

    /// An entry that cannot be read, by its name if that alone can be.
    fn unreadable(entry: &RawValue, error: &serde_json::Error) -> Self {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let named = serde_json::from_str(entry.get());
        let name = named.map_or_else(|_| UNNAMED.to_owned(), |named: Named| named.name);
        Self::new(&name, format!("invalid entry: {error}"))
    }
}

/// What an entry is called whose name is not known.
const UNNAMED: &str = "(unnamed)";

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
    let mut cursors = BTreeSet::new();
    let mut cursor: Option<String> = None;
    let (mut looked_at, mut bytes) = (0, 0);
    for number in 0..MAX_PAGES {
        let answer = lane.request(list.method, &params(cursor.as_deref(), meta), limits).await?;
        bytes += answer.get().len();
        if bytes > MAX_BYTES {
            listing.cut = Some("the list is too large");
            return Ok(listing);
        }
        let page = match Page::read(answer.get(), list.key, MAX_ENTRIES - looked_at) {
            Ok(page) => page,
            Err(error) if number == 0 => return Err(no_list(&list, &error)),
            Err(_) => {
                listing.cut = Some("a page is not a list");
                return Ok(listing);
            }
        };
        looked_at += page.entries.len();
        for entry in page.entries {
            let is_small = entry.get().len() <= MAX_ENTRY;
            // An array would pass for one, and the reader's words for the rest name its own types.
            let is_object = entry.get().starts_with('{');
            let refuse = |reason| Err(Dropped::new(UNNAMED, reason));
            let entry = match (is_small, is_object) {
                (true, true) => read(entry),
                (true, false) => refuse("the entry is not an object"),
                (false, _) => refuse("the entry is too large"),
            };
            match entry {
                Ok(entry) => listing.entries.push(entry),
                Err(dropped) => listing.drop_one(dropped),
            }
        }
        if page.overflows {
            listing.cut = Some("the list has too many entries");
            return Ok(listing);
        }
        let Some(next) = page.next else { return Ok(listing) };
        if next.len() > MAX_CURSOR {
            listing.cut = Some("the cursor of the next page is too long");
            return Ok(listing);
        }
        // A server that names a page twice would have us go round in circles.
        if !cursors.insert(next.clone()) {
            listing.cut = Some("the server repeats a page");
            return Ok(listing);
        }
        cursor = Some(next);
    }
    listing.cut = Some("the list has too many pages");
    Ok(listing)
}

/// A list that is none from its first page on.
fn no_list(list: &List, error: &serde_json::Error) -> CallError {
    let error = error.to_string();
    let error = clean_line(Untrusted::new(&error), REASON_CHARS);
    CallError::Protocol(format!("the response to {} is not a list: {error}", list.method))
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
