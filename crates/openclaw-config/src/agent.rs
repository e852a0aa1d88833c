//! A validated agent: its model, its limits and its permissions.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::mcp::McpConfig;
use crate::name::{AgentId, ProviderId};
use crate::raw::ApprovalFallback;
use crate::setting::Setting;
use crate::text::Expanded;
use crate::tool_policy::ToolPolicy;

/// An agent, with everything it inherits.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Its id.
    pub id: AgentId,
    /// Its model; `None` if not configured.
    pub model: Option<ModelChoice>,
    /// Its working folder; `None` if not configured.
    pub workspace: Option<PathBuf>,
    /// Text added to its system prompt.
    pub system_prompt: Option<Expanded>,
    /// The maximum number of model requests in one turn.
    pub max_rounds: usize,
    /// How many tool calls may run concurrently.
    pub max_parallel_tools: usize,
    /// With more tools than this, the model gets a search tool; `None` always sends all schemas.
    pub tool_search_threshold: Option<usize>,
    /// The context size of the model in tokens, if configured.
    pub context_tokens: Option<u64>,
    /// Settings for calls that need approval.
    pub approval: ApprovalSettings,
    /// Its MCP servers and settings.
    pub mcp: McpConfig,
    /// Its tool policy.
    pub tools: ToolPolicy,
    /// Where its values outside MCP come from, for display.
    pub origins: Vec<Setting>,
}

/// A model and its fallbacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The primary model.
    pub primary: ModelName,
    /// Models to try in this order when the primary one is unavailable; never contains the primary.
    pub fallbacks: Vec<ModelName>,
}

/// The name of a model: `provider/model`, or `offline` for the built-in one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelName(String);

impl ModelName {
    /// The built-in model, which needs no provider.
    pub const OFFLINE: &'static str = "offline";

    /// Validates a name.
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

    /// The id of its provider; `None` for the built-in model.
    pub fn provider(&self) -> Option<&str> {
        self.0.split_once('/').map(|(provider, _)| provider)
    }

    /// The model's name at its provider.
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

/// Settings for calls that need approval (B9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalSettings {
    /// What happens to a call when no user can be asked.
    pub fallback: ApprovalFallback,
    /// How long to wait for the user's answer.
    pub timeout: Duration,
}
