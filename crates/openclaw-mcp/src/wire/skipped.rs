//! What a server sends that is no message: a word in the log for the first few, and the first one kept
//! for whoever asks why there is no connection.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use openclaw_content::{Untrusted, clean_line};

/// How many go to the log.
const LOGGED: usize = 5;
/// How much of each is looked at, in bytes, and shown, in characters.
const READ: usize = 1_000;
const SHOWN: usize = 160;

/// What was skipped on one connection.
#[derive(Debug, Default)]
pub(super) struct Skipped {
    server: String,
    count: AtomicUsize,
    first: OnceLock<String>,
}

impl Skipped {
    /// Nothing yet, from a server of this name.
    pub(super) fn from(server: &str) -> Self {
        Self { server: server.to_owned(), ..Self::default() }
    }

    /// Takes note of a line. A blank one is no matter.
    pub(super) fn note(&self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if count > LOGGED {
            return;
        }
        let text = String::from_utf8_lossy(&line[..line.len().min(READ)]);
        let text = clean_line(Untrusted::new(&text), SHOWN);
        let server = &self.server;
        tracing::warn!(%server, bytes = line.len(), line = %text, "skipped what is not a message");
        if count == LOGGED {
            tracing::warn!(%server, "more of that is not logged");
        }
        let _ = self.first.set(text);
    }

    /// The first that was skipped: one clean line.
    pub(super) fn first(&self) -> Option<&str> {
        self.first.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_kept_clean_and_short_and_blank_ones_are_none() {
        let skipped = Skipped::from("x");
        skipped.note(b" \r");
        assert_eq!(skipped.first(), None);
        skipped.note(format!("\u{1b}[31mListening {}", "y".repeat(10_000)).as_bytes());
        skipped.note(b"second");
        let first = skipped.first().unwrap();
        assert!(first.contains("Listening") && !first.contains('\u{1b}'), "{first}");
        assert!(first.chars().count() <= SHOWN, "{first}");
    }
}
