//! The last filter before a log: known values, in whatever form they appear, become `[REDACTED]`.
//!
//! The types of this crate already keep a value out of `Debug` output and errors. This filter is for
//! what they cannot reach: a library that logs a header, a server that repeats a token in its error.

mod filter;
mod forms;
mod layers;
mod writer;

use std::{
    borrow::Cow,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;

pub use self::writer::RedactingWriter;
use self::{filter::Filter, layers::Layers};
use crate::{REDACTED, SecretString};

/// The shared set of values that must not be printed. A clone is a handle to the same set.
///
/// A value is found as it is, as base64 (alone and inside a longer base64 text, as in Basic
/// authentication), as hex, percent-encoded, escaped as JSON or by Rust's `Debug`, and line by line:
/// by itself, each of the first [`Redactor::MAX_LINES`] lines is found. What follows them is found
/// where it follows the beginning of the value.
///
/// Values shorter than [`Redactor::MIN_LENGTH`] bytes, not counting white space around them, are not
/// looked for: they would shred every line of the log and hide nothing. Neither are values that are
/// part of the word `[REDACTED]`.
///
/// The search needs the values in the clear: here, other than in [`SecretString`], memory is not
/// overwritten when a value is forgotten.
///
/// ```
/// use openclaw_secrets::{Redactor, SecretString};
///
/// let redactor = Redactor::new();
/// redactor.add(&SecretString::from("hunter22"));
/// assert_eq!(redactor.redact("password hunter22!"), "password [REDACTED]!");
/// assert_eq!(redactor.redact("Basic dXNlcjpodW50ZXIyMg=="), "Basic dXNlcj[REDACTED]==");
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The values. Locked by writers only.
    layers: Mutex<Layers>,
    /// What readers search with, one after the other; nothing as long as there are no values.
    filters: ArcSwap<Vec<Arc<Filter>>>,
}

impl Redactor {
    /// The length in bytes from which on a value is looked for.
    pub const MIN_LENGTH: usize = 4;

    /// How many lines of a value are looked for by themselves: more than the longest key file has,
    /// and few enough that a large file costs no more.
    pub const MAX_LINES: usize = 128;

    /// A filter that knows no value yet and lets everything pass.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on this value is redacted.
    pub fn add(&self, value: &SecretString) {
        self.add_all([value]);
    }

    /// As [`Redactor::add`], at the price of one addition.
    pub fn add_all<'a>(&self, values: impl IntoIterator<Item = &'a SecretString>) {
        let values = values.into_iter().map(SecretString::expose).filter(|v| is_worth_hiding(v));
        self.change(|layers| layers.add(values));
    }

    /// Stops looking for a value that is no longer valid, such as a token that was refreshed: a
    /// gateway that runs for months must not collect them all.
    pub fn forget(&self, value: &SecretString) {
        self.change(|layers| layers.remove(value.expose()));
    }

    /// The text with every known value replaced; borrowed if there is none in it.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let hits = self.hits(text.as_bytes());
        if hits.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut clean = String::with_capacity(text.len());
        let mut done = 0;
        for hit in hits {
            clean.push_str(&text[done..hit.start]);
            clean.push_str(REDACTED);
            done = hit.end;
        }
        clean.push_str(&text[done..]);
        Cow::Owned(clean)
    }

    /// Where known values stand, in order, without overlaps.
    fn hits(&self, text: &[u8]) -> Vec<Range<usize>> {
        filter::hits(&self.shared.filters.load(), text)
    }

    /// The length of the longest text that can be a value.
    fn longest_form(&self) -> usize {
        let filters = self.shared.filters.load();
        filters.iter().map(|filter| filter.longest_form()).max().unwrap_or(0)
    }

    /// How much of the end of a line may be the beginning of a value that has several.
    fn begun_at_end(&self, text: &[u8]) -> usize {
        let filters = self.shared.filters.load();
        filters.iter().map(|filter| filter.begun_at_end(text)).max().unwrap_or(0)
    }

    /// Changes the set of values and tells the readers if `change` says that it did.
    fn change(&self, change: impl FnOnce(&mut Layers) -> bool) {
        let mut layers = self.shared.layers.lock().unwrap_or_else(PoisonError::into_inner);
        if change(&mut layers) {
            self.shared.filters.store(Arc::new(layers.filters()));
        }
    }
}

fn is_worth_hiding(value: &str) -> bool {
    value.trim().len() >= Redactor::MIN_LENGTH && !REDACTED.contains(value)
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}
