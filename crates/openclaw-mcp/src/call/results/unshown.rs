//! Placeholders for parts of a response that are not shown to a model.

use openclaw_tools::MediaKind;

/// The placeholder for a file.
pub(super) fn file(uri: &str, mime_type: &str, data: usize) -> String {
    format!("[resource {uri} ({mime_type}, about {} bytes), not shown]", bytes(data))
}

/// The placeholder for an image or audio clip, with the reason.
pub(super) fn media(kind: MediaKind, mime_type: &str, data: usize, why: &str) -> String {
    format!("[{} ({mime_type}, about {} bytes), not shown: {why}]", kind.words(), bytes(data))
}

/// The approximate number of bytes in base64 of this length.
fn bytes(base64: usize) -> usize {
    base64 / 4 * 3
}
