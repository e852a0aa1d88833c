//! What comes back from a tool, a resource or a prompt, for people and programs.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What `mcp.call`, `mcp.read` and `mcp.prompt` answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// Its parts: texts first.
    pub content: Vec<Part>,
    /// Raw from the server, and untrusted: nobody has looked through it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Box<RawValue>>,
    /// Of a prompt, its messages with their roles: raw from the server, and as untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Box<RawValue>>,
    /// Whether it failed.
    pub is_error: bool,
    /// Who answered, how long it took, what was suspicious.
    pub details: Details,
    /// What the caller should know besides, such as an approval that could not be saved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Whether it comes from outside; otherwise these are the gateway's words.
        untrusted: bool,
        /// Whether it only stands for something that is not text, which comes by itself where it was asked
        /// for.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        placeholder: bool,
    },
    /// A picture.
    Image {
        /// Its media type.
        mime_type: String,
        /// The file that it was written to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// In base64, unless it is in a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
    /// A sound.
    Audio {
        /// Its media type.
        mime_type: String,
        /// The file that it was written to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// In base64, unless it is in a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
    /// Something else that is no text.
    Blob {
        /// Where the server has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
        /// Its media type; empty if nobody says.
        mime_type: String,
        /// The file that it was written to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// In base64, unless it is in a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
}

/// About an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// Whether something from outside is in it.
    pub untrusted: bool,
    /// The kind of source, `mcp_server` for instance.
    pub source: Option<String>,
    /// The server.
    pub server: Option<String>,
    /// The tool's own name there; of a resource its address, of a prompt its name.
    pub tool: Option<String>,
    /// Whether text from outside stands inside its boundary here, as a model reads it.
    pub wrapped: bool,
    /// What is suspicious in it.
    pub findings: Vec<Finding>,
    /// How long it took.
    pub duration_ms: u64,
    /// Why there is no answer of the server's own.
    pub failure: Option<Failure>,
    /// Whether this is only the beginning of the text.
    pub is_cut: bool,
    /// The file that holds all of it.
    pub kept_in: Option<String>,
    /// What it points at.
    pub links: Vec<Link>,
}

/// Something suspicious.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What.
    pub kind: String,
    /// How often.
    pub count: usize,
}

/// Something that an answer points at, in the words of its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Where it is.
    pub uri: String,
    /// What it is called.
    pub name: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
}

/// Why there is no answer of the server's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// Its server cannot be reached.
    Unavailable,
    /// It took too long.
    TimedOut,
    /// The server refused the request, or broke the protocol.
    ProtocolError,
    /// What came back is no result.
    InvalidResponse,
    /// It is not allowed.
    Denied,
    /// There were too many calls.
    RateLimited,
    /// The arguments do not fit the tool.
    InvalidArguments,
}
