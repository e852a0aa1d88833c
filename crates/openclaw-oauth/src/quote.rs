//! Texts of other parties, for errors and questions.

use openclaw_content::{Untrusted, clean_line};

/// Maximum length of a quoted text.
const MAX_QUOTE: usize = 200;

/// Returns one clean line of another party's text.
pub(crate) fn quoted(text: &str) -> String {
    clean_line(Untrusted::new(text), MAX_QUOTE)
}
