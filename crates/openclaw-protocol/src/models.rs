//! `models.list`: the models that an agent may use.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Parameters of `models.list`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    /// Agent id.
    pub agent_id: Option<String>,
    /// Whether to describe the providers, too.
    pub include_provider_capabilities: Option<bool>,
    /// A model to list, too, if the provider in its name is configured (ours).
    pub model: Option<String>,
    /// Only models that are ready.
    pub prepared_only: Option<bool>,
    /// Whether to ask the providers again.
    pub refresh: Option<bool>,
    /// Which models to list.
    pub view: Option<View>,
}

/// Which models to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// The usual ones.
    Default,
    /// The configured ones.
    Configured,
    /// Those of the configured providers.
    ProviderConfig,
    /// All.
    All,
}

/// Result of `models.list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListResult {
    /// The models, the one that is used by default first.
    pub models: Vec<ModelChoice>,
}

/// A model.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChoice {
    /// Name for `sessions.patch`, as in the configuration.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Provider id.
    pub provider: String,
    /// Whether it can be used; absent if that is not known.
    pub available: Option<bool>,
    /// Context window, in tokens.
    pub context_window: Option<u64>,
}
