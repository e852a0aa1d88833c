//! Approvals of native tools for later calls (B9).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::grant::Grant;

/// Which later calls an approval applies to: who, where, what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApprovalKey {
    /// The agent.
    pub agent: String,
    /// Its workspace; `None` for a tool that does not work in one.
    pub workspace: Option<PathBuf>,
    /// The session, for an approval that is limited to one.
    pub session: Option<String>,
    /// The tool.
    pub tool: String,
    /// What is covered.
    pub grant: Grant,
}

/// Approvals of native tools, valid until this process exits: commands may contain credentials, so
/// they are not stored. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Approvals(Arc<Mutex<BTreeSet<ApprovalKey>>>);

impl Approvals {
    /// Adds an approval.
    pub fn remember(&self, key: ApprovalKey) {
        self.lock().insert(key);
    }

    /// Revokes an approval.
    pub fn forget(&self, key: &ApprovalKey) {
        self.lock().remove(key);
    }

    /// Returns whether an approval was given.
    pub fn contains(&self, key: &ApprovalKey) -> bool {
        self.lock().contains(key)
    }

    /// Returns all approvals.
    pub fn list(&self) -> Vec<ApprovalKey> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<ApprovalKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
