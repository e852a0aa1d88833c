//! Failures are outcomes, too, in plain words (B7).
//!
//! What a server says about its failure comes from outside: it is wrapped, and never in our words.

use std::time::Duration;

use openclaw_content::{Source, Untrusted, clean_line};
use openclaw_tools::{Content, Details, Failure, ModelText, ToolOutcome};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::gather::Rest;
use super::present::present;
use super::text::{Token, without_needless_escapes};
use super::{Origin, Place, ResultLimits};
use crate::limiter::{AskedBy, RetryAfter};
use crate::schema::Violations;
use crate::wire::CallError;

/// How much of an error's text is shown.
const MAX_ERROR_CHARS: usize = 4_000;
/// How much of a server's name.
const MAX_NAME: usize = 64;

/// Why there is no answer. Texts in it are words of our own.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem<'a> {
    /// The server cannot be reached; why, and what can be done.
    Unavailable(&'a str),
    /// The server did not answer in time.
    TimedOut(Duration),
    /// Too many calls wait for the server.
    Busy,
    /// The server broke the protocol; how.
    Protocol(&'a str),
    /// What the server sent is no answer.
    InvalidResponse,
    /// It is not allowed; by what.
    Denied(&'a str),
    /// There were too many calls.
    RateLimited(RetryAfter),
    /// The arguments do not fit the tool.
    InvalidArguments(&'a Violations),
    /// The machine gives no random numbers, without which no boundary can be made.
    NoBoundary,
}

impl Problem<'_> {
    /// Its kind.
    pub fn kind(&self) -> Failure {
        match self {
            Self::Unavailable(_) | Self::Busy => Failure::Unavailable,
            Self::TimedOut(_) => Failure::TimedOut,
            Self::Protocol(_) | Self::NoBoundary => Failure::Protocol,
            Self::InvalidResponse => Failure::InvalidResponse,
            Self::Denied(_) => Failure::Denied,
            Self::RateLimited(_) => Failure::RateLimited,
            Self::InvalidArguments(_) => Failure::InvalidArguments,
        }
    }

    fn words(&self, server: &str) -> String {
        let server = clean_line(Untrusted::new(server), MAX_NAME);
        match self {
            Self::Unavailable(why) => format!("MCP server '{server}' is not available: {why}."),
            Self::TimedOut(after) => {
                format!(
                    "The call timed out after {} ms. MCP server '{server}' was told to stop; whether \
                     it has done something before is not known.",
                    after.as_millis()
                )
            }
            Self::Busy => {
                format!("Too many calls wait for MCP server '{server}'. Try again later.")
            }
            Self::Protocol(how) => format!("MCP server '{server}' broke the protocol: {how}."),
            Self::InvalidResponse => {
                format!("MCP server '{server}' sent an invalid response: it is no result.")
            }
            Self::Denied(why) => format!("This call is not allowed: {why}."),
            Self::RateLimited(retry) => {
                let who = match retry.asked_by {
                    AskedBy::Us => "There were too many calls to",
                    AskedBy::Server => "Fewer calls are wanted by",
                };
                let seconds = retry.after.as_secs() + u64::from(retry.after.subsec_nanos() > 0);
                format!("{who} MCP server '{server}'. Try again in {seconds} s.")
            }
            Self::InvalidArguments(violations) => {
                format!("The arguments do not fit this tool. Nothing was called.\n{violations}")
            }
            Self::NoBoundary => format!(
                "The answer of MCP server '{server}' cannot be shown: there are no random numbers \
                 for the boundary around it."
            ),
        }
    }
}

/// The outcome of a call without an answer.
pub fn failure(problem: &Problem<'_>, origin: Origin<'_>, duration: Duration) -> ToolOutcome {
    of(problem, &place(origin, duration))
}

/// The outcome of a call that failed on its way.
pub fn call_failure(error: &CallError, origin: Origin<'_>, duration: Duration) -> ToolOutcome {
    match error {
        CallError::Rpc(error) => rpc_failure(error, origin, duration),
        CallError::TimedOut(after) => failure(&Problem::TimedOut(*after), origin, duration),
        CallError::Closed(closed) => {
            failure(&Problem::Unavailable(&closed.to_string()), origin, duration)
        }
        CallError::Busy => failure(&Problem::Busy, origin, duration),
        CallError::AskedFor(_) => failure(&Problem::Protocol(&error.to_string()), origin, duration),
    }
}

#[derive(Deserialize)]
struct RpcError<'a> {
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// The outcome of a call that the server answered with an error.
pub fn rpc_failure(error: &RawValue, origin: Origin<'_>, duration: Duration) -> ToolOutcome {
    let place = place(origin, duration);
    let Ok(error) = serde_json::from_str::<RpcError<'_>>(error.get()) else {
        return of(&Problem::InvalidResponse, &place);
    };
    let server = clean_line(Untrusted::new(origin.server), MAX_NAME);
    let code = error.code.and_then(|code| code.get().parse::<i64>().ok());
    let words = match code {
        Some(code) => format!("MCP server '{server}' answered with an error (code {code})."),
        None => format!("MCP server '{server}' answered with an error."),
    };
    let mut text = error.message.and_then(Token::of).map(Token::decode).unwrap_or_default();
    if let Some(data) = error.data {
        let text = text.to_mut();
        text.push_str("\n[data] ");
        match Token::of(data) {
            Some(data) => data.decode_into(text),
            None => text.push_str(&without_needless_escapes(data.get())),
        }
    }
    let mut outcome = if text.is_empty() {
        of(&Problem::Protocol("its error says nothing"), &place)
    } else {
        let limits = ResultLimits { max_chars: MAX_ERROR_CHARS, ..ResultLimits::default() };
        present(&text, Rest::default(), &place, &limits)
    };
    outcome.content.insert(0, Content::Text(ModelText::ours(words)));
    outcome.is_error = true;
    outcome.details.failure = Some(Failure::Protocol);
    outcome
}

fn place<'a>(origin: Origin<'a>, duration: Duration) -> Place<'a> {
    Place {
        source: Source::McpTool { server: origin.server, tool: origin.tool },
        server: origin.server,
        item: origin.tool,
        tool: Some(origin.tool),
        spill: None,
        duration,
    }
}

/// The same, for any kind of request.
pub(super) fn of(problem: &Problem<'_>, place: &Place<'_>) -> ToolOutcome {
    let mut outcome = ToolOutcome::failure(problem.words(place.server));
    outcome.details = Details {
        untrusted: false,
        wrapped: false,
        failure: Some(problem.kind()),
        ..place.details()
    };
    outcome
}
