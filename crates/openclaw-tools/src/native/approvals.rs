//! Which of the program's own tools were approved for good (B9).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::approval::Pin;

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

    /// What was approved of a tool.
    pub fn pin(&self, tool: &str) -> Pin {
        if self.contains(tool) { Pin::Same { for_good: true } } else { Pin::New }
    }
}
