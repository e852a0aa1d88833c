//! A call, and the context in which it is made.

use std::sync::OnceLock;
use std::time::Instant;

use super::arguments::Given;
use crate::approval::{Approver, Fallback, Fingerprint};
use crate::progress::Watcher;

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The name of the tool, as its caller knows it.
    pub name: &'a str,
    /// The arguments.
    pub arguments: Given<'a>,
}

impl<'a> Call<'a> {
    /// A call of the tool of this name.
    pub fn new(name: &'a str, arguments: impl Into<Given<'a>>) -> Self {
        Self { name, arguments: arguments.into() }
    }
}

/// Who calls, for whom, and who decides about it.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    /// The agent.
    pub agent: Option<&'a str>,
    /// The session that the call belongs to.
    pub session: Option<&'a str>,
    /// Who calls, for the audit log.
    pub who: &'a str,
    /// Who approves calls that need it.
    pub consent: Consent<'a>,
    /// What the caller wants besides.
    pub options: CallOptions<'a>,
    /// Set when the call is executed, for a caller that may drop it.
    pub begun: Option<&'a OnceLock<Instant>>,
}

impl<'a> CallContext<'a> {
    /// A caller that decides by calling, without a session.
    pub fn by_hand(who: &'a str) -> Self {
        let consent = Consent::Caller { seen: None, approves_change: false };
        let options = CallOptions::default();
        Self { agent: None, session: None, who, consent, options, begun: None }
    }
}

/// Who approves calls that need it.
#[derive(Debug, Clone, Copy)]
pub enum Consent<'a> {
    /// The approver is asked.
    Ask {
        /// The approver.
        approver: &'a dyn Approver,
        /// What holds where nobody answers.
        fallback: Fallback,
    },
    /// The caller may decide, and does so by calling. A tool that has changed since it was approved is called only if
    /// the caller has seen it as it is and says so.
    Caller {
        /// What the caller has seen; another tool is not called.
        seen: Option<Fingerprint>,
        /// Whether the caller approves a tool that has changed.
        approves_change: bool,
    },
}

/// What a caller wants besides a result. An agent wants nothing of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallOptions<'a> {
    /// Reports how far the call has got.
    pub watcher: Option<&'a Watcher>,
    /// When the call must be over, in place of the usual time limit. Waiting for a server counts.
    pub deadline: Option<tokio::time::Instant>,
    /// All that is in the result: no text is cut, and beside what a model sees, the details hold its
    /// structured content and its binary resources.
    pub everything: bool,
    /// No more than so many characters of text.
    pub max_chars: Option<usize>,
}
