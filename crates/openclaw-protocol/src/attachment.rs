//! Files attached to a message.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::fields::write_number;

/// A file attached to a message.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Kind: `image`, `audio`, `file`, `external`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// MIME type.
    pub mime_type: Option<String>,
    /// File name.
    pub file_name: Option<String>,
    /// Content, in base64.
    pub content: Option<Box<RawValue>>,
    /// Size in bytes.
    #[serde(serialize_with = "write_number")]
    pub size_bytes: Option<f64>,
    /// Duration in milliseconds.
    #[serde(serialize_with = "write_number")]
    pub duration_ms: Option<f64>,
    /// Width in pixels.
    #[serde(serialize_with = "write_number")]
    pub width: Option<f64>,
    /// Height in pixels.
    #[serde(serialize_with = "write_number")]
    pub height: Option<f64>,
    /// Text of a document (ours), for models that cannot read it.
    pub text: Option<String>,
    /// URL that it was fetched from (ours), as the source of its text.
    pub url: Option<String>,
}
