//! Whether a tool call needs an approval (B9, B13), and who gives it.

use std::fmt;
use std::str::FromStr;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::arguments::Arguments;
use crate::grant::{AlwaysOption, GrantRule};
use crate::spec::{ToolEffect, ToolSpec};

/// Which calls of a tool need an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalRule {
    /// Those that may change something, unless the tool was approved permanently.
    #[default]
    Auto,
    /// Every call.
    Always,
    /// None.
    Never,
    /// This call, whatever was approved before: its address was not listed by the server.
    Unlisted,
}

/// A call, as far as its approval depends on it.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalContext<'a> {
    /// The arguments.
    pub arguments: &'a Arguments<'a>,
    /// The session.
    pub session: Option<&'a str>,
    /// Start of the call.
    pub now: Instant,
}

/// Which definition of a tool was seen or approved before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// None.
    New,
    /// The current definition.
    Same {
        /// Whether this call was approved permanently.
        for_good: bool,
    },
    /// An earlier definition: it has changed since.
    Changed,
}

/// A hash of a tool's definition.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ToolFingerprint([u8; 32]);

impl ToolFingerprint {
    /// Creates a fingerprint from a SHA-256 hash.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for ToolFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ToolFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a valid fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 64 hexadecimal digits")]
pub struct BadFingerprint;

impl FromStr for ToolFingerprint {
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

impl Serialize for ToolFingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ToolFingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Whether a call needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalNeed {
    /// It does not.
    Free,
    /// The user must agree first.
    Ask(ApprovalReason),
}

impl ApprovalNeed {
    /// Decides by the tool's rule, its side effects, and what was approved before.
    pub const fn of(rule: ApprovalRule, effect: ToolEffect, pin: Pin) -> Self {
        match (rule, pin) {
            (_, Pin::Changed) => Self::Ask(ApprovalReason::Changed),
            (ApprovalRule::Unlisted, _) => Self::Ask(ApprovalReason::Unlisted),
            (ApprovalRule::Never, _) | (ApprovalRule::Auto, Pin::Same { for_good: true }) => {
                Self::Free
            }
            (ApprovalRule::Always, _) => Self::Ask(ApprovalReason::EachTime),
            (ApprovalRule::Auto, _) if matches!(effect, ToolEffect::ReadOnly) => Self::Free,
            (ApprovalRule::Auto, _) => Self::Ask(ApprovalReason::MayChange),
        }
    }
}

/// How strict a session is about calls, beyond the configuration. No mode allows more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PermissionMode {
    /// As configured.
    #[default]
    Configured,
    /// Every call that may change something needs an approval, whatever was approved before.
    Guarded,
    /// Calls that may change something are refused.
    ReadOnly,
}

impl PermissionMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Configured, Self::Guarded, Self::ReadOnly];

    /// Returns the stable name; `None` for the mode that is used if none is set.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Configured => None,
            Self::Guarded => Some("guarded"),
            Self::ReadOnly => Some("read-only"),
        }
    }

    /// Returns the mode with this name.
    pub fn from_name(name: Option<&str>) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Returns what a call needs in this mode; `None` if it is refused.
    pub const fn applied(self, need: ApprovalNeed, effect: ToolEffect) -> Option<ApprovalNeed> {
        match (self, need, effect) {
            (Self::Configured, ..) | (_, _, ToolEffect::ReadOnly) => Some(need),
            (Self::Guarded, ApprovalNeed::Free, _) => {
                Some(ApprovalNeed::Ask(ApprovalReason::EachTime))
            }
            (Self::Guarded, ApprovalNeed::Ask(_), _) => Some(need),
            (Self::ReadOnly, ..) => None,
        }
    }
}

/// Why a call needs an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApprovalReason {
    /// It may change something, and was not approved permanently.
    MayChange,
    /// The configuration requires an approval for every call.
    EachTime,
    /// The tool's definition has changed since it was first seen or approved.
    Changed,
    /// The address was not listed by the server.
    Unlisted,
}

impl ApprovalReason {
    /// Returns the stable name used in events and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MayChange => "may-change",
            Self::EachTime => "each-time",
            Self::Changed => "changed",
            Self::Unlisted => "unlisted",
        }
    }

    /// Returns whether an approval may apply to later calls.
    pub const fn can_last(self) -> bool {
        !matches!(self, Self::EachTime | Self::Unlisted)
    }

    /// Returns whether the configured fallback may allow the call when no user answers.
    pub const fn can_fall_back(self) -> bool {
        !matches!(self, Self::Changed | Self::Unlisted)
    }
}

/// A change of a tool that is too large for a question: what cannot be shown is not approved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tool's description or schema has changed in more than a question can show")]
pub struct ChangeTooLarge {
    /// What the user does to approve it instead.
    pub review: String,
}

/// The extent of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalExtent {
    /// This call.
    Once,
    /// This call and all later ones that the grant covers, until the tool's definition changes.
    Always(GrantRule),
}

/// A request for an approval.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalRequest<'a> {
    /// The tool.
    pub tool: &'a ToolSpec,
    /// The arguments of the call.
    pub arguments: &'a RawValue,
    /// Why the approval is needed.
    pub why: ApprovalReason,
    /// Session of the call.
    pub session: Option<&'a str>,
    /// The approvals for later calls that the user may choose, the default first.
    pub always: &'a [AlwaysOption],
    /// For a changed tool: what has changed since it was seen or approved, as lines that begin with
    /// `+` or `-`. Empty if that is not known. Untrusted.
    pub changes: &'a [String],
}

/// The answer to a [`ApprovalRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Approved.
    Yes(ApprovalExtent),
    /// Denied.
    No,
    /// Denied, with the user's words to the model: what to do instead.
    Instead(String),
    /// No user was there to answer, or none did in time.
    Unanswered,
    /// The user's client could not ask, or the user dismissed the question.
    NotAsked,
    /// Nobody was asked who may approve it. The words say so, and who may.
    NotEntitled(String),
}

/// A channel for asking the user.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Asks and waits for the answer; the approver sets the timeout. Dropping the future withdraws
    /// the question.
    fn ask<'a>(&'a self, question: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer>;
}

/// What to do with a call that needs an approval when no user can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// Deny it.
    #[default]
    Deny,
    /// Allow it with a warning, unless the tool has changed, or the address was not listed.
    Allow,
}

/// An approver without a user.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoApprover;

impl Approver for NoApprover {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::Unanswered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: [Pin; 2] = [Pin::New, Pin::Same { for_good: false }];

    #[test]
    fn a_tool_that_only_looks_runs_unasked_unless_every_call_is_asked_about() {
        for pin in NOTHING {
            let auto = ApprovalNeed::of(ApprovalRule::Auto, ToolEffect::ReadOnly, pin);
            assert_eq!(auto, ApprovalNeed::Free);
            let never = ApprovalNeed::of(ApprovalRule::Never, ToolEffect::Destructive, pin);
            assert_eq!(never, ApprovalNeed::Free);
        }
        let free = Pin::Same { for_good: true };
        let asked = ApprovalNeed::of(ApprovalRule::Always, ToolEffect::ReadOnly, free);
        assert_eq!(asked, ApprovalNeed::Ask(ApprovalReason::EachTime));
    }

    #[test]
    fn what_may_change_something_is_asked_about_until_it_is_approved_for_good() {
        for effect in [ToolEffect::Unknown, ToolEffect::Destructive] {
            for pin in NOTHING {
                let asked = ApprovalNeed::of(ApprovalRule::Auto, effect, pin);
                assert_eq!(asked, ApprovalNeed::Ask(ApprovalReason::MayChange));
            }
            let free = Pin::Same { for_good: true };
            assert_eq!(ApprovalNeed::of(ApprovalRule::Auto, effect, free), ApprovalNeed::Free);
        }
    }

    #[test]
    fn a_changed_tool_is_asked_about_whatever_the_rule() {
        let rules =
            [ApprovalRule::Auto, ApprovalRule::Always, ApprovalRule::Never, ApprovalRule::Unlisted];
        for rule in rules {
            let asked = ApprovalNeed::of(rule, ToolEffect::ReadOnly, Pin::Changed);
            assert_eq!(asked, ApprovalNeed::Ask(ApprovalReason::Changed));
        }
    }

    #[test]
    fn a_fingerprint_is_written_as_it_is_read() {
        let text = "0f".repeat(32);
        let fingerprint: ToolFingerprint = text.parse().unwrap();
        assert_eq!(fingerprint.to_string(), text);
        for bad in ["", "0f", &"zz".repeat(32), &"é".repeat(32)] {
            assert_eq!(bad.parse::<ToolFingerprint>(), Err(BadFingerprint));
        }
    }
}
