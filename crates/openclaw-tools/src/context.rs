//! A call, and the context in which it is made.

use std::sync::OnceLock;
use std::time::Instant;

use openclaw_trace::SpanContext;

use crate::approval::{Approver, Fallback, PermissionMode, ToolFingerprint};
use crate::arguments::Given;
use crate::progress::ProgressWatcher;

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Name of the tool, as the caller knows it.
    pub name: &'a str,
    /// The arguments.
    pub arguments: Given<'a>,
}

impl<'a> Call<'a> {
    /// Creates a call of the tool with this name.
    pub fn new(name: &'a str, arguments: impl Into<Given<'a>>) -> Self {
        Self { name, arguments: arguments.into() }
    }
}

/// Caller, session and approval of a call.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    /// The agent.
    pub agent: Option<&'a str>,
    /// Session of the call.
    pub session: Option<&'a str>,
    /// Caller, for the audit log.
    pub who: &'a str,
    /// Who approves calls that need it.
    pub consent: Consent<'a>,
    /// Options of the caller.
    pub options: CallOptions<'a>,
    /// Set when the call is executed, for a caller that may drop it.
    pub begun: Option<&'a OnceLock<Instant>>,
    /// The span that the call is a part of.
    pub trace: Option<&'a SpanContext>,
}

impl<'a> CallContext<'a> {
    /// A caller that approves by calling, without a session.
    pub fn by_hand(who: &'a str) -> Self {
        let consent = Consent::Caller { seen: None, approves_change: false };
        let options = CallOptions::default();
        Self { agent: None, session: None, who, consent, options, begun: None, trace: None }
    }
}

/// Who approves calls that need it.
#[derive(Debug, Clone, Copy)]
pub enum Consent<'a> {
    /// The approver is asked.
    Ask {
        /// The approver.
        approver: &'a dyn Approver,
        /// What to do if no user answers.
        fallback: Fallback,
    },
    /// The caller is entitled to decide, and approves by calling. A tool that has changed since it
    /// was approved is called only if the caller has seen its current definition and confirms that.
    Caller {
        /// Fingerprint seen by the caller; a tool with another one is not called.
        seen: Option<ToolFingerprint>,
        /// Whether the caller approves a changed tool.
        approves_change: bool,
    },
}

/// Options of a caller. Agents use the defaults, but for the watcher and the mode.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallOptions<'a> {
    /// Receives progress reports.
    pub watcher: Option<&'a ProgressWatcher>,
    /// Deadline of the call, instead of the usual timeout. Includes waiting for a server.
    pub deadline: Option<tokio::time::Instant>,
    /// Whether to return everything: no text is truncated, and the details also hold structured
    /// content and binary resources.
    pub everything: bool,
    /// Whether the configured rate limit of a source does not apply: it guards against models that
    /// loop, and a user makes this call.
    pub unlimited: bool,
    /// Maximum number of characters of text.
    pub max_chars: Option<usize>,
    /// The mode of the session, for calls of an agent.
    pub permission: PermissionMode,
    /// The client of the hub that the call is made for, which may have connections of its own.
    pub client: Option<CallClient>,
    /// Set if the caller passes the call on for a client of its own.
    pub relay: Option<Relay<'a>>,
}

/// A client of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallClient {
    /// Its number.
    pub number: u64,
    /// Whether several programs may be behind it, which are not told apart. On a connection of its own, it
    /// makes one call at a time: which one the server asks about is known then.
    pub is_shared: bool,
}

/// A call that is made for a client of another program (the hub). Its outcome has the source's
/// reply as JSON, [`OutcomeDetails::raw`](crate::OutcomeDetails::raw), instead of content for a model,
/// and the configured rate limit of a source does not apply: that is a guard against models that
/// loop.
#[derive(Debug, Clone, Copy)]
pub struct Relay<'a> {
    /// Whether the texts of a result get boundaries.
    pub wraps: bool,
    /// Further members of the request's parameters as JSON, without braces: input that the source
    /// has asked for.
    pub more: &'a str,
    /// The client's `_meta` as JSON members without braces, if it answers requests for input
    /// itself: such a request is then its reply, instead of being answered here (2026-07-28).
    pub meta: Option<&'a str>,
    /// Whether the client shows pages of MCP Apps: those get no boundaries, because no model reads them.
    pub shows_pages: bool,
    /// The members of the client's `_meta` that are not the protocol's own, for a source that gets
    /// our `_meta`, or none.
    pub extra: &'a str,
    /// The level of the log messages that the client wants, for a source that is told so with each
    /// call and not by our `_meta`.
    pub log_level: Option<&'a str>,
}
