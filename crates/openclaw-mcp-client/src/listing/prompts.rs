//! The prompts that a server lists.

use serde::{Deserialize, Deserializer, Serialize};

use super::{ListedEntry, NOT_A_NAME, OtherMembers, is_name};

/// A prompt as its server describes it. Untrusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedPrompt {
    /// The server's name for it.
    pub name: String,
    /// Its title for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments.
    #[serde(default, deserialize_with = "or_null")]
    pub arguments: Vec<ListedArgument>,
    /// The other members of the entry, such as `icons` and `_meta`.
    #[serde(flatten)]
    pub other: OtherMembers,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedArgument {
    /// Its name.
    pub name: String,
    /// Its title for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it is required.
    #[serde(default, deserialize_with = "or_null")]
    pub required: bool,
}

/// Some servers send `null` for an absent value.
fn or_null<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl ListedEntry for ListedPrompt {
    const METHOD: &'static str = "prompts/list";
    const KEY: &'static str = "prompts";

    fn label(&self) -> &str {
        &self.name
    }

    fn flaw(&self) -> Option<&'static str> {
        (!is_name(&self.name)).then_some(NOT_A_NAME)
    }
}
