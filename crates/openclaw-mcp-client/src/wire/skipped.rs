//! Lines from a server that are not messages: the first few are logged, and the first one is kept
//! to explain a failed connection. Secrets are redacted before the line is truncated.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use openclaw_content::{Untrusted, clean_line};
use openclaw_secrets::Redactor;

/// Maximum number of lines in the log.
const LOGGED: usize = 5;
/// How much of each line is searched for secrets, in bytes, and shown, in characters.
const READ: usize = 64 * 1024;
const SHOWN: usize = 160;

/// The skipped lines of one connection.
#[derive(Debug, Default)]
pub(super) struct SkippedLines {
    server: String,
    redactor: Redactor,
    count: AtomicUsize,
    first: OnceLock<String>,
}

impl SkippedLines {
    /// Creates an empty record for a server whose secrets `redactor` knows.
    pub(super) fn from(server: &str, redactor: &Redactor) -> Self {
        Self { server: server.to_owned(), redactor: redactor.clone(), ..Self::default() }
    }

    /// Returns the redactor of the server's secrets.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Records a line. Blank lines are ignored.
    pub(super) fn note(&self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if count > LOGGED {
            return;
        }
        let text = String::from_utf8_lossy(&line[..line.len().min(READ)]);
        let text = clean_line(Untrusted::new(&self.redactor.redact(&text)), SHOWN);
        let server = &self.server;
        tracing::warn!(%server, bytes = line.len(), line = %text, "skipped a line: not a message");
        if count == LOGGED {
            tracing::warn!(%server, "further skipped lines are not logged");
        }
        let _ = self.first.set(text);
    }

    /// Returns the first skipped line, sanitized.
    pub(super) fn first(&self) -> Option<&str> {
        self.first.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_kept_clean_and_short_and_blank_ones_are_ignored() {
        let skipped = SkippedLines::from("x", &Redactor::new());
        skipped.note(b" \r");
        assert_eq!(skipped.first(), None);
        skipped.note(format!("\u{1b}[31mListening {}", "y".repeat(10_000)).as_bytes());
        skipped.note(b"second");
        let first = skipped.first().unwrap();
        assert!(first.contains("Listening") && !first.contains('\u{1b}'), "{first}");
        assert!(first.chars().count() <= SHOWN, "{first}");
    }

    #[test]
    fn no_part_of_a_secret_is_kept_where_the_line_is_cut() {
        let redactor = Redactor::new();
        redactor.add(&"hunter22-and-more".to_owned().into());
        for before in [SHOWN - 5, READ - 5] {
            let skipped = SkippedLines::from("x", &redactor);
            skipped.note(format!("{}hunter22-and-more", "y".repeat(before)).as_bytes());
            let first = skipped.first().unwrap();
            assert!(!first.contains("hunt"), "{first}");
        }
    }
}
