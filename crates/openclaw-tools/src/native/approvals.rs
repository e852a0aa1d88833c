//! Permanent approvals of native tools (B9).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::approval::Pin;

/// Tools that were approved permanently, until this process exits. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Approvals(Arc<Mutex<HashSet<String>>>);

impl Approvals {
    /// Approves a tool permanently.
    pub fn remember(&self, tool: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(tool.to_owned());
    }

    /// Revokes the approval.
    pub fn forget(&self, tool: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(tool);
    }

    /// Returns whether a tool is approved permanently.
    pub fn contains(&self, tool: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }

    /// Returns what was approved before.
    pub fn pin(&self, tool: &str) -> Pin {
        if self.contains(tool) { Pin::Same { for_good: true } } else { Pin::New }
    }
}
