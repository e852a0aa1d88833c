//! The resources and resource templates that a server lists.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Dropped, List, Listing, is_name, pages};
use crate::wire::{CallError, FastLane, TimeLimits};

/// The maximum length of a URI.
const MAX_URI: usize = 8 * 1024;

/// A resource as its server describes it. Untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedResource {
    /// Its URI.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its title for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A resource template as its server describes it. Untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTemplate {
    /// The URI template (RFC 6570).
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of the resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// Lists the resources of a server.
///
/// # Errors
/// If the server does not answer a page request.
pub async fn resources(
    lane: &FastLane,
    meta: Option<&RawValue>,
    limits: TimeLimits,
) -> Result<Listing<ListedResource>, CallError> {
    let list = List { method: "resources/list", key: "resources" };
    pages(list, lane, meta, limits, |raw| {
        let entry: ListedResource =
            serde_json::from_str(raw.get()).map_err(|error| Dropped::unreadable(raw, &error))?;
        let fits = is_name(&entry.name) && !entry.uri.is_empty() && entry.uri.len() <= MAX_URI;
        if fits {
            Ok(entry)
        } else {
            Err(Dropped::new(&entry.name, "the name or URI is empty or too long"))
        }
    })
    .await
}

/// Lists the resource templates of a server.
///
/// # Errors
/// If the server does not answer a page request.
pub async fn templates(
    lane: &FastLane,
    meta: Option<&RawValue>,
    limits: TimeLimits,
) -> Result<Listing<ListedTemplate>, CallError> {
    let list = List { method: "resources/templates/list", key: "resourceTemplates" };
    pages(list, lane, meta, limits, |raw| {
        let entry: ListedTemplate =
            serde_json::from_str(raw.get()).map_err(|error| Dropped::unreadable(raw, &error))?;
        let fits = is_name(&entry.name) && entry.uri_template.len() <= MAX_URI;
        if fits { Ok(entry) } else { Err(Dropped::new(&entry.name, "too long")) }
    })
    .await
}
