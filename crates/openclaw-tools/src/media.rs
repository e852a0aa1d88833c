//! Images and audio: passed on if models accept them, replaced by a description otherwise.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Characters of base64 decoded at a time: a multiple of four.
const CHUNK: usize = 4_096;

/// Kinds of media that models accept besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// An image.
    Image,
    /// Audio.
    Audio,
}

impl MediaKind {
    /// Returns the kind of a media type.
    pub fn of(mime_type: &str) -> Option<Self> {
        let is = |prefix: &str| {
            mime_type.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        if is("image/") { Some(Self::Image) } else { is("audio/").then_some(Self::Audio) }
    }

    /// Returns the maximum size in bytes: about what providers accept.
    pub const fn max_bytes(self) -> usize {
        match self {
            Self::Image => 5 * 1024 * 1024,
            Self::Audio => 10 * 1024 * 1024,
        }
    }

    /// Returns the name for use in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Image => "an image",
            Self::Audio => "an audio clip",
        }
    }
}

/// Why media is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotPassed {
    /// It has more bytes than this limit.
    #[error("it is larger than {} MB", .0 / 1024 / 1024)]
    TooLarge(usize),
    /// It is not valid base64.
    #[error("its data is damaged")]
    Damaged,
    /// Models do not accept its type.
    #[error("models do not accept its type")]
    OtherType,
}

/// Checks base64 data; returns the media type to pass it on with.
///
/// A provider rejects the whole conversation if one image is not of its declared type: so the first
/// bytes decide, not the type that the server declares.
///
/// # Errors
/// If models would not accept it.
pub fn check_media(
    kind: MediaKind,
    declared: &str,
    data: &str,
    max_bytes: usize,
) -> Result<&'static str, NotPassed> {
    if data.len() / 4 * 3 > max_bytes.saturating_add(2) {
        return Err(NotPassed::TooLarge(max_bytes));
    }
    let head = decode_head(data).ok_or(NotPassed::Damaged)?;
    match kind {
        MediaKind::Image => image_type(&head).ok_or(NotPassed::OtherType),
        MediaKind::Audio => audio_type(declared).ok_or(NotPassed::OtherType),
    }
}

/// Returns the type of an image that models accept, by its first bytes: the declared type may be
/// wrong, and a provider rejects the whole conversation because of one such image.
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

/// Returns the first bytes if all of the data is strict, padded base64.
fn decode_head(data: &str) -> Option<Vec<u8>> {
    let mut head = None;
    let mut bytes = Vec::with_capacity(CHUNK);
    let mut chunks = data.as_bytes().chunks(CHUNK).peekable();
    while let Some(chunk) = chunks.next() {
        bytes.clear();
        STANDARD.decode_vec(chunk, &mut bytes).ok()?;
        // Padding is allowed at the end only.
        if chunks.peek().is_some() && chunk.last() == Some(&b'=') {
            return None;
        }
        head.get_or_insert_with(|| bytes.iter().take(16).copied().collect::<Vec<u8>>());
    }
    head
}

/// Returns the canonical name of a type.
fn audio_type(declared: &str) -> Option<&'static str> {
    let essence = declared.split(';').next().unwrap_or_default().trim();
    let known = [
        ("audio/wav", &["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"][..]),
        ("audio/mpeg", &["audio/mpeg", "audio/mp3"]),
        ("audio/ogg", &["audio/ogg", "audio/opus"]),
        ("audio/flac", &["audio/flac", "audio/x-flac"]),
        ("audio/aac", &["audio/aac"]),
        ("audio/mp4", &["audio/mp4", "audio/m4a", "audio/x-m4a"]),
        ("audio/webm", &["audio/webm"]),
        ("audio/aiff", &["audio/aiff", "audio/x-aiff"]),
    ];
    let is = |name: &str| name.eq_ignore_ascii_case(essence);
    known.into_iter().find(|(_, names)| names.iter().any(|name| is(name))).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and more";

    #[test]
    fn the_first_bytes_say_what_a_picture_is() {
        let max = 1_000;
        for (bytes, expected) in [
            (PNG, Ok("image/png")),
            (b"\xff\xd8\xff\xe0", Ok("image/jpeg")),
            (b"GIF89a", Ok("image/gif")),
            (b"RIFF1234WEBPVP8 ", Ok("image/webp")),
            (b"<svg/>", Err(NotPassed::OtherType)),
        ] {
            let data = STANDARD.encode(bytes);
            assert_eq!(check_media(MediaKind::Image, "image/png", &data, max), expected);
        }
    }

    #[test]
    fn damaged_data_is_noticed_wherever_it_is() {
        let good = STANDARD.encode([PNG, &[7; 20_000]].concat());
        assert_eq!(check_media(MediaKind::Image, "", &good, 100_000), Ok("image/png"));
        for at in [0, 5_000, good.len() - 1] {
            for sign in [" ", "\n", "=", "é", "-"] {
                let mut bad = good.clone();
                bad.replace_range(at..=at, sign);
                if bad == good {
                    continue;
                }
                let result = check_media(MediaKind::Image, "", &bad, 100_000);
                assert_eq!(result, Err(NotPassed::Damaged), "{at} {sign:?}");
            }
        }
        let padded_inside = format!("{}={}", &good[..CHUNK - 1], good);
        assert_eq!(
            check_media(MediaKind::Image, "", &padded_inside, 100_000),
            Err(NotPassed::Damaged)
        );
        assert_eq!(check_media(MediaKind::Image, "", "", 100_000), Err(NotPassed::Damaged));
    }

    #[test]
    fn what_is_too_large_is_not_even_decoded() {
        let data = STANDARD.encode([0; 1_025]);
        assert_eq!(
            check_media(MediaKind::Audio, "audio/wav", &data, 1_000),
            Err(NotPassed::TooLarge(1_000))
        );
    }

    #[test]
    fn sounds_have_known_types() {
        let data = STANDARD.encode([0; 10]);
        assert_eq!(
            check_media(MediaKind::Audio, "AUDIO/x-wav; rate=8000", &data, 99),
            Ok("audio/wav")
        );
        assert_eq!(
            check_media(MediaKind::Audio, "audio/ignore-this", &data, 99),
            Err(NotPassed::OtherType)
        );
        assert_eq!(MediaKind::of("Image/PNG"), Some(MediaKind::Image));
        assert_eq!(MediaKind::of("imag"), None);
    }
}
