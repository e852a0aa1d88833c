//! Results of tools, resources and prompts, for users and programs.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

/// Result of `mcp.call`, `mcp.read` and `mcp.prompt`.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Content parts, texts first.
    pub content: Vec<Part>,
    /// Structured content, raw from the server: untrusted and not sanitized.
    pub structured_content: Option<Box<RawValue>>,
    /// For prompts: the messages with their roles, raw from the server and untrusted.
    pub messages: Option<Box<RawValue>>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Source, duration and suspicious findings.
    pub details: Details,
    /// Warnings for the caller, such as an approval that could not be saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A part of a result.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Whether the text is untrusted; otherwise it comes from the gateway.
        untrusted: bool,
        /// Whether it only stands in for content that is not text, which is a separate part where
        /// requested.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        placeholder: bool,
        /// Whom the source addresses it to, if not everyone.
        audience: Option<Audience>,
    },
    /// An image.
    Image {
        /// Media type.
        mime_type: String,
        /// File that the data was saved to.
        file: Option<String>,
        /// Data in base64, unless saved to a file.
        data: Option<String>,
    },
    /// Audio.
    Audio {
        /// Media type.
        mime_type: String,
        /// File that the data was saved to.
        file: Option<String>,
        /// Data in base64, unless saved to a file.
        data: Option<String>,
    },
    /// Other binary data.
    Blob {
        /// URI on the server.
        uri: Option<String>,
        /// Media type; empty if unknown.
        mime_type: String,
        /// File that the data was saved to.
        file: Option<String>,
        /// Data in base64, unless saved to a file.
        data: Option<String>,
    },
}

/// Whom a part of a result is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Audience {
    /// The user: no model has seen it.
    User,
    /// The model.
    Assistant,
}

/// Details of a result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// Whether the result contains untrusted content.
    pub untrusted: bool,
    /// Kind of source, such as `mcp_server`.
    pub source: Option<String>,
    /// Server name.
    pub server: Option<String>,
    /// Name of the tool on the server; for resources the URI, for prompts the name.
    pub tool: Option<String>,
    /// Whether untrusted text is inside its boundary here, as a model sees it.
    pub wrapped: bool,
    /// Suspicious findings.
    pub findings: Vec<Finding>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Why the server returned no usable result.
    pub failure: Option<Failure>,
    /// How the result, which is included, violates the tool's output schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations: Option<String>,
    /// Whether the text was truncated.
    pub is_cut: bool,
    /// File that holds the complete text.
    pub kept_in: Option<String>,
    /// Links to resources.
    pub links: Vec<Link>,
}

/// A suspicious finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Kind of finding.
    pub kind: String,
    /// Number of occurrences.
    pub count: usize,
}

/// A link to a resource, as given by the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// URI.
    pub uri: String,
    /// Name.
    pub name: Option<String>,
    /// Media type.
    pub mime_type: Option<String>,
}

/// Why a server returned no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The server is unavailable.
    Unavailable,
    /// The user must log in at the server, or grant it another scope.
    NeedsLogin,
    /// The call timed out.
    TimedOut,
    /// The server rejected the request or violated the protocol.
    ProtocolError,
    /// The response is not a valid result.
    InvalidResponse,
    /// The call is not allowed.
    Denied,
    /// Too many calls.
    RateLimited,
    /// The arguments do not match the tool's schema.
    InvalidArguments,
}
