//! Why a call failed.

use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_oauth::error::AuthError;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Closed;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server responded with an error, here as raw JSON.
    #[error("the server returned {}", rpc(.0))]
    Rpc(Box<RawValue>),
    /// The call timed out; a cancellation was sent to the server.
    #[error("timed out after {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The connection is closed.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// The limit of pending calls is reached.
    #[error("too many calls are queued for this server")]
    Busy,
    /// The server requires authorization (401).
    #[error("the server requires authorization")]
    NeedsAuth {
        /// The `WWW-Authenticate` header. Untrusted.
        challenge: Option<String>,
    },
    /// The authorization failed before the request could be sent, or after the server rejected it.
    #[error(transparent)]
    Auth(AuthError),
    /// The server denied access (403).
    #[error("the server denied access (403)")]
    Forbidden {
        /// The `WWW-Authenticate` header. Untrusted.
        challenge: Option<String>,
    },
    /// The server's rate limit is exceeded (429).
    #[error("rate limited by the server{}", again(.retry_after))]
    RateLimited {
        /// How long to wait before a retry.
        retry_after: Option<Duration>,
    },
    /// The server is temporarily unavailable and sent `Retry-After` (503).
    #[error("the server is temporarily unavailable (HTTP 503){}", again(&Some(*.retry_after)))]
    OutOfService {
        /// How long to wait before a retry.
        retry_after: Duration,
    },
    /// The server responded with another error status.
    #[error("the server returned HTTP {status}{}", quoted(.body))]
    Http {
        /// The status code.
        status: u16,
        /// The beginning of the body, sanitized. Untrusted.
        body: String,
    },
    /// The response is not valid JSON.
    #[error("the server's response is not valid JSON{}", quoted(.body))]
    Unreadable {
        /// The beginning of the body, sanitized; may be empty. Untrusted.
        body: String,
    },
    /// The response is unusable, whatever its content.
    #[error(transparent)]
    UnusableResponse(#[from] UnusableResponse),
    /// The server violated the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The server redirected to another origin, where credentials must not be sent, or redirected a
    /// POST in a way that loses its method.
    #[error("the server redirects to {to}")]
    Redirected {
        /// The origin or URL, without userinfo and query.
        to: String,
    },
    /// The server requested input that was not provided.
    #[error("the server requested {0}")]
    AskedFor(String),
    /// The call brings input along that the server cannot have requested. It was not sent.
    #[error("the server has not requested any input")]
    UnaskedInput,
    /// The server cancelled the task that executes the call.
    #[error("the server cancelled the task")]
    TaskCancelled,
    /// The server is unreachable.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

impl CallError {
    /// Whether the server has ended the call, or never got it: it will not ask about it any more.
    pub fn ends_work(&self) -> bool {
        match self {
            Self::Rpc(_)
            | Self::Busy
            | Self::NeedsAuth { .. }
            | Self::Auth(_)
            | Self::Forbidden { .. }
            | Self::RateLimited { .. }
            | Self::OutOfService { .. }
            | Self::Http { .. }
            | Self::Unreadable { .. }
            | Self::Redirected { .. }
            | Self::AskedFor(_)
            | Self::UnaskedInput
            | Self::TaskCancelled => true,
            Self::TimedOut(_)
            | Self::Closed(_)
            | Self::UnusableResponse(_)
            | Self::Protocol(_)
            | Self::Unreachable(_) => false,
        }
    }

    /// Returns how long to wait before a retry, if the server sent that.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after } => *retry_after,
            Self::OutOfService { retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}

fn again(retry_after: &Option<Duration>) -> String {
    retry_after.map(|after| format!("; retry in {} s", after.as_secs())).unwrap_or_default()
}

/// Describes a JSON-RPC error. Its message is untrusted, and sanitized to one line.
fn rpc(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct RpcError {
        code: i64,
        #[serde(default)]
        message: String,
    }
    match serde_json::from_str::<RpcError>(error.get()) {
        Ok(RpcError { code, message }) => {
            format!("error {code}{}", quoted(&clean_line(Untrusted::new(&message), 200)))
        }
        Err(_) => "an error that cannot be parsed".to_owned(),
    }
}

fn quoted(body: &str) -> String {
    if body.is_empty() { String::new() } else { format!(": {body}") }
}

/// Why a response is unusable, whatever its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableResponse {
    /// The response is compressed, which is neither requested nor supported.
    #[error("the server compressed its response ({encoding}) without being asked to")]
    Compressed {
        /// The content encoding. Untrusted.
        encoding: String,
    },
    /// The response is too large.
    #[error("the response is larger than {mib} MiB")]
    TooLarge {
        /// The limit, in MiB.
        mib: usize,
    },
    /// An event of a stream is too large.
    #[error("the server sent an event larger than {mib} MiB")]
    EventTooLarge {
        /// The limit, in MiB.
        mib: usize,
    },
    /// The stream reached its size limit without a response.
    #[error("the server keeps sending messages, but no response")]
    Endless,
    /// Responses of the server take too much memory.
    #[error("responses of this server take {} MiB of memory already", .most / 1024 / 1024)]
    TooManyBytes {
        /// The limit, in bytes.
        most: usize,
    },
    /// The response is empty.
    #[error("the server's response is empty")]
    Empty,
    /// Too many redirects within the server's origin.
    #[error("the server redirected more than {times} times")]
    RedirectedTooOften {
        /// The limit.
        times: usize,
    },
}

/// Why a server is unreachable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {cause}", failed_at(.problem, .address.as_deref()))]
pub struct Unreachable {
    /// The kind of failure.
    pub problem: ReachProblem,
    /// Host and port of the server, if known.
    pub address: Option<String>,
    /// The innermost cause.
    pub cause: String,
}

/// Describes a failure with the address, where it says more.
fn failed_at(problem: &ReachProblem, address: Option<&str>) -> String {
    match (problem, address) {
        // The cause says that it timed out.
        (ReachProblem::Connect | ReachProblem::ConnectTimedOut, Some(address)) => {
            format!("cannot connect to {address}")
        }
        (ReachProblem::Dns, Some(address)) => format!("cannot resolve the host name of {address}"),
        (problem, _) => problem.to_string(),
    }
}

/// The kinds of connection failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReachProblem {
    /// The host name cannot be resolved.
    #[error("cannot resolve the host name")]
    Dns,
    /// The connection was refused or failed.
    #[error("cannot connect")]
    Connect,
    /// Connecting timed out.
    #[error("connecting timed out")]
    ConnectTimedOut,
    /// The certificate's issuer is not trusted.
    #[error("the certificate's issuer is not trusted")]
    UnknownIssuer,
    /// The certificate has expired or is not valid yet.
    #[error("the certificate has expired or is not valid yet")]
    Expired,
    /// The certificate is for another host.
    #[error("the certificate is for another host")]
    WrongName,
    /// A CA certificate is used as server certificate.
    #[error("the certificate is a CA certificate")]
    CaAsServer,
    /// The certificate is invalid for another reason.
    #[error("invalid certificate")]
    Certificate,
    /// TLS failed in another way.
    #[error("TLS error")]
    Tls,
    /// The proxy is unreachable or refused the connection.
    #[error("cannot connect through the proxy")]
    Proxy,
    /// The connection broke before the response.
    #[error("connection lost")]
    Broken,
}
