//! One agent, validated: which model it thinks with, and what it may do.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::model::{McpConfig, Setting, ToolPolicy};
use crate::name::{AgentId, ProviderId};
use crate::raw::ApprovalFallback;
use crate::text::Expanded;

/// One agent, with everything that it inherits.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Its id.
    pub id: AgentId,
    /// The model that it thinks with; none: nobody named one.
    pub model: Option<ModelChoice>,
    /// The folder that it works in; none: nobody named one.
    pub workspace: Option<PathBuf>,
    /// Words that are added to its system prompt.
    pub system_prompt: Option<Expanded>,
    /// How many times it may ask the model in one turn.
    pub max_rounds: usize,
    /// How many tool calls may run at once.
    pub max_parallel_tools: usize,
    /// With more tools than this it searches them; none: it always gets all.
    pub tool_search_threshold: Option<usize>,
    /// How many tokens the model can take, where somebody knows better.
    pub context_tokens: Option<u64>,
    /// What holds when a person must be asked.
    pub approval: ApprovalSettings,
    /// Its MCP servers and settings.
    pub mcp: McpConfig,
    /// Which tools it may use.
    pub tools: ToolPolicy,
    /// Where its values outside MCP come from, for people.
    pub origins: Vec<Setting>,
}

/// A model, and those that stand in for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The model.
    pub primary: ModelName,
    /// Models to turn to when it cannot be had, in this order; the first is not among them.
    pub fallbacks: Vec<ModelName>,
}

/// The name of a model: `provider/model`, or `offline` for the built-in one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelName(String);

impl ModelName {
    /// The built-in model, which needs no provider.
    pub const OFFLINE: &'static str = "offline";

    /// Checks a name.
    ///
    /// ```
    /// # use openclaw_config::ModelName;
    /// let name = ModelName::new("router/anthropic/claude").unwrap();
    /// assert_eq!((name.provider(), name.model()), (Some("router"), "anthropic/claude"));
    /// assert!(ModelName::new("claude").is_none());
    /// ```
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
        let is_good = match name.split_once('/') {
            Some((provider, model)) => {
                ProviderId::new(provider).is_ok()
                    && !model.is_empty()
                    && model.chars().all(is_plain)
            }
            None => name == Self::OFFLINE,
        };
        is_good.then_some(Self(name))
    }

    /// The id of its provider; none for the built-in model.
    pub fn provider(&self) -> Option<&str> {
        self.0.split_once('/').map(|(provider, _)| provider)
    }

    /// What the provider calls it.
    pub fn model(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, model)| model)
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What holds when a person must be asked (B9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// What becomes of a call where nobody can answer.
    pub fallback: ApprovalFallback,
    /// How long to wait for an answer.
    pub timeout: Duration,
}
