//! `config.*`: what is configured, and reading it again.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `config.get`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetParams {}

/// What `config.get` answers. Secrets are shown as they are written, as references.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetResult {
    /// The file.
    pub path: String,
    /// Whether there is one.
    pub exists: bool,
    /// Whether it can be used.
    pub valid: bool,
    /// What holds, all files together.
    pub config: Box<RawValue>,
    /// Changes when the files change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// What is wrong with it.
    pub issues: Vec<Issue>,
}

/// Something wrong in a configuration.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Issue {
    /// The key, with dots; empty if it is at none.
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

/// `config.reload` (ours).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReloadParams {}

/// What `config.reload` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadResult {
    /// Whether the new one holds; if not, the old one does.
    pub ok: bool,
    /// What has changed: keys, with dots.
    pub changed: Vec<String>,
    /// What is wrong with the new one.
    pub issues: Vec<Issue>,
}
