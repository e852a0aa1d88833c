//! The prompts that a server lists.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{Dropped, List, Listing, is_name, pages};
use crate::wire::{CallError, FastLane, TimeLimits};

/// A prompt as its server describes it. Untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedArgument {
    /// Its name.
    pub name: String,
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

/// Lists the prompts of a server.
///
/// # Errors
/// If the server does not answer a page request.
pub async fn prompts(
    lane: &FastLane,
    meta: Option<&RawValue>,
    limits: TimeLimits,
) -> Result<Listing<ListedPrompt>, CallError> {
    let list = List { method: "prompts/list", key: "prompts" };
    pages(list, lane, meta, limits, |raw| {
        let entry: ListedPrompt =
            serde_json::from_str(raw.get()).map_err(|error| Dropped::unreadable(raw, &error))?;
        if is_name(&entry.name) {
            Ok(entry)
        } else {
            Err(Dropped::new(&entry.name, "the name is empty or too long"))
        }
    })
    .await
}
