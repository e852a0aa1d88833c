//! Entries of a session.

use std::time::SystemTime;

use serde_json::Value;

use crate::error::StoreError;
use crate::limits::{
    MAX_BODY_BYTES, MAX_BODY_DEPTH, MAX_ENTRIES_AT_ONCE, MAX_READ, check_name, check_size,
};

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A message, a tool call, or its result.
    Message,
    /// A summary that replaces everything before it.
    Compaction,
    /// A record that is never sent to a model.
    Note,
}

impl EntryKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Compaction => "compaction",
            Self::Note => "note",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::Message, Self::Compaction, Self::Note].into_iter().find(|kind| kind.name() == name)
    }
}

/// An entry to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntry {
    /// Run that it comes from.
    pub run: Option<String>,
    /// Kind of entry.
    pub kind: EntryKind,
    /// Content, opaque to the store.
    pub body: Value,
}

impl NewEntry {
    /// Creates an entry that belongs to no run.
    pub fn new(kind: EntryKind, body: Value) -> Self {
        Self { run: None, kind, body }
    }

    /// Sets the run.
    #[must_use]
    pub fn of_run(self, run: impl Into<String>) -> Self {
        Self { run: Some(run.into()), ..self }
    }
}

/// An entry of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Sequence number within the session: 1, 2, 3, … without gaps.
    pub seq: u64,
    /// When it was appended.
    pub at: SystemTime,
    /// Run that it comes from.
    pub run: Option<String>,
    /// Kind of entry.
    pub kind: EntryKind,
    /// Content.
    pub body: Value,
}

/// Selects entries to read. They are always returned in order of their sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFilter {
    /// First sequence number to return.
    pub from_seq: u64,
    /// Maximum number of entries; never more than [`MAX_READ`].
    pub limit: usize,
    /// Whether to return the last entries instead of the first, if there are more than `limit`.
    pub last: bool,
}

impl ReadFilter {
    /// Selects all entries.
    pub fn all() -> Self {
        Self::from(1)
    }

    /// Selects this entry and later ones.
    pub fn from(seq: u64) -> Self {
        Self { from_seq: seq, limit: MAX_READ, last: false }
    }

    /// Selects the last `count` entries.
    pub fn last(count: usize) -> Self {
        Self { from_seq: 1, limit: count, last: true }
    }
}

impl Default for ReadFilter {
    fn default() -> Self {
        Self::all()
    }
}

/// Serializes the bodies of entries, if all of them are within the limits.
pub(crate) fn encode(entries: &[NewEntry]) -> Result<Vec<String>, StoreError> {
    if entries.len() > MAX_ENTRIES_AT_ONCE {
        let (count, limit) = (entries.len(), MAX_ENTRIES_AT_ONCE);
        return Err(StoreError::TooMany { count, limit });
    }
    entries.iter().map(encode_one).collect()
}

fn encode_one(entry: &NewEntry) -> Result<String, StoreError> {
    if let Some(run) = &entry.run {
        check_name("the name of a run", run)?;
    }
    if deeper_than(&entry.body, MAX_BODY_DEPTH) {
        return Err(StoreError::TooDeep { limit: MAX_BODY_DEPTH });
    }
    let body = entry.body.to_string();
    check_size("the body of an entry", body.len(), MAX_BODY_BYTES)?;
    Ok(body)
}

fn deeper_than(value: &Value, levels: usize) -> bool {
    let mut inside: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return false,
    };
    match levels.checked_sub(1) {
        None => true,
        Some(levels) => inside.any(|value| deeper_than(value, levels)),
    }
}
