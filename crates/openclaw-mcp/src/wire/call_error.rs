//! Why a call has no result.

use std::time::Duration;

use serde_json::value::RawValue;

use super::Closed;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server answered with an error, here as raw JSON.
    #[error("the server answered with an error")]
    Rpc(Box<RawValue>),
    /// It took too long; the server has been told.
    #[error("timed out after {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The connection is closed.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// Far too many calls wait for this server.
    #[error("too many calls wait for this server")]
    Busy,
    /// The server wants to know who is calling (401).
    #[error("the server wants authorization")]
    NeedsAuth {
        /// Its `WWW-Authenticate`. From outside.
        challenge: Option<String>,
    },
    /// The server knows who is calling and refuses (403).
    #[error("the server refuses access")]
    Forbidden {
        /// Its `WWW-Authenticate`. From outside.
        challenge: Option<String>,
    },
    /// There were too many calls of late (429).
    #[error("the server is being called too often{}", again(.retry_after))]
    RateLimited {
        /// When to try again.
        retry_after: Option<Duration>,
    },
    /// The server is out of service, and says until when (503).
    #[error("the server is not available for now (503){}", again(&Some(*.retry_after)))]
    OutOfService {
        /// When to try again.
        retry_after: Duration,
    },
    /// The server answered with another status that means failure.
    #[error("the server answered with HTTP status {status}{}", quoted(.body))]
    Http {
        /// The status.
        status: u16,
        /// The beginning of what it said, made printable. From outside.
        body: String,
    },
    /// The server's answer is no JSON.
    #[error("the server's answer cannot be read, it is not valid JSON{}", quoted(.body))]
    Unreadable {
        /// Its beginning, made printable, if that says something. From outside.
        body: String,
    },
    /// The server answers in a way that cannot be used, whatever it says.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// What the server sent does not make sense.
    #[error("{0}")]
    Protocol(String),
    /// The server sends us to another origin, where its credentials must not go.
    #[error("the server redirects to {to}")]
    Redirected {
        /// That origin.
        to: String,
    },
    /// The server wants something first that was not given to it.
    #[error("the server asked for {0}")]
    AskedFor(String),
    /// The server cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

impl CallError {
    /// When to try again, if the server says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after } => *retry_after,
            Self::OutOfService { retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}

fn again(retry_after: &Option<Duration>) -> String {
    retry_after.map(|after| format!("; try again in {} s", after.as_secs())).unwrap_or_default()
}

fn quoted(body: &str) -> String {
    if body.is_empty() { String::new() } else { format!(": {body}") }
}

/// Why an answer cannot be used, whatever is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Nobody asked for that, and nobody unpacks it.
    #[error("the server compressed its answer ({encoding}), which it was not asked to")]
    Compressed {
        /// How. From outside.
        encoding: String,
    },
    /// The answer is too large.
    #[error("the answer has more than {mib} MiB")]
    TooLarge {
        /// What is allowed.
        mib: usize,
    },
    /// One event of a stream is too large.
    #[error("the server sent an event of more than {mib} MiB")]
    EventTooLarge {
        /// What is allowed.
        mib: usize,
    },
    /// There is no answer among all that came.
    #[error("the server sends and sends, but no answer")]
    Endless,
    /// There is nothing in the answer.
    #[error("the server's answer is empty")]
    Empty,
    /// The server sends us on and on, within its origin.
    #[error("the server redirects more than {times} times")]
    RedirectedTooOften {
        /// What is allowed.
        times: usize,
    },
}

/// A server that cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}: {cause}")]
pub struct Unreachable {
    /// At which step.
    pub problem: ReachProblem,
    /// What exactly went wrong.
    pub cause: String,
}

/// What can go wrong on the way to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReachProblem {
    /// The name of the host is not known.
    #[error("the host name cannot be resolved")]
    Dns,
    /// There is nobody at this address.
    #[error("no connection")]
    Connect,
    /// Nobody answered in time.
    #[error("no connection in time")]
    ConnectTimedOut,
    /// The certificate comes from an authority that is not trusted here.
    #[error("the certificate's issuer is not trusted")]
    UnknownIssuer,
    /// The certificate has expired or is not valid yet.
    #[error("the certificate is not valid at this time")]
    Expired,
    /// The certificate is for another host.
    #[error("the certificate is for another host")]
    WrongName,
    /// The certificate is that of an authority, which no server may use.
    #[error("the certificate is that of an authority (CA)")]
    CaAsServer,
    /// Something else is wrong with the certificate.
    #[error("the certificate is not accepted")]
    Certificate,
    /// TLS failed in another way.
    #[error("no secure connection")]
    Tls,
    /// The proxy cannot be reached or refuses.
    #[error("no connection through the proxy")]
    Proxy,
    /// The connection broke before there was an answer.
    #[error("the connection broke")]
    Broken,
}
