//! The resources and resource templates that a server lists.

use serde::{Deserialize, Serialize};

use super::{ListedEntry, OtherMembers, is_name};

/// The maximum length of a URI.
const MAX_URI: usize = 8 * 1024;

/// A resource as its server describes it. Untrusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// The other members of the entry, such as `size`, `annotations`, `icons` and `_meta`.
    #[serde(flatten)]
    pub other: OtherMembers,
}

/// A resource template as its server describes it. Untrusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedTemplate {
    /// The URI template (RFC 6570).
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// Its title for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of the resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The other members of the entry.
    #[serde(flatten)]
    pub other: OtherMembers,
}

impl ListedEntry for ListedResource {
    const METHOD: &'static str = "resources/list";
    const KEY: &'static str = "resources";

    fn label(&self) -> &str {
        &self.name
    }

    fn flaw(&self) -> Option<&'static str> {
        let fits = is_name(&self.name) && !self.uri.is_empty() && self.uri.len() <= MAX_URI;
        (!fits).then_some("the name or URI is empty or too long")
    }
}

impl ListedEntry for ListedTemplate {
    const METHOD: &'static str = "resources/templates/list";
    const KEY: &'static str = "resourceTemplates";

    fn label(&self) -> &str {
        &self.name
    }

    fn flaw(&self) -> Option<&'static str> {
        let fits = is_name(&self.name) && self.uri_template.len() <= MAX_URI;
        (!fits).then_some("too long")
    }
}
