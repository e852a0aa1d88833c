//! Output of a stdio server on stdout other than messages.

use serde::{Deserialize, Serialize};

use super::Script;

/// Output on stdout that is not a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Junk {
    /// A line of this text.
    Line(String),
    /// An empty line.
    Blank,
    /// A line that is not UTF-8.
    NonUtf8,
    /// Text without an end of line: the next message is appended to it.
    Partial(String),
    /// A line of this many megabytes.
    LineOfMb(usize),
}

/// Output on stdout other than messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StdoutScript {
    /// Printed once, before the first message.
    pub before: Vec<Junk>,
    /// Printed before every message.
    pub between: Vec<Junk>,
    /// Every message is written in two halves, with a pause of this many milliseconds.
    pub split_ms: Option<u64>,
    /// Lines end with CR LF.
    pub crlf: bool,
    /// This text is added to every text of every message.
    pub spoiled_with: Option<String>,
}

impl StdoutScript {
    /// Whether messages are written without extras.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl Script {
    /// Prints this once, before the first message.
    pub fn junk_before(mut self, junk: Junk) -> Self {
        self.stdout.before.push(junk);
        self
    }

    /// Prints this before every message.
    pub fn junk_between(mut self, junk: Junk) -> Self {
        self.stdout.between.push(junk);
        self
    }

    /// Prints one line of this many megabytes before the first message.
    pub fn line_of_mb(self, megabytes: usize) -> Self {
        self.junk_before(Junk::LineOfMb(megabytes))
    }

    /// Writes every message in two halves with a pause between them.
    pub fn split_messages(mut self, pause_ms: u64) -> Self {
        self.stdout.split_ms = Some(pause_ms);
        self
    }

    /// Adds this text to every text of every message, and adds the texts that messages may have: titles,
    /// descriptions, types, messages of progress. Names of tools, prompts and arguments stay, and so does what
    /// is not text: addresses, ids, versions and words of the protocol.
    pub fn spoiled_with(mut self, text: impl Into<String>) -> Self {
        self.stdout.spoiled_with = Some(text.into());
        self
    }

    /// Ends lines with CR LF.
    pub fn crlf(mut self) -> Self {
        self.stdout.crlf = true;
        self
    }
}
