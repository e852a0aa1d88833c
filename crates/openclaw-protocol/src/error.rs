//! What a request fails with.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// Codes in `details.code`, which say more than the error's own.
pub mod detail {
    /// No token was shown.
    pub const AUTH_TOKEN_MISSING: &str = "AUTH_TOKEN_MISSING";
    /// The token is wrong.
    pub const AUTH_TOKEN_MISMATCH: &str = "AUTH_TOKEN_MISMATCH";
    /// Too many wrong tokens.
    pub const AUTH_RATE_LIMITED: &str = "AUTH_RATE_LIMITED";
    /// The two sides share no version.
    pub const PROTOCOL_MISMATCH: &str = "PROTOCOL_MISMATCH";
    /// The caller may not do that.
    pub const MISSING_SCOPE: &str = "MISSING_SCOPE";
    /// There is no such agent.
    pub const UNKNOWN_AGENT_ID: &str = "UNKNOWN_AGENT_ID";
    /// The connection was lost before the answer came. Told by the client itself.
    pub const CONNECTION_LOST: &str = "CONNECTION_LOST";
    /// The answer did not come in time. Told by the client itself.
    pub const TIMED_OUT: &str = "TIMED_OUT";
    /// There is no such method. Ours alone: the Node gateway says so only in words.
    pub const UNKNOWN_METHOD: &str = "UNKNOWN_METHOD";
    /// There is no such MCP server. Ours, as are those below.
    pub const UNKNOWN_SERVER: &str = "UNKNOWN_SERVER";
    /// There is no such tool or prompt.
    pub const UNKNOWN_TOOL: &str = "UNKNOWN_TOOL";
    /// The MCP server cannot be used now.
    pub const SERVER_UNAVAILABLE: &str = "SERVER_UNAVAILABLE";
    /// The tool says something else about itself than when it was approved.
    pub const TOOL_CHANGED: &str = "TOOL_CHANGED";
    /// The tool is listed, and cannot be called.
    pub const TOOL_UNUSABLE: &str = "TOOL_UNUSABLE";
    /// This gateway cannot log in to servers.
    pub const NO_LOGINS: &str = "NO_LOGINS";
}

/// What kind of error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ErrorCode {
    /// No account is linked (old gateways).
    NotLinked,
    /// The device waits to be let in.
    NotPaired,
    /// The agent took too long (old gateways).
    AgentTimeout,
    /// The request is wrong, or cannot be served as things are.
    InvalidRequest,
    /// The caller may not do that.
    Forbidden,
    /// Nothing waits for that decision, or no longer.
    ApprovalNotFound,
    /// Something that it takes is not there now.
    Unavailable,
    /// A code that we do not know.
    Other(String),
}

const KNOWN: [(ErrorCode, &str); 7] = [
    (ErrorCode::NotLinked, "NOT_LINKED"),
    (ErrorCode::NotPaired, "NOT_PAIRED"),
    (ErrorCode::AgentTimeout, "AGENT_TIMEOUT"),
    (ErrorCode::InvalidRequest, "INVALID_REQUEST"),
    (ErrorCode::Forbidden, "FORBIDDEN"),
    (ErrorCode::ApprovalNotFound, "APPROVAL_NOT_FOUND"),
    (ErrorCode::Unavailable, "UNAVAILABLE"),
];

impl ErrorCode {
    /// As it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(code) => code,
            known => KNOWN.iter().find(|(code, _)| code == known).map_or("", |(_, name)| name),
        }
    }
}

impl From<String> for ErrorCode {
    fn from(code: String) -> Self {
        let known = KNOWN.into_iter().find(|(_, name)| *name == code);
        known.map_or(Self::Other(code), |(code, _)| code)
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> Self {
        code.as_str().to_owned()
    }
}

/// What a request fails with.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorShape {
    /// What kind of error.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
    /// For programs; often an object with a `code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<RawValue>>,
    /// Whether the same may work later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// How much later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl ErrorShape {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, retryable: None, retry_after_ms: None }
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// Something that it takes is not there now; it may be, later.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { retryable: Some(true), ..Self::new(ErrorCode::Unavailable, message) }
    }

    /// There is no such method.
    #[must_use]
    pub fn unknown_method(method: &str) -> Self {
        #[derive(Serialize)]
        struct Unknown<'a> {
            code: &'static str,
            method: &'a str,
        }
        Self::invalid(format!("{UNKNOWN_METHOD}{method}"))
            .with_details(&Unknown { code: detail::UNKNOWN_METHOD, method })
    }

    /// The same, with these details. What cannot be written as JSON is left out.
    #[must_use]
    pub fn with_details<T: Serialize>(mut self, details: &T) -> Self {
        self.details = to_raw_value(details).ok();
        self
    }

    /// The same, with `details.code`.
    #[must_use]
    pub fn with_detail(self, code: &str) -> Self {
        self.with_details(&Detail { code: code.to_owned() })
    }

    /// `details.code`, if there is one.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        let details = self.details.as_deref()?;
        serde_json::from_str(details.get()).ok().map(|Detail { code }| code)
    }

    /// Whether the gateway has no such method. The Node gateway has no code for it, only these words:
    /// it is the one place where a message decides.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        self.code == ErrorCode::InvalidRequest
            && (self.message.starts_with(UNKNOWN_METHOD)
                || self.detail().as_deref() == Some(detail::UNKNOWN_METHOD))
    }
}

/// How the message begins, here and in the Node gateway.
const UNKNOWN_METHOD: &str = "unknown method: ";

#[derive(Serialize, Deserialize)]
struct Detail {
    code: String,
}

impl fmt::Display for ErrorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ErrorShape {}
