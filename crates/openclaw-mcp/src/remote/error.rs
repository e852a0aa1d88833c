//! Why there is no connection, and what to do about it.

use std::fmt;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};

use super::RemotePlan;
use crate::local;
use crate::wire::{CallError, ReachProblem, Unreachable};

/// The steps of connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Finding out which protocol the server speaks.
    Discovering,
    /// The handshake.
    Initializing,
    /// Opening the stream of the transport of 2024-11-05.
    OpeningStream,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discovering => "finding out which protocol it speaks",
            Self::Initializing => "initializing",
            Self::OpeningStream => "opening its stream of events",
        })
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A setting cannot be used.
    #[error("{setting} cannot be used: {cause}")]
    Setting {
        /// Which.
        setting: String,
        /// Why.
        cause: String,
    },
    /// The server cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// It did not answer in time.
    #[error("no answer after {} ms while {step}", .after.as_millis())]
    TimedOut {
        /// What it was doing.
        step: Step,
        /// After how long.
        after: Duration,
    },
    /// The server wants to know who is calling (401).
    #[error("the server wants authorization")]
    NeedsAuth {
        /// The server's name.
        server: String,
        /// Its `WWW-Authenticate`. From outside.
        challenge: Option<String>,
    },
    /// The server knows who is calling and refuses (403).
    #[error("the server refuses access")]
    Forbidden {
        /// Its `WWW-Authenticate`. From outside.
        challenge: Option<String>,
    },
    /// There were too many requests of late.
    #[error(transparent)]
    RateLimited(CallError),
    /// The server is somewhere else.
    #[error("the server redirects to {to}")]
    Redirected {
        /// There.
        to: String,
    },
    /// Whoever answers is no MCP server.
    #[error("this is not how an MCP server answers: {cause}")]
    NotMcp {
        /// What was wrong.
        cause: String,
    },
    /// The server insists on a version that nobody knows.
    #[error("the server speaks a version of the protocol that is not known: {version}")]
    UnknownVersion {
        /// Which. From outside.
        version: String,
    },
    /// The server answered, but with a refusal.
    #[error("{cause} while {step}")]
    Refused {
        /// What it was doing.
        step: Step,
        /// What was wrong.
        cause: String,
    },
}

impl RemoteError {
    /// What became of a step.
    pub(super) fn of(plan: &RemotePlan, step: Step, error: CallError) -> Self {
        match error {
            CallError::NeedsAuth { challenge } => {
                Self::NeedsAuth { server: plan.server.clone(), challenge }
            }
            CallError::Forbidden { challenge } => Self::Forbidden { challenge },
            CallError::RateLimited { .. } => Self::RateLimited(error),
            CallError::Redirected { to } => Self::Redirected { to: clean(&to) },
            CallError::Unreachable(unreachable) => Self::Unreachable(unreachable),
            CallError::TimedOut(after) => Self::TimedOut { step, after },
            CallError::Protocol(cause) => Self::NotMcp { cause: clean(&cause) },
            CallError::Rpc(error) => {
                Self::Refused { step, cause: local::rpc_refusal(&error, &plan.log) }
            }
            error => Self::Refused { step, cause: clean(&error.to_string()) },
        }
    }

    /// What to do about it, where that can be told.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NeedsAuth { .. } => {
                "set `apiKey` or `headers` of this server (logging in comes in a later version)"
            }
            Self::Redirected { to } => {
                return Some(format!("if you trust it, set `url` of this server to one at {to}"));
            }
            Self::Unreachable(unreachable) => match unreachable.problem {
                ReachProblem::Dns => "check the host name in `url`, and the network",
                ReachProblem::Connect | ReachProblem::Broken => {
                    "check host and port in `url`, and whether the server runs"
                }
                ReachProblem::ConnectTimedOut => {
                    "check the network; behind a firewall, a `proxy` may be needed"
                }
                ReachProblem::UnknownIssuer => {
                    "if the server has a certificate of your own authority, set `tls.caFile`"
                }
                ReachProblem::Expired => {
                    "check the clock of this machine; otherwise the server needs a new certificate"
                }
                ReachProblem::WrongName => "check the host name in `url`",
                ReachProblem::Tls => {
                    "check whether the port in `url` is one for https, and `tls.clientCert`"
                }
                ReachProblem::Proxy => "check `proxy`, `HTTPS_PROXY` and `NO_PROXY`",
            },
            Self::TimedOut { .. } => {
                "check whether the server is well; a longer `timeout` allows it more time"
            }
            Self::Forbidden { .. } => "check what the key or token of this server may do",
            Self::RateLimited(_) => "wait, or call less often",
            Self::NotMcp { .. } => "check the path in `url`: many servers want `/mcp` or `/sse`",
            Self::UnknownVersion { .. } => "a newer version of this program may know it",
            Self::Refused { .. } => "check the path in `url`, and the log of the server",
            Self::Setting { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// What may quote the server: one clean line.
fn clean(text: &str) -> String {
    clean_line(Untrusted::new(text), 300)
}
