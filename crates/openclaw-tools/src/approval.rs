//! Whether somebody must agree before a tool runs (B9, B13), and who that is.

use std::fmt;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;

use crate::spec::ToolSpec;

/// Whether a tool may run as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Free,
    /// Somebody must agree first.
    Ask(Why),
}

/// Why somebody must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// It may change something, and nobody has allowed that for good.
    MayChange,
    /// The configuration wants every call of it to be asked about.
    EachTime,
    /// It says something else about itself than when it was approved.
    Changed,
}

impl Why {
    /// The stable name, as in events and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MayChange => "may-change",
            Self::EachTime => "each-time",
            Self::Changed => "changed",
        }
    }

    /// Whether an answer may hold for the calls to come.
    pub const fn can_last(self) -> bool {
        !matches!(self, Self::EachTime)
    }
}

/// How somebody agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// To this call.
    Once,
    /// To this call and all others of the tool, as long as it stays what it is.
    Always,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The tool.
    pub tool: &'a ToolSpec,
    /// What it would be called with.
    pub arguments: &'a RawValue,
    /// Why it is asked.
    pub why: Why,
    /// The session that the call belongs to.
    pub session: Option<&'a str>,
}

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Somebody agreed.
    Yes(Approval),
    /// Somebody did not.
    No,
    /// Nobody was there to answer, or nobody did in time.
    Nobody,
}

/// Somebody who can be asked.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Asks, and waits for the answer; how long is the approver's business. Dropping the future takes the
    /// question back.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer>;
}

/// Nobody is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _: Question<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::ready(Answer::Nobody))
    }
}
