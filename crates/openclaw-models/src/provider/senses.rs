//! Which pictures and recordings a provider takes. One that it does not take would make it refuse the
//! whole conversation, from then on.

use genai::chat::{Binary, ContentPart};
use openclaw_content::render;

use crate::message::Part;
use crate::settings::ApiKind;

/// Parts as the provider takes them, or words about them. Texts are rendered here and nowhere else.
pub(super) fn perceive<'p>(
    kind: ApiKind,
    parts: impl IntoIterator<Item = &'p Part>,
) -> Vec<ContentPart> {
    let mut perceived = Vec::new();
    let mut parts = parts.into_iter().peekable();
    while let Some(part) = parts.next() {
        let Some(text) = part.as_text() else {
            perceived.extend(perceive_media(kind, part));
            continue;
        };
        let mut texts = vec![text];
        while let Some(Part::Text(next)) = parts.next_if(|next| next.as_text().is_some()) {
            texts.push(next);
        }
        let rendered = render(texts).into_iter().filter(|text| !text.trim().is_empty());
        perceived.extend(rendered.map(ContentPart::Text));
    }
    perceived
}

fn perceive_media(kind: ApiKind, part: &Part) -> Option<ContentPart> {
    match part {
        Part::Text(_) => None,
        Part::Image { mime_type, data } => Some(if sees(kind, mime_type) {
            binary(mime_type, data)
        } else {
            unperceived("picture", mime_type)
        }),
        Part::Audio { mime_type, data } => Some(match heard(kind, mime_type) {
            Some(mime_type) => binary(mime_type, data),
            None => unperceived("recording", mime_type),
        }),
    }
}

/// Whether the provider takes such pictures.
pub(super) fn sees(kind: ApiKind, mime_type: &str) -> bool {
    let all = match kind {
        ApiKind::Gemini => {
            &["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"][..]
        }
        ApiKind::Ollama => &["image/png", "image/jpeg", "image/webp"],
        _ => &["image/png", "image/jpeg", "image/webp", "image/gif"],
    };
    all.contains(&mime_type)
}

/// What the provider calls such recordings, if it takes them.
fn heard(kind: ApiKind, mime_type: &str) -> Option<&str> {
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

fn binary(mime_type: &str, data: &str) -> ContentPart {
    ContentPart::Binary(Binary::from_base64(mime_type, data, None))
}

fn unperceived(what: &str, mime_type: &str) -> ContentPart {
    // The type comes from outside.
    let mime_type: String = mime_type.chars().filter(char::is_ascii_graphic).take(40).collect();
    ContentPart::Text(format!("[a {what} ({mime_type}) that this model cannot take]"))
}
