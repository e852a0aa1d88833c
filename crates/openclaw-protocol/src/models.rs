//! `models.list`: the models that an agent may use.

use serde::{Deserialize, Serialize};

/// Parameters of `models.list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    /// Agent id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Whether to describe the providers, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_provider_capabilities: Option<bool>,
    /// A model to list, too, if the provider in its name is configured (ours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Only models that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepared_only: Option<bool>,
    /// Whether to ask the providers again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<bool>,
    /// Which models to list.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<bool>,
    /// Context window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}
