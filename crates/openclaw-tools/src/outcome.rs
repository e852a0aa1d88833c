//! What comes back from a tool.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openclaw_content::{Findings, Text, render};
use serde_json::value::RawValue;

/// A part of an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(Text),
    /// Words for something that is not shown itself, such as a file that no model takes.
    Placeholder(Text),
    /// A picture, external, in base64.
    Image {
        /// Its media type.
        mime_type: String,
        /// The base64 text, checked.
        data: String,
    },
    /// A sound, external, in base64.
    Audio {
        /// Its media type.
        mime_type: String,
        /// The base64 text, checked.
        data: String,
    },
}

/// What comes back from a tool. A failure is an outcome, too: it never breaks off a turn. It is moved often, so what is
/// large in it is boxed.
#[derive(Debug, Clone)]
pub struct ToolOutcome {
    /// What the model sees.
    pub content: Vec<Content>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// What people and logs see; dropped when history is compacted.
    pub details: Box<Details>,
}

/// About an outcome: where it comes from, and what was noticed.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// Whether outside content is in it.
    pub untrusted: bool,
    /// The kind of source, `mcp_server` for instance.
    pub source: Option<&'static str>,
    /// The server that it comes from.
    pub server: Option<Arc<str>>,
    /// The tool's own name there.
    pub tool: Option<Arc<str>>,
    /// What is suspicious in it.
    pub findings: Findings,
    /// How long the call took.
    pub duration: Duration,
    /// Why there is no result of the tool's own, if there is none.
    pub failure: Option<Failure>,
    /// Which check refused the call, if one did.
    pub refused: Option<Refused>,
    /// Whether the model sees only the beginning of the text.
    pub is_cut: bool,
    /// The file that holds the whole text, if only its beginning is shown.
    pub kept_in: Option<PathBuf>,
    /// What the result points at. All of it comes from outside.
    pub links: Vec<Link>,
    /// The structured content, raw from the source, for programs that want it: never for a model, which
    /// gets to see it as text. None unless it was asked for.
    pub structured: Option<Box<RawValue>>,
    /// What is binary and no model takes. None unless it was asked for.
    pub blobs: Vec<Blob>,
}

/// Something binary that no model takes, from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// Where it is, of a resource.
    pub uri: Option<String>,
    /// Its media type, as its source says.
    pub mime_type: String,
    /// The base64 text, as it came: it may be damaged.
    pub data: String,
}

/// Something that a result points at, in the words of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it is.
    pub uri: String,
    /// What it is called.
    pub name: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
}

/// Which check of the pipeline refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// There is no such tool.
    UnknownTool,
    /// The policy denies it.
    Policy,
    /// The tool cannot be called by anybody: its description is broken.
    Unusable,
    /// It says something else about itself than when it was approved.
    Changed,
    /// The user did not allow it.
    Declined,
    /// It needs an approval, and nobody could be asked.
    NobodyToAsk,
    /// The arguments do not fit.
    Schema,
    /// There were too many calls.
    Limit,
    /// The same call was made over and over, or too many at once.
    Repeated,
}

impl Refused {
    /// The stable name, as in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown-tool",
            Self::Policy => "policy",
            Self::Unusable => "unusable",
            Self::Changed => "changed",
            Self::Declined => "declined",
            Self::NobodyToAsk => "nobody-to-ask",
            Self::Schema => "schema",
            Self::Limit => "limit",
            Self::Repeated => "repeated",
        }
    }
}

/// Why a call has no result of the tool's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// Its server cannot be reached.
    Unavailable,
    /// It took too long.
    TimedOut,
    /// The server refused the request, or broke the protocol.
    Protocol,
    /// What came back is no result.
    InvalidResponse,
    /// It is not allowed.
    Denied,
    /// There were too many calls.
    RateLimited,
    /// The arguments do not fit the tool.
    InvalidArguments,
}

impl Failure {
    /// The stable name, as in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed-out",
            Self::Protocol => "protocol-error",
            Self::InvalidResponse => "invalid-response",
            Self::Denied => "denied",
            Self::RateLimited => "rate-limited",
            Self::InvalidArguments => "invalid-arguments",
        }
    }
}

impl ToolOutcome {
    /// A failure in plain words of our own.
    pub fn failure(message: impl Into<String>) -> Self {
        let content = vec![Content::Text(Text::ours(message))];
        Self { content, is_error: true, details: Box::default() }
    }

    /// All text in it, for people and programs.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.texts().map(Text::expose).collect();
        texts.join("\n")
    }

    /// All text in it, as a model reads it.
    pub fn rendered(&self) -> String {
        render(self.texts()).join("\n")
    }

    /// Its texts, in their order.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.content.iter().filter_map(|part| match part {
            Content::Text(text) | Content::Placeholder(text) => Some(text),
            Content::Image { .. } | Content::Audio { .. } => None,
        })
    }

    /// How many characters of text there are.
    pub fn content_chars(&self) -> usize {
        self.texts().map(|text| chars(text.expose())).sum()
    }
}

/// How many characters a text has. Most are ASCII, which is seen sooner than characters are counted.
fn chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}
