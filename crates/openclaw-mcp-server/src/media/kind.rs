//! What a file is, by its content.

/// What models can do with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttachmentKind {
    /// An image, of this type.
    Image(&'static str),
    /// Audio, of this type.
    Audio(&'static str),
    /// Video, of this type.
    Video(&'static str),
    /// A PDF document.
    Pdf,
    /// Text in UTF-8.
    Text,
    /// Anything else, of this type.
    Other(String),
}

impl AttachmentKind {
    /// Returns the kind of a file. The declared type counts only for what has no signature of its
    /// own, because a provider rejects a file that is not of its type.
    pub(crate) fn detect(bytes: &[u8], declared: Option<&str>) -> Self {
        let Some(found) = infer::get(bytes) else { return Self::unsigned(bytes, declared) };
        let mime_type = found.mime_type();
        match mime_type {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Self::Image(mime_type),
            "audio/mpeg" | "audio/aac" | "audio/ogg" => Self::Audio(mime_type),
            "audio/opus" => Self::Audio("audio/ogg"),
            "audio/x-wav" => Self::Audio("audio/wav"),
            "audio/x-flac" => Self::Audio("audio/flac"),
            "audio/x-aiff" => Self::Audio("audio/aiff"),
            "audio/m4a" => Self::Audio("audio/mp4"),
            "application/pdf" => Self::Pdf,
            "video/x-m4v" => Self::Video("video/mp4"),
            _ if mime_type.starts_with("video/") => Self::Video(mime_type),
            // HTML, XML and scripts are recognized by their text.
            _ if mime_type.starts_with("text/") => Self::unsigned(bytes, declared),
            _ => Self::Other(mime_type.to_owned()),
        }
    }

    fn unsigned(bytes: &[u8], declared: Option<&str>) -> Self {
        // A NUL byte is valid UTF-8, but no text has one.
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Self::Text,
            _ => Self::Other(match declared {
                Some(declared) => format!("its content is not `{declared}`"),
                None => "unknown".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_decides_and_not_the_declared_type() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n"[..], AttachmentKind::Image("image/png")),
            (b"\xff\xd8\xff\xe0", AttachmentKind::Image("image/jpeg")),
            (b"%PDF-1.7\n", AttachmentKind::Pdf),
            (b"RIFF\0\0\0\0WAVEfmt ", AttachmentKind::Audio("audio/wav")),
            (b"ID3\x04", AttachmentKind::Audio("audio/mpeg")),
            (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", AttachmentKind::Video("video/mp4")),
            (b"hello", AttachmentKind::Text),
            (b"<!DOCTYPE html><p>hello", AttachmentKind::Text),
            (b"#!/bin/sh\n", AttachmentKind::Text),
            (b"PK\x03\x04", AttachmentKind::Other("application/zip".to_owned())),
        ] {
            assert_eq!(AttachmentKind::detect(bytes, Some("image/gif")), expected, "{bytes:?}");
        }
        assert!(matches!(AttachmentKind::detect(b"a\0b", None), AttachmentKind::Other(_)));
        assert!(matches!(
            AttachmentKind::detect(b"\xff\xfe\xfd", Some("image/png")),
            AttachmentKind::Other(_)
        ));
    }
}
