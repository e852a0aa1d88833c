//! The files that a configuration was read from, with a hash of their content.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use crate::source::read_text;
use crate::tree::is_blank;

/// Whether a file has content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileContent {
    /// More than comments; an empty object counts.
    Something,
    /// Nothing but comments, or no such file.
    Nothing,
}

impl FileContent {
    pub(crate) fn of(text: &str) -> Self {
        if is_blank(text) { Self::Nothing } else { Self::Something }
    }
}

/// A file that a configuration was read from, or would be if it existed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFile {
    /// Its path.
    pub path: PathBuf,
    /// A hash of its content; `None` if it could not be read.
    stamp: Option<u64>,
}

impl ReadFile {
    /// Reads the current state of a file.
    pub fn now(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let text = is_regular(&path).then(|| read_text(&path).ok()).flatten();
        Self { stamp: text.as_deref().map(stamp), path }
    }

    /// Records a file that this text was read from.
    pub(crate) fn with(path: impl Into<PathBuf>, text: &str) -> Self {
        let path = path.into();
        // Standard input and pipes cannot be read again: they never count as changed.
        let stamp = is_regular(&path).then(|| stamp(text));
        Self { path, stamp }
    }

    /// Records a file that could not be read.
    pub(crate) fn unreadable(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), stamp: None }
    }
}

fn is_regular(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

fn stamp(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
