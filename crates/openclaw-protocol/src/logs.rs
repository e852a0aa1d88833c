//! `logs.tail`: the end of the gateway's log.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Parameters of `logs.tail`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TailParams {
    /// `cursor` of an earlier response: only later lines.
    pub cursor: Option<u64>,
    /// Maximum number of lines.
    pub limit: Option<u64>,
    /// Maximum number of bytes.
    pub max_bytes: Option<u64>,
}

/// Result of `logs.tail`.
#[skip_serializing_none]
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
    pub truncated: Option<bool>,
    /// Whether the file has been replaced since the cursor was returned.
    pub reset: Option<bool>,
}
