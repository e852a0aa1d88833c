//! The words for what an answer holds and no model is shown. Who gets the data itself can tell them from
//! what a server says.

use openclaw_tools::MediaKind;

/// The words for a file of any kind.
pub(super) fn file(uri: &str, mime_type: &str, data: usize) -> String {
    format!("[resource {uri} ({mime_type}, about {} bytes), not shown]", bytes(data))
}

/// The words for a picture or a sound, and why it is not shown.
pub(super) fn media(kind: MediaKind, mime_type: &str, data: usize, why: &str) -> String {
    format!("{}{why}]", media_start(kind, mime_type, data))
}

fn media_start(kind: MediaKind, mime_type: &str, data: usize) -> String {
    format!("[{} ({mime_type}, about {} bytes), not shown: ", kind.words(), bytes(data))
}

/// How many bytes so much base64 is, about.
fn bytes(base64: usize) -> usize {
    base64 / 4 * 3
}

/// Whether a line of an answer's text is our words for something that is kept beside it, with this
/// address, type and data in base64.
///
/// ```
/// use openclaw_mcp::results::stands_for;
///
/// let line = "[resource a:b (application/zip, about 6 bytes), not shown]";
/// assert!(stands_for(line, Some("a:b"), "application/zip", "UEsDBA=="));
/// assert!(!stands_for("[a:b]", Some("a:b"), "application/zip", "UEsDBA=="));
/// ```
pub fn stands_for(line: &str, uri: Option<&str>, mime_type: &str, data: &str) -> bool {
    let size = data.len();
    match uri {
        Some(uri) => line == file(uri, mime_type, size),
        None => [MediaKind::Image, MediaKind::Audio].into_iter().any(|kind| {
            line.starts_with(&media_start(kind, mime_type, size)) && line.ends_with(']')
        }),
    }
}
