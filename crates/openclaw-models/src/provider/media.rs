//! Which images, audio and files a provider accepts. One that it does not accept would make it reject the
//! whole conversation, from then on.

use openclaw_content::render;

use crate::message::Part;
use crate::settings::ApiKind;

/// A part of a message in a form that the provider accepts.
pub(super) enum ProviderPart<'p> {
    Text(String),
    /// An image: its MIME type, and its bytes in base64.
    Image(&'p str, &'p str),
    /// Audio: the provider's name of its MIME type, and its bytes in base64.
    Audio(&'p str, &'p str),
    /// A file: its MIME type, its name, and its bytes in base64.
    File(&'p str, &'p str, &'p str),
}

/// Converts parts to a form that the provider accepts: text replaces unsupported media. Texts are
/// rendered here and nowhere else.
pub(super) fn to_provider_parts<'p>(
    kind: ApiKind,
    parts: impl IntoIterator<Item = &'p Part>,
) -> Vec<ProviderPart<'p>> {
    let mut converted = Vec::new();
    let mut parts = parts.into_iter().peekable();
    while let Some(part) = parts.next() {
        let text = match part {
            Part::Text(text) => text,
            Part::Image { mime_type, data } => {
                let is_accepted = image_types(kind).contains(&mime_type.as_str());
                let image = is_accepted.then(|| ProviderPart::Image(mime_type, data));
                converted.push(image.unwrap_or_else(|| unsupported("an image", mime_type)));
                continue;
            }
            Part::Audio { mime_type, data } => {
                let audio = audio_type(kind, mime_type).map(|name| ProviderPart::Audio(name, data));
                converted.push(audio.unwrap_or_else(|| unsupported("an audio clip", mime_type)));
                continue;
            }
            Part::File { mime_type, name, data, .. } if accepts_file(kind, mime_type) => {
                converted.push(ProviderPart::File(mime_type, name, data));
                continue;
            }
            Part::File { mime_type, text, .. } => {
                converted.push(unsupported("a file", mime_type));
                let Some(text) = text else { continue };
                converted.push(ProviderPart::Text("[Its text follows.]".to_owned()));
                text
            }
        };
        let mut texts = vec![text];
        while let Some(Part::Text(next)) = parts.next_if(|next| next.as_text().is_some()) {
            texts.push(next);
        }
        let rendered = render(texts).into_iter().filter(|text| !text.trim().is_empty());
        converted.extend(rendered.map(ProviderPart::Text));
    }
    converted
}

/// Returns the texts, separated by empty lines, if there is nothing else.
pub(super) fn only_text(pieces: &[ProviderPart<'_>]) -> Option<String> {
    let words = |piece: &ProviderPart<'_>| match piece {
        ProviderPart::Text(text) => Some(text.clone()),
        _ => None,
    };
    Some(pieces.iter().map(words).collect::<Option<Vec<_>>>()?.join("\n\n"))
}

/// Returns the MIME types of images that the provider accepts.
fn image_types(kind: ApiKind) -> &'static [&'static str] {
    match kind {
        ApiKind::Gemini => &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"],
        ApiKind::Ollama => &["image/png", "image/jpeg", "image/webp"],
        _ => &["image/png", "image/jpeg", "image/webp", "image/gif"],
    }
}

/// Whether the provider accepts files of this MIME type. Compatible APIs may not: then the agent
/// retries without the file.
fn accepts_file(kind: ApiKind, mime_type: &str) -> bool {
    match kind {
        ApiKind::Anthropic | ApiKind::OpenAi | ApiKind::OpenAiResponses => {
            mime_type == "application/pdf"
        }
        ApiKind::Gemini => mime_type == "application/pdf" || mime_type.starts_with("video/"),
        ApiKind::Ollama => false,
    }
}

/// Returns the provider's name of an audio MIME type, if it accepts that type.
fn audio_type(kind: ApiKind, mime_type: &str) -> Option<&str> {
    let usual = match mime_type {
        "audio/x-wav" | "audio/wave" => "audio/wav",
        "audio/mp3" => "audio/mpeg",
        other => other,
    };
    let all = match kind {
        ApiKind::OpenAi => &["audio/wav", "audio/mpeg"][..],
        ApiKind::Gemini => {
            &["audio/wav", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"]
        }
        _ => &[],
    };
    all.contains(&usual).then_some(usual)
}

fn unsupported(what: &str, mime_type: &str) -> ProviderPart<'static> {
    // The type is untrusted.
    let mime_type: String = mime_type.chars().filter(char::is_ascii_graphic).take(40).collect();
    ProviderPart::Text(format!("[{what} ({mime_type}) that this model does not support]"))
}
