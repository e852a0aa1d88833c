//! Outcomes of tool calls.

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
    /// A description of content that is not shown, such as a file that no model accepts.
    Placeholder(Text),
    /// Text that the source addresses to the model only: front ends do not show it as text.
    ForModel(Text),
    /// An untrusted image in base64.
    Image {
        /// Media type.
        mime_type: String,
        /// Validated base64.
        data: String,
    },
    /// Untrusted audio in base64.
    Audio {
        /// Media type.
        mime_type: String,
        /// Validated base64.
        data: String,
    },
}

/// The outcome of a tool call. A failure is an outcome as well: it never aborts a turn. Outcomes
/// are moved often, so large parts are boxed.
#[derive(Debug, Clone)]
pub struct ToolOutcome {
    /// What the model sees; content for the user only is in the details.
    pub content: Vec<Content>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// For users and logs; dropped when the history is compacted.
    pub details: Box<OutcomeDetails>,
}

/// Metadata of an outcome.
#[derive(Debug, Clone, Default)]
pub struct OutcomeDetails {
    /// Whether it contains untrusted content.
    pub untrusted: bool,
    /// Kind of source, such as `mcp_server`.
    pub source: Option<&'static str>,
    /// Server name.
    pub server: Option<Arc<str>>,
    /// Name of the tool on the server.
    pub tool: Option<Arc<str>>,
    /// Suspicious findings.
    pub findings: Findings,
    /// Duration of the call.
    pub duration: Duration,
    /// Why the tool returned no usable result, if so.
    pub failure: Option<ToolFailure>,
    /// How the result violates the tool's output schema, for users. The text quotes the source, and
    /// is sanitized.
    pub violations: Option<Box<str>>,
    /// Check that refused the call, if any.
    pub refused: Option<RefusedBy>,
    /// Whether the model sees only the beginning of the text.
    pub is_cut: bool,
    /// File with the complete text, if it was truncated.
    pub kept_in: Option<PathBuf>,
    /// Links to resources. All of them are untrusted.
    pub links: Vec<ResourceLink>,
    /// Structured content, raw from the source, for programs: never for a model, which sees it as
    /// text. `None` unless requested.
    pub structured: Option<Box<RawValue>>,
    /// Binary content that no model accepts. Empty unless requested.
    pub blobs: Vec<Blob>,
    /// Untrusted content that the source addresses to the user only: never for a model.
    pub for_user: Vec<Content>,
    /// The source's reply. `None` unless requested by a [relay](crate::Relay).
    pub raw: Option<RawReply>,
}

/// The reply of a source, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawReply {
    /// A result.
    Result(String),
    /// An error: an object with `code` and `message`. The message is untrusted.
    Error(String),
}

impl RawReply {
    /// Returns the JSON text.
    pub fn json(&self) -> &str {
        match self {
            Self::Result(json) | Self::Error(json) => json,
        }
    }
}

/// Untrusted binary content that no model accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// URI, if it is a resource.
    pub uri: Option<String>,
    /// Media type, as declared by the source.
    pub mime_type: String,
    /// Base64 as received: not validated.
    pub data: String,
}

/// A link to a resource, as given by the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLink {
    /// URI.
    pub uri: String,
    /// Name.
    pub name: Option<String>,
    /// Media type.
    pub mime_type: Option<String>,
}

/// The check of the pipeline that refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusedBy {
    /// The tool does not exist.
    UnknownTool,
    /// The policy denies the tool.
    Policy,
    /// The tool cannot be called: its definition is invalid.
    Unusable,
    /// The tool's definition has changed since it was first seen or approved.
    Changed,
    /// The user denied the call.
    Declined,
    /// The call needs an approval, and no user could be asked.
    NobodyToAsk,
    /// The arguments do not match the schema.
    Schema,
    /// Too many calls.
    Limit,
    /// The same call was made repeatedly, or too many at once.
    Repeated,
    /// The call brings input that its source has not requested.
    UnaskedInput,
}

impl RefusedBy {
    /// Returns the stable name used in logs.
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
            Self::UnaskedInput => "unasked-input",
        }
    }
}

/// Why the tool returned no usable result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolFailure {
    /// The server is unavailable.
    Unavailable,
    /// The user must log in at the server, or grant it another scope.
    NeedsLogin,
    /// The call timed out.
    TimedOut,
    /// The server rejected the request or violated the protocol.
    Protocol,
    /// The response is not a valid result, or not one that the tool declares.
    InvalidResponse,
    /// The call is not allowed.
    Denied,
    /// Too many calls.
    RateLimited,
    /// The arguments do not match the tool's schema.
    InvalidArguments,
}

impl ToolFailure {
    /// Returns the stable name used in logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::NeedsLogin => "needs-login",
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
    /// Creates a failure with a trusted message.
    pub fn failure(message: impl Into<String>) -> Self {
        let content = vec![Content::Text(Text::ours(message))];
        Self { content, is_error: true, details: Box::default() }
    }

    /// Returns the text for users and programs: without what is for the model only, and with what
    /// is for the user only.
    pub fn text(&self) -> String {
        let parts = self.content.iter().chain(&self.details.for_user);
        let texts: Vec<&str> = parts
            .filter_map(|part| match part {
                Content::Text(text) | Content::Placeholder(text) => Some(text.expose()),
                Content::ForModel(_) | Content::Image { .. } | Content::Audio { .. } => None,
            })
            .collect();
        texts.join("\n")
    }

    /// Returns all text as a model sees it.
    pub fn rendered(&self) -> String {
        render(self.texts()).join("\n")
    }

    /// Returns the texts for the model, in order.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.content.iter().filter_map(|part| match part {
            Content::Text(text) | Content::Placeholder(text) | Content::ForModel(text) => {
                Some(text)
            }
            Content::Image { .. } | Content::Audio { .. } => None,
        })
    }

    /// Returns the number of characters of text.
    pub fn content_chars(&self) -> usize {
        if let Some(raw) = &self.details.raw {
            return chars(raw.json());
        }
        self.texts().map(|text| chars(text.expose())).sum()
    }
}

/// Counts characters. Most texts are ASCII, which is faster to check than to count.
fn chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}
