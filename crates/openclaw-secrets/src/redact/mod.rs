//! The last filter before a log: replaces known values, in any encoding, with `[REDACTED]`.
//!
//! The types of this crate already keep values out of `Debug` output and errors. This filter is for
//! what they cannot cover: a library that logs a header, a server error that repeats a token.

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
/// A value is found verbatim, as base64 (alone and inside a longer base64 text, as in Basic
/// authentication), as hex, percent-encoded, escaped as JSON or by Rust's `Debug`, and line by line:
/// each of the first [`Redactor::MAX_LINES`] lines is found on its own. Later lines are found only
/// as a continuation of the value.
///
/// Values shorter than [`Redactor::MIN_LENGTH`] bytes, without surrounding white space, are
/// ignored: they would match everywhere in the log and hide nothing. So are values that are part of
/// the word `[REDACTED]`.
///
/// The search needs the values in plaintext: unlike in [`SecretString`], memory is not overwritten
/// when a value is forgotten.
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
    /// Everything that is redacted.
    hidden: Values,
    /// The lines of those of them that are credentials.
    credentials: Values,
}

#[derive(Default)]
struct Values {
    /// The values. Locked by writers only.
    layers: Mutex<Layers>,
    /// The filters that readers apply, one after the other; empty if there are no values.
    filters: ArcSwap<Vec<Arc<Filter>>>,
}

impl Values {
    /// Applies `change` to the values and publishes them to readers if it returns `true`.
    fn change(&self, change: impl FnOnce(&mut Layers) -> bool) {
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        if change(&mut layers) {
            self.filters.store(Arc::new(layers.filters()));
        }
    }
}

impl Redactor {
    /// The minimum length of a value, in bytes.
    pub const MIN_LENGTH: usize = 4;

    /// The minimum length in bytes of a credential that is searched for in names and addresses.
    const MIN_CREDENTIAL: usize = 8;

    /// A single word of fewer letters is not searched for in names and addresses, either: a tool may be
    /// called like the password of a test database.
    const MIN_WORD: usize = 16;

    /// How many lines of a value are searched for on their own: more than the longest key file has,
    /// and few enough to bound the cost of a large file.
    pub const MAX_LINES: usize = 128;

    /// Creates an empty redactor, which changes nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value to redact.
    pub fn add(&self, value: &SecretString) {
        self.add_all([value]);
    }

    /// Like [`Redactor::add`], for several values at the cost of one.
    pub fn add_all<'a>(&self, values: impl IntoIterator<Item = &'a SecretString>) {
        let values = values.into_iter().map(SecretString::expose).filter(|v| is_worth_hiding(v));
        self.shared.hidden.change(|layers| layers.add(values));
    }

    /// Like [`Redactor::add_all`], for values that are certainly credentials: nothing may be called by
    /// them, see [`Redactor::finds_credential`].
    ///
    /// ```
    /// use openclaw_secrets::{Redactor, SecretString};
    ///
    /// let redactor = Redactor::new();
    /// redactor.add(&SecretString::from("/data/docs"));
    /// redactor.add_credentials([&SecretString::from("hunter22-and-more")]);
    /// assert!(redactor.finds_credential("notes://hunter22-and-more/today"));
    /// assert!(!redactor.finds_credential("file:///data/docs/today"));
    /// ```
    pub fn add_credentials<'a>(&self, values: impl IntoIterator<Item = &'a SecretString>) {
        let values: Vec<&SecretString> = values.into_iter().collect();
        self.add_all(values.iter().copied());
        let lines = values.iter().flat_map(|value| lines(value.expose()));
        self.shared.credentials.change(|layers| layers.add(lines));
    }

    /// Returns whether a name or an address contains a credential, in any form. It cannot be redacted,
    /// because it would not work any more.
    #[must_use]
    pub fn finds_credential(&self, text: &str) -> bool {
        !filter::hits(&self.shared.credentials.filters.load(), text.as_bytes()).is_empty()
    }

    /// Removes a value that is no longer valid, such as a refreshed token: a gateway that runs for
    /// months must not accumulate them.
    pub fn forget(&self, value: &SecretString) {
        self.shared.hidden.change(|layers| layers.remove(value.expose()));
        self.shared.credentials.change(|layers| {
            lines(value.expose()).fold(false, |any, line| layers.remove(line) | any)
        });
    }

    /// Returns whether there are no values: nothing is redacted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shared.hidden.filters.load().is_empty()
    }

    /// Replaces every known value in a text. Borrows the text if there is none.
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

    /// Returns the positions of known values, in order, without overlaps.
    fn hits(&self, text: &[u8]) -> Vec<Range<usize>> {
        filter::hits(&self.shared.hidden.filters.load(), text)
    }

    /// Returns the length of the longest form of a value.
    fn longest_form(&self) -> usize {
        let filters = self.shared.hidden.filters.load();
        filters.iter().map(|filter| filter.longest_form()).max().unwrap_or(0)
    }

    /// Returns how many bytes at the end of a line may begin a multi-line value.
    fn begun_at_end(&self, text: &[u8]) -> usize {
        let filters = self.shared.hidden.filters.load();
        filters.iter().map(|filter| filter.begun_at_end(text)).max().unwrap_or(0)
    }
}

fn is_worth_hiding(value: &str) -> bool {
    value.trim().len() >= Redactor::MIN_LENGTH && !REDACTED.contains(value)
}

/// The lines of a credential that are long enough to be recognized in a name.
fn lines(value: &str) -> impl Iterator<Item = &str> {
    let lines = value.lines().take(Redactor::MAX_LINES).map(str::trim);
    lines.filter(|line| {
        let is_word = line.chars().all(char::is_alphabetic);
        let least = if is_word { Redactor::MIN_WORD } else { Redactor::MIN_CREDENTIAL };
        line.len() >= least && is_worth_hiding(line)
    })
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}
