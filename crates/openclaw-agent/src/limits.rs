//! Limits of an agent.

use openclaw_tools::Fallback;

/// Limits of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Maximum requests to the model per turn.
    pub max_rounds: u32,
    /// Maximum concurrent tool calls.
    pub parallel_calls: usize,
    /// With more tools than this, tools must be searched for; 0 disables the search.
    pub search_threshold: usize,
    /// Overrides the model's context window, in tokens.
    pub context_tokens: Option<u64>,
    /// Applies when no approver is available.
    pub fallback: Fallback,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            max_rounds: 50,
            parallel_calls: 8,
            search_threshold: 50,
            context_tokens: None,
            fallback: Fallback::Deny,
        }
    }
}
