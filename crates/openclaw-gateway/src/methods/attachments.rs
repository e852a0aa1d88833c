//! Attachments of a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_content::{Source, Text, Untrusted, clean_line};
use openclaw_models::Part;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::chat::{Attachment, EXTERNAL};
use openclaw_tools::{MediaKind, NotPassed, check_media, image_type};

use super::Reply;

/// Maximum size of all attachments in base64, in bytes.
const MAX_BYTES: usize = 20 * 1024 * 1024;
/// Maximum size of text among them, in bytes: the same as for a message, for the same reason.
const MAX_TEXT: usize = 4 * 1024 * 1024;
/// Maximum length of a document's name that a model gets, in characters.
const MAX_NAME: usize = 200;
/// The type of PDF documents.
const PDF: &str = "application/pdf";

/// Converts attachments: supported images, audio, video and PDF documents are passed on, texts become
/// text. Anything else is rejected here, because a provider would reject the whole session from then
/// on.
pub(super) fn read(files: &[Attachment]) -> Reply<Vec<Part>> {
    let (mut total, mut of_text) = (0, 0);
    let mut parts = Vec::with_capacity(files.len());
    for (nth, file) in files.iter().enumerate() {
        let which = named(nth, file);
        let invalid = |why: &str| ErrorShape::invalid(format!("{which} {why}"));
        let raw = file.content.as_ref().ok_or_else(|| invalid("has no `content`"))?;
        let data: String = serde_json::from_str(raw.get())
            .map_err(|_| invalid("must have base64 text as `content`"))?;
        total += data.len();
        if total > MAX_BYTES {
            let most = MAX_BYTES / 1024 / 1024;
            return Err(ErrorShape::invalid(format!(
                "attachments are limited to {most} MB in total"
            )));
        }
        let part = read_one(file, data, &which)?;
        if let Part::Text(text) | Part::File { text: Some(text), .. } = &part {
            of_text += text.expose().len();
        }
        if of_text > MAX_TEXT {
            let most = MAX_TEXT / 1024 / 1024;
            let message =
                format!("attached texts are limited to {most} MB in total; put them into a file");
            return Err(ErrorShape::invalid(message));
        }
        parts.push(part);
    }
    Ok(parts)
}

/// Names an attachment by its position, and its name if it has one.
fn named(nth: usize, file: &Attachment) -> String {
    let name = file.file_name.as_deref().unwrap_or_default();
    let name: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
    let name = if name.is_empty() { name } else { format!(" (`{name}`)") };
    format!("attachment {}{name}", nth + 1)
}

fn read_one(file: &Attachment, data: String, which: &str) -> Reply<Part> {
    let name = file.file_name.as_deref().unwrap_or("file");
    let bytes = STANDARD
        .decode(&data)
        .map_err(|_| ErrorShape::invalid(format!("`content` of {which} is not base64")))?;
    let declared = file.mime_type.as_deref().unwrap_or_default();
    // The first bytes of an image are more reliable than the declared type.
    let is_picture = image_type(&bytes).is_some();
    let kind = if is_picture { Some(MediaKind::Image) } else { MediaKind::of(declared) };
    let Some(kind) = kind else {
        if is_file(declared, &bytes) {
            let text = file.text.as_deref().map(|text| text_of(file, name, text)).transpose()?;
            let name = clean_line(Untrusted::new(name), MAX_NAME);
            let mime_type = declared.to_owned();
            return Ok(Part::File { mime_type, name, data, text });
        }
        return match String::from_utf8(bytes) {
            Ok(text) => text_of(file, name, &text).map(Part::Text),
            Err(_) => {
                let message = format!("{which} is not an image, audio, video, PDF or text");
                Err(ErrorShape::invalid(message))
            }
        };
    };
    match check_media(kind, declared, &data, kind.max_bytes()) {
        Ok(mime_type) => {
            let mime_type = mime_type.to_owned();
            Ok(match kind {
                MediaKind::Image => Part::Image { mime_type, data },
                MediaKind::Audio => Part::Audio { mime_type, data },
            })
        }
        Err(why) => Err(ErrorShape::invalid(refusal(which, kind, why))),
    }
}

/// Whether it is a file that some providers accept as it is.
fn is_file(declared: &str, bytes: &[u8]) -> bool {
    match declared {
        PDF => bytes.starts_with(b"%PDF-"),
        _ => declared.starts_with("video/") && std::str::from_utf8(bytes).is_err(),
    }
}

/// The text of an attachment. The user chose the file, but did not write what is in it: it is untrusted,
/// as if the agent had read it.
fn text_of(file: &Attachment, name: &str, text: &str) -> Reply<Text> {
    let source = match &file.url {
        Some(url) => Source::web_fetch(url.as_str()),
        None if file.kind.as_deref() == Some(EXTERNAL) => Source::other(name),
        None => Source::file(name),
    };
    Text::outside(Untrusted::new(text.to_owned()), source)
        .map_err(|error| ErrorShape::unavailable(error.to_string()))
}

fn refusal(which: &str, kind: MediaKind, why: NotPassed) -> String {
    let more = match (kind, why) {
        (MediaKind::Image, NotPassed::OtherType) => ": not a PNG, JPEG, GIF or WebP",
        (MediaKind::Audio, NotPassed::OtherType) => ": not a WAV, MP3, Ogg, FLAC, AAC, MP4 or AIFF",
        _ => "",
    };
    format!("{which} cannot be sent as {}: {why}{more}", kind.words())
}
