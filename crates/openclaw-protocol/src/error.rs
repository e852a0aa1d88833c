//! Errors of requests.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_with::skip_serializing_none;

/// Values of `details.code`, more specific than the error's own code.
pub mod detail {
    /// No token was sent.
    pub const AUTH_TOKEN_MISSING: &str = "AUTH_TOKEN_MISSING";
    /// The token is wrong.
    pub const AUTH_TOKEN_MISMATCH: &str = "AUTH_TOKEN_MISMATCH";
    /// Too many wrong tokens.
    pub const AUTH_RATE_LIMITED: &str = "AUTH_RATE_LIMITED";
    /// The two sides have no protocol version in common.
    pub const PROTOCOL_MISMATCH: &str = "PROTOCOL_MISMATCH";
    /// The device is not paired yet. Of the Node gateway.
    pub const PAIRING_REQUIRED: &str = "PAIRING_REQUIRED";
    /// A device identity is required. Of the Node gateway.
    pub const DEVICE_IDENTITY_REQUIRED: &str = "DEVICE_IDENTITY_REQUIRED";
    /// The caller lacks the required scope.
    pub const MISSING_SCOPE: &str = "MISSING_SCOPE";
    /// Unknown agent.
    pub const UNKNOWN_AGENT_ID: &str = "UNKNOWN_AGENT_ID";
    /// The connection was lost before the response arrived. Set by the client itself.
    pub const CONNECTION_LOST: &str = "CONNECTION_LOST";
    /// The request timed out. Set by the client itself.
    pub const TIMED_OUT: &str = "TIMED_OUT";
    /// Unknown method. Ours: the Node gateway reports it only in the message.
    pub const UNKNOWN_METHOD: &str = "UNKNOWN_METHOD";
    /// Unknown MCP server. Ours, as are those below.
    pub const UNKNOWN_SERVER: &str = "UNKNOWN_SERVER";
    /// Unknown tool or prompt.
    pub const UNKNOWN_TOOL: &str = "UNKNOWN_TOOL";
    /// The MCP server is currently unavailable.
    pub const SERVER_UNAVAILABLE: &str = "SERVER_UNAVAILABLE";
    /// The tool definition has changed since it was first seen or approved.
    pub const TOOL_CHANGED: &str = "TOOL_CHANGED";
    /// The tool is listed but cannot be called.
    pub const TOOL_UNUSABLE: &str = "TOOL_UNUSABLE";
    /// The gateway is stopping.
    pub const STOPPING: &str = "STOPPING";
    /// The user must log in at a server.
    pub const NEEDS_LOGIN: &str = "NEEDS_LOGIN";
}

/// Error code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ErrorCode {
    /// No account is linked (old gateways).
    NotLinked,
    /// The device is not paired yet.
    NotPaired,
    /// The agent timed out (old gateways).
    AgentTimeout,
    /// The request is invalid, or cannot be served in the current state.
    InvalidRequest,
    /// The caller is not allowed to do that.
    Forbidden,
    /// No such approval is pending.
    ApprovalNotFound,
    /// A dependency is currently unavailable.
    Unavailable,
    /// An unknown code.
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
    /// Returns the code as it appears on the wire.
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

/// The error of a failed request.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorShape {
    /// Error code.
    pub code: ErrorCode,
    /// Message for users.
    pub message: String,
    /// Details for programs; often an object with a `code`.
    pub details: Option<Box<RawValue>>,
    /// Whether a retry may succeed.
    pub retryable: Option<bool>,
    /// Delay before a retry, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl ErrorShape {
    /// Creates an error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, retryable: None, retry_after_ms: None }
    }

    /// Creates an error for an invalid request.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// Creates a retryable error for an unavailable dependency.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { retryable: Some(true), ..Self::new(ErrorCode::Unavailable, message) }
    }

    /// Creates an error for an unknown method.
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

    /// Creates an error for a caller that lacks a scope, which `what` needs.
    #[must_use]
    pub fn missing_scope(what: &str, scope: &str) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Missing<'a> {
            code: &'static str,
            missing_scope: &'a str,
            required_scopes: [&'a str; 1],
        }
        Self::new(ErrorCode::Forbidden, format!("`{what}` needs the scope `{scope}`")).with_details(
            &Missing {
                code: detail::MISSING_SCOPE,
                missing_scope: scope,
                required_scopes: [scope],
            },
        )
    }

    /// Creates an error for an unknown agent.
    #[must_use]
    pub fn unknown_agent(id: &str) -> Self {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Unknown<'a> {
            code: &'static str,
            agent_id: &'a str,
        }
        Self::invalid(format!("unknown agent `{id}`"))
            .with_details(&Unknown { code: detail::UNKNOWN_AGENT_ID, agent_id: id })
    }

    /// Sets the details. Details that cannot be serialized are dropped.
    #[must_use]
    pub fn with_details<T: Serialize>(mut self, details: &T) -> Self {
        self.details = to_raw_value(details).ok();
        self
    }

    /// Sets `details.code`.
    #[must_use]
    pub fn with_detail(self, code: &str) -> Self {
        self.with_details(&Detail { code: code.to_owned() })
    }

    /// Returns `details.code`, if present.
    #[must_use]
    pub fn detail(&self) -> Option<String> {
        let details = self.details.as_deref()?;
        serde_json::from_str(details.get()).ok().map(|Detail { code }| code)
    }

    /// Returns `details.requestId`: what an operator of the gateway must approve first.
    #[must_use]
    pub fn request_id(&self) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Requested {
            request_id: String,
        }
        let details = self.details.as_deref()?;
        serde_json::from_str(details.get()).ok().map(|Requested { request_id }| request_id)
    }

    /// Returns whether the gateway does not know the method. The Node gateway has no code for it,
    /// only a message: this is the one place where a message is matched.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        self.code == ErrorCode::InvalidRequest
            && (self.message.starts_with(UNKNOWN_METHOD)
                || self.detail().as_deref() == Some(detail::UNKNOWN_METHOD))
    }
}

/// Prefix of the message, here and in the Node gateway.
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
