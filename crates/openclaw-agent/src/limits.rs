//! What keeps an agent within bounds.

use openclaw_tools::Fallback;

/// What keeps an agent within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is asked in a turn.
    pub max_rounds: u32,
    /// How many tools run at once.
    pub parallel_calls: usize,
    /// With more tools than that, they must be searched for; 0: never.
    pub search_threshold: usize,
    /// The model's window, if it is not to be taken at its word.
    pub context_tokens: Option<u64>,
    /// What holds where nobody can be asked.
    pub fallback: Fallback,
}

impl Default for Limits {
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
