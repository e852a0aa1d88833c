//! Whether somebody must agree before a tool runs (B9, B13), and who that is.

use std::fmt;
use std::str::FromStr;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::spec::{Effect, ToolSpec};

/// Which calls of a tool need an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalRule {
    /// Those that may change something, unless the tool was approved for good.
    #[default]
    Auto,
    /// Every call.
    Always,
    /// None.
    Never,
}

/// What was approved of a tool before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// Nothing.
    New,
    /// The tool as it is.
    Same {
        /// Whether it may be called without asking from then on.
        for_good: bool,
    },
    /// The tool as it was: it says something else about itself now.
    Changed,
}

/// What a tool says about itself, as one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint with these bytes: the SHA-256 of a description.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 64 hexadecimal digits")]
pub struct BadFingerprint;

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        if text.len() != 64 || !text.is_ascii() {
            return Err(BadFingerprint);
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let digits = text.get(2 * at..2 * at + 2).ok_or(BadFingerprint)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| BadFingerprint)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Whether a tool may run as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It may.
    Free,
    /// Somebody must agree first.
    Ask(Why),
}

impl Standing {
    /// Whether a call needs an approval, by the rule for the tool, what it does to the world, and what was
    /// approved of it before.
    pub const fn of(rule: ApprovalRule, effect: Effect, pin: Pin) -> Self {
        match (rule, pin) {
            (_, Pin::Changed) => Self::Ask(Why::Changed),
            (ApprovalRule::Never, _) | (ApprovalRule::Auto, Pin::Same { for_good: true }) => {
                Self::Free
            }
            (ApprovalRule::Always, _) => Self::Ask(Why::EachTime),
            (ApprovalRule::Auto, _) if matches!(effect, Effect::ReadOnly) => Self::Free,
            (ApprovalRule::Auto, _) => Self::Ask(Why::MayChange),
        }
    }
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

/// What holds where nobody can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// What needs an approval is not done.
    #[default]
    Deny,
    /// It is done, and reported; not so for a tool that has changed since it was approved.
    Allow,
}

/// Nobody is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _: Question<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::ready(Answer::Nobody))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: [Pin; 2] = [Pin::New, Pin::Same { for_good: false }];

    #[test]
    fn a_tool_that_only_looks_runs_unasked_unless_every_call_is_asked_about() {
        for pin in NOTHING {
            let auto = Standing::of(ApprovalRule::Auto, Effect::ReadOnly, pin);
            assert_eq!(auto, Standing::Free);
            let never = Standing::of(ApprovalRule::Never, Effect::Destructive, pin);
            assert_eq!(never, Standing::Free);
        }
        let free = Pin::Same { for_good: true };
        let asked = Standing::of(ApprovalRule::Always, Effect::ReadOnly, free);
        assert_eq!(asked, Standing::Ask(Why::EachTime));
    }

    #[test]
    fn what_may_change_something_is_asked_about_until_it_is_approved_for_good() {
        for effect in [Effect::Unknown, Effect::Destructive] {
            for pin in NOTHING {
                let asked = Standing::of(ApprovalRule::Auto, effect, pin);
                assert_eq!(asked, Standing::Ask(Why::MayChange));
            }
            let free = Pin::Same { for_good: true };
            assert_eq!(Standing::of(ApprovalRule::Auto, effect, free), Standing::Free);
        }
    }

    #[test]
    fn a_changed_tool_is_asked_about_whatever_the_rule() {
        for rule in [ApprovalRule::Auto, ApprovalRule::Always, ApprovalRule::Never] {
            let asked = Standing::of(rule, Effect::ReadOnly, Pin::Changed);
            assert_eq!(asked, Standing::Ask(Why::Changed));
        }
    }

    #[test]
    fn a_fingerprint_is_written_as_it_is_read() {
        let text = "0f".repeat(32);
        let fingerprint: Fingerprint = text.parse().unwrap();
        assert_eq!(fingerprint.to_string(), text);
        for bad in ["", "0f", &"zz".repeat(32), &"é".repeat(32)] {
            assert_eq!(bad.parse::<Fingerprint>(), Err(BadFingerprint));
        }
    }
}
