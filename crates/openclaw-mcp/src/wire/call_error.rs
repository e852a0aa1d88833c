//! Why a call has no result.

use std::time::Duration;

use serde_json::value::RawValue;

use super::Closed;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The server answered with an error, here as raw JSON.
    #[error("the server returned an error")]
    Rpc(Box<RawValue>),
    /// It took too long; the server has been told.
    #[error("timed out after {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The connection is closed.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// Far too many calls are queued for this server.
    #[error("too many calls are queued for this server")]
    Busy,
    /// The server wants to know who is calling (401).
    #[error("the server requires authorization")]
    NeedsAuth {
        /// Its `WWW-Authenticate`. From outside.
        challenge: Option<String>,
    },
    /// The server knows who is calling and refuses (403).
    #[error("the server denied access")]
    Forbidden {
        /// Its `WWW-Authenticate`. From outside.
        challenge: Option<String>,
    },
    /// There were too many calls of late (429).
    #[error("rate limited by the server{}", again(.retry_after))]
    RateLimited {
        /// When to try again.
        retry_after: Option<Duration>,
    },
    /// The server is out of service, and says until when (503).
    #[error("the server is temporarily unavailable (HTTP 503){}", again(&Some(*.retry_after)))]
    OutOfService {
        /// When to try again.
        retry_after: Duration,
    },
    /// The server answered with another status that means failure.
    #[error("the server returned HTTP {status}{}", quoted(.body))]
    Http {
        /// The status.
        status: u16,
        /// The beginning of what it said, made printable. From outside.
        body: String,
    },
    /// The server's answer is no JSON.
    #[error("the server's response is not valid JSON{}", quoted(.body))]
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
    #[error("the server requested {0}")]
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
    retry_after.map(|after| format!("; retry in {} s", after.as_secs())).unwrap_or_default()
}

fn quoted(body: &str) -> String {
    if body.is_empty() { String::new() } else { format!(": {body}") }
}

/// Why an answer cannot be used, whatever is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Nobody asked for that, and nobody unpacks it.
    #[error("the server compressed its response ({encoding}) without being asked to")]
    Compressed {
        /// How. From outside.
        encoding: String,
    },
    /// The answer is too large.
    #[error("the response is larger than {mib} MiB")]
    TooLarge {
        /// What is allowed.
        mib: usize,
    },
    /// One event of a stream is too large.
    #[error("the server sent an event larger than {mib} MiB")]
    EventTooLarge {
        /// What is allowed.
        mib: usize,
    },
    /// There is no answer among all that came.
    #[error("the server keeps sending messages, but no response")]
    Endless,
    /// There is nothing in the answer.
    #[error("the server's response is empty")]
    Empty,
    /// The server sends us on and on, within its origin.
    #[error("the server redirected more than {times} times")]
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
    #[error("cannot resolve the host name")]
    Dns,
    /// There is nobody at this address.
    #[error("cannot connect")]
    Connect,
    /// Nobody answered in time.
    #[error("connecting timed out")]
    ConnectTimedOut,
    /// The certificate comes from an authority that is not trusted here.
    #[error("the certificate's issuer is not trusted")]
    UnknownIssuer,
    /// The certificate has expired or is not valid yet.
    #[error("the certificate has expired or is not valid yet")]
    Expired,
    /// The certificate is for another host.
    #[error("the certificate is for another host")]
    WrongName,
    /// The certificate is that of an authority, which no server may use.
    #[error("the certificate is a CA certificate")]
    CaAsServer,
    /// Something else is wrong with the certificate.
    #[error("invalid certificate")]
    Certificate,
    /// TLS failed in another way.
    #[error("TLS error")]
    Tls,
    /// The proxy cannot be reached or refuses.
    #[error("cannot connect through the proxy")]
    Proxy,
    /// The connection broke before there was an answer.
    #[error("connection lost")]
    Broken,
}
