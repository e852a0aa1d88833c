//! Lists the tools, resources, prompts and skills of a server, page by page and within limits (T9).
//!
//! Entries are parsed one by one: an invalid one is dropped by name, with the reason, and does not
//! affect the others (B3).

pub mod app;
mod other;
mod page;
mod prompts;
mod resources;
mod skills;
mod tools;

pub use other::OtherMembers;
pub use prompts::{ListedArgument, ListedPrompt};
pub use resources::{ListedResource, ListedTemplate};
pub use skills::{Dynamic, EXTENSION as SKILLS, ListedSkill, SkillFile, SkillFiles};
pub use tools::{Hints, ListedTool, TaskSupport, tools};

use std::collections::BTreeSet;

use openclaw_content::{Untrusted, clean_line};
use openclaw_secrets::Redactor;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use page::ListPage;

use crate::wire::{CallError, FastLane, TimeLimits, redacted};

/// The maximum number of pages.
const MAX_PAGES: usize = 1_000;
/// The maximum number of entries, valid or not.
const MAX_ENTRIES: usize = 20_000;
/// The maximum size of all pages together.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// The maximum size of an entry.
const MAX_ENTRY: usize = 4 * 1024 * 1024;
/// The maximum length of a cursor.
const MAX_CURSOR: usize = 16 * 1024;
/// How many dropped entries are kept; further ones are only counted.
const MAX_DROPPED: usize = 100;
/// The maximum length of the reason why an entry was dropped. It may quote the entry.
const REASON_CHARS: usize = 200;
/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 1_024;

/// A list of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<T> {
    /// The entries, in the server's order.
    pub entries: Vec<T>,
    /// The entries that cannot be used, up to a limit.
    pub dropped: Vec<Dropped>,
    /// The number of further entries that cannot be used.
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
    /// Its name, or a placeholder.
    pub name: String,
    /// Why it was dropped.
    pub reason: String,
}

impl Dropped {
    pub(crate) fn new(name: &str, reason: impl Into<String>) -> Self {
        // The name is untrusted and may be long.
        let name = if name.is_empty() { UNNAMED } else { name };
        let name = name.chars().take(64).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let reason = clean_line(Untrusted::new(&reason.into()), REASON_CHARS);
        Self { name, reason }
    }

    /// An entry that cannot be parsed, with its name if at least that can be.
    fn unreadable(entry: &RawValue, error: &serde_json::Error) -> Self {
        let name = name_of(entry).unwrap_or_default();
        Self::new(&name, format!("invalid entry: {error}"))
    }
}

/// Returns the name of an entry, if it can be read.
fn name_of(entry: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    serde_json::from_str(entry.get()).ok().map(|Named { name }| name)
}

/// The placeholder for an entry without a readable name.
const UNNAMED: &str = "(unnamed)";
/// Why an entry is not offered. It is not named.
const CREDENTIAL: &str = "a name, an address or its schema contains a credential";

/// An entry of a list.
pub trait ListedEntry: DeserializeOwned {
    /// The method that lists such entries.
    const METHOD: &'static str;
    /// Their key in the response.
    const KEY: &'static str;

    /// What an invalid one is reported as.
    fn label(&self) -> &str;

    /// Why it cannot be used.
    fn flaw(&self) -> Option<&'static str>;

    /// Parses an entry.
    ///
    /// # Errors
    /// If it cannot be used.
    fn read(raw: &RawValue) -> Result<Self, Dropped> {
        let entry: Self =
            serde_json::from_str(raw.get()).map_err(|error| Dropped::unreadable(raw, &error))?;
        entry.checked()
    }

    /// Returns it if it can be used.
    ///
    /// # Errors
    /// If it cannot.
    fn checked(self) -> Result<Self, Dropped> {
        match self.flaw() {
            None => Ok(self),
            Some(flaw) => Err(Dropped::new(self.label(), flaw)),
        }
    }
}

/// Reads all pages of a list. `meta` is the `_meta` of every request, if any.
///
/// # Errors
/// If the server does not answer a page request.
pub async fn list<T: ListedEntry>(
    lane: &FastLane,
    meta: Option<&RawValue>,
    limits: TimeLimits,
) -> Result<Listing<T>, CallError> {
    let mut listing = Listing::default();
    let mut cursors = BTreeSet::new();
    let mut cursor: Option<String> = None;
    let mut looked_at = 0;
    let mut bytes = 0;
    for number in 0..MAX_PAGES {
        let answer = lane.request(T::METHOD, &params(cursor.as_deref(), meta), limits).await?;
        bytes += answer.get().len();
        if bytes > MAX_BYTES {
            listing.cut = Some("the list is too large");
            return Ok(listing);
        }
        let answer = redacted::message(answer.get(), lane.redactor());
        let page = match ListPage::read(&answer, T::KEY, MAX_ENTRIES - looked_at) {
            Ok(page) => page,
            Err(error) if number == 0 => return Err(no_list(T::METHOD, &error)),
            Err(_) => {
                listing.cut = Some("a page is not a list");
                return Ok(listing);
            }
        };
        looked_at += page.entries.len();
        for entry in page.entries {
            let is_small = entry.get().len() <= MAX_ENTRY;
            // Checked here, because an array would be parsed as a struct, and errors about other
            // types would name our Rust types.
            let is_object = entry.get().starts_with('{');
            let refuse = |reason| Err(Dropped::new(UNNAMED, reason));
            let entry = match (is_small, is_object) {
                (true, true) => read_safely(entry, lane.redactor()),
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
        // A server that repeats a cursor would cause an endless loop.
        if !cursors.insert(next.clone()) {
            listing.cut = Some("the server repeats a page");
            return Ok(listing);
        }
        cursor = Some(next);
    }
    listing.cut = Some("the list has too many pages");
    Ok(listing)
}

/// Parses an entry whose page was redacted. Where that was not possible, in names and addresses, it must
/// not contain a credential: it would be shown, cached, and offered to other programs.
pub(crate) fn read_safely<T: ListedEntry>(
    entry: &RawValue,
    redactor: &Redactor,
) -> Result<T, Dropped> {
    if redacted::gives_away(entry.get(), redactor) {
        return Err(Dropped::new(&safe_name(entry, redactor), CREDENTIAL));
    }
    T::read(entry)
}

/// Returns the name of an entry that gives a credential away, unless the name does so.
fn safe_name(entry: &RawValue, redactor: &Redactor) -> String {
    let name = name_of(entry).unwrap_or_default();
    if redacted::is_credential(&name, redactor) { String::new() } else { name }
}

/// The error for a list whose first page is invalid.
fn no_list(method: &str, error: &serde_json::Error) -> CallError {
    let error = error.to_string();
    let error = clean_line(Untrusted::new(&error), REASON_CHARS);
    CallError::Protocol(format!("the response to {method} is invalid: {error}"))
}

fn params(cursor: Option<&str>, meta: Option<&RawValue>) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Params<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<&'a str>,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a RawValue>,
    }
    // Serializing plain data cannot fail.
    to_raw_value(&Params { cursor, meta }).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

const NOT_A_NAME: &str = "the name is empty or too long";

/// Whether a name is valid.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME
}
