//! What a picture is.

/// The type of a picture that models take, by how its data begins: what a file or server says about it
/// may be wrong, and a provider refuses a whole conversation over one such picture.
///
/// ```
/// assert_eq!(openclaw_tools::image_type(b"GIF89a"), Some("image/gif"));
/// assert_eq!(openclaw_tools::image_type(b"<svg/>"), None);
/// ```
pub fn image_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}
