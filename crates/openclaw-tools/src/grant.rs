//! What an approval for later calls covers.

use serde::{Deserialize, Serialize};

/// What "always" allows: the rule of an approval. The agent, the server or workspace, and the tool
/// are the key that it is stored under.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// Every call of the tool.
    Tool,
    /// Exactly this command.
    Command(String),
    /// Every plain command that begins with these words.
    CommandPrefix(Vec<String>),
    /// Every call for this host.
    Host(String),
}

/// A choice of the user: an approval that applies to later calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlwaysOption {
    /// What it covers.
    pub grant: Grant,
    /// Says in one line what it allows, where, and for which agent.
    pub words: String,
}
