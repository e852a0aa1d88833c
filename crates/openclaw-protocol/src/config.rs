//! `config.*`: reading and reloading the configuration.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

/// Parameters of `config.get`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetParams {}

/// Result of `config.get`. Secrets are shown as references, as written in the file.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetResult {
    /// Path of the configuration file.
    pub path: String,
    /// Whether the file exists.
    pub exists: bool,
    /// Whether the configuration is valid.
    pub valid: bool,
    /// The effective configuration, merged from all files.
    pub config: Box<RawValue>,
    /// Hash of the files.
    pub hash: Option<String>,
    /// Problems found.
    pub issues: Vec<Issue>,
}

/// A problem in a configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Issue {
    /// Dotted key path; empty if the issue concerns no key.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Parameters of `gateway.stop` (ours).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StopParams {}

/// Result of `gateway.stop`: the gateway stops as after a signal. It exits when its turns are over, or
/// after its grace period.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StopResult {
    /// Always `true`.
    pub ok: bool,
}

/// Parameters of `config.reload` (ours).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadParams {}

/// Result of `config.reload`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadResult {
    /// Whether the new configuration is in effect; if not, the old one stays.
    pub ok: bool,
    /// Dotted paths of the changed keys.
    pub changed: Vec<String>,
    /// Problems in the new configuration.
    pub issues: Vec<Issue>,
}
