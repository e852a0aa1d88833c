//! `logs.tail`: the end of the gateway's log.

use serde::{Deserialize, Serialize};

/// Parameters of `logs.tail`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TailParams {
    /// `cursor` of an earlier response: only later lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
    /// Maximum number of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Maximum number of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
}

/// Result of `logs.tail`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TailResult {
    /// Path of the file.
    pub file: String,
    /// End of the last line, in bytes.
    pub cursor: u64,
    /// Size of the file, in bytes.
    pub size: u64,
    /// Lines.
    pub lines: Vec<String>,
    /// Whether earlier lines were left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// Whether the file has been replaced since the cursor was returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<bool>,
}
