//! The words for what an answer holds and no model is shown.

use openclaw_tools::MediaKind;

/// The words for a file of any kind.
pub(super) fn file(uri: &str, mime_type: &str, data: usize) -> String {
    format!("[resource {uri} ({mime_type}, about {} bytes), not shown]", bytes(data))
}

/// The words for a picture or a sound, and why it is not shown.
pub(super) fn media(kind: MediaKind, mime_type: &str, data: usize, why: &str) -> String {
    format!("[{} ({mime_type}, about {} bytes), not shown: {why}]", kind.words(), bytes(data))
}

/// How many bytes so much base64 is, about.
fn bytes(base64: usize) -> usize {
    base64 / 4 * 3
}
