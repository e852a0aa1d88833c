//! The last filter before a log: known values, in whatever form they appear, become `[REDACTED]`.
//!
//! The types of this crate already keep a value out of `Debug` output and errors. This filter is for
//! what they cannot reach: a library that logs a header, a server that repeats a token in its error.

mod filter;
mod forms;
mod writer;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwapOption;

pub use self::writer::RedactingWriter;
use self::{filter::Filter, forms::Form};
use crate::{REDACTED, SecretString};

/// The shared set of values that must not be printed. A clone is a handle to the same set.
///
/// A value is found as it is, as base64 (alone and inside a longer base64 text, as in Basic
/// authentication), as hex, percent-encoded, escaped as JSON or by Rust's `Debug`, and line by line.
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
    /// Each value with its forms. Locked by writers only.
    values: Mutex<BTreeMap<String, Vec<Arc<Form>>>>,
    /// What readers search with; nothing as long as there are no values.
    filter: ArcSwapOption<Filter>,
}

impl Redactor {
    /// The length in bytes from which on a value is looked for.
    pub const MIN_LENGTH: usize = 4;

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
        self.change(|known| {
            let before = known.len();
            for value in values {
                let value = value.expose();
                if is_worth_hiding(value) && !known.contains_key(value) {
                    known.insert(value.to_owned(), forms::forms_of(value));
                }
            }
            known.len() != before
        });
    }

    /// Stops looking for a value that is no longer valid, such as a token that was refreshed: a
    /// gateway that runs for months must not collect them all.
    pub fn forget(&self, value: &SecretString) {
        self.change(|known| known.remove(value.expose()).is_some());
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
        self.shared.filter.load().as_ref().map_or_else(Vec::new, |filter| filter.hits(text))
    }

    /// The length of the longest text that can be a value.
    fn longest_form(&self) -> usize {
        self.shared.filter.load().as_ref().map_or(0, |filter| filter.longest_form())
    }

    /// How much of the end of a line may be the beginning of a value that has several.
    fn begun_at_end(&self, text: &[u8]) -> usize {
        self.shared.filter.load().as_ref().map_or(0, |filter| filter.begun_at_end(text))
    }

    /// Changes the set of values and rebuilds the filter if `change` says that it did.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Vec<Arc<Form>>>) -> bool) {
        let mut values = self.shared.values.lock().unwrap_or_else(PoisonError::into_inner);
        if change(&mut values) {
            let filter = Filter::new(values.values().flatten());
            self.shared.filter.store(filter.map(Arc::new));
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
