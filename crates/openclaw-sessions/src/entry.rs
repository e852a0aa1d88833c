//! What a session is made of.

use std::time::SystemTime;

use serde_json::Value;

use crate::limits::MAX_READ;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Something that was said, or a call, or its result.
    Message,
    /// What stands for everything before it from here on.
    Compaction,
    /// Something to remember that no model is told.
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

/// An entry that is to be appended.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntry {
    /// The run that it comes from.
    pub run: Option<String>,
    /// What it is.
    pub kind: EntryKind,
    /// What it says; the store does not look into it.
    pub body: Value,
}

impl NewEntry {
    /// An entry that belongs to no run.
    pub fn new(kind: EntryKind, body: Value) -> Self {
        Self { run: None, kind, body }
    }

    /// The same, from a run.
    #[must_use]
    pub fn of_run(self, run: impl Into<String>) -> Self {
        Self { run: Some(run.into()), ..self }
    }
}

/// An entry of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number within the session: 1, 2, 3, … without gaps.
    pub seq: u64,
    /// When it was appended.
    pub at: SystemTime,
    /// The run that it comes from.
    pub run: Option<String>,
    /// What it is.
    pub kind: EntryKind,
    /// What it says.
    pub body: Value,
}

/// Which entries are wanted. They always come in the order of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFilter {
    /// Only this one and later ones.
    pub from_seq: u64,
    /// At most so many; never more than [`MAX_READ`].
    pub limit: usize,
    /// If there are more: the last ones, not the first.
    pub last: bool,
}

impl ReadFilter {
    /// From the beginning.
    pub fn all() -> Self {
        Self::from(1)
    }

    /// This entry and later ones.
    pub fn from(seq: u64) -> Self {
        Self { from_seq: seq, limit: MAX_READ, last: false }
    }

    /// The last so many.
    pub fn last(count: usize) -> Self {
        Self { from_seq: 1, limit: count, last: true }
    }
}

impl Default for ReadFilter {
    fn default() -> Self {
        Self::all()
    }
}
