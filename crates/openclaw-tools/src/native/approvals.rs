//! What somebody must agree to, and what somebody has agreed to for good (B9).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::approval::{Standing, Why};
use crate::spec::{Effect, ToolSpec};

/// What somebody must agree to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalRule {
    /// To what may change something, unless it was allowed for good.
    #[default]
    Auto,
    /// To every call.
    Always,
    /// To nothing.
    Never,
}

/// The tools that somebody has allowed for good, for as long as this program runs. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Approvals(Arc<Mutex<HashSet<String>>>);

impl Approvals {
    /// Allows a tool for good.
    pub fn remember(&self, tool: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(tool.to_owned());
    }

    /// Takes that back.
    pub fn forget(&self, tool: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(tool);
    }

    /// Whether a tool was allowed for good.
    pub fn contains(&self, tool: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }

    pub(super) fn standing(&self, rule: ApprovalRule, tool: &ToolSpec) -> Standing {
        match rule {
            ApprovalRule::Never => Standing::Free,
            ApprovalRule::Always => Standing::Ask(Why::EachTime),
            ApprovalRule::Auto if tool.effect == Effect::ReadOnly => Standing::Free,
            ApprovalRule::Auto if self.contains(tool.name.as_str()) => Standing::Free,
            ApprovalRule::Auto => Standing::Ask(Why::MayChange),
        }
    }
}
