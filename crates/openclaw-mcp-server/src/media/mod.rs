//! Attachments of a message, and media of an answer (S4).

mod fetch;
mod kind;
mod path;
mod pdf;
mod returned;

use std::borrow::Cow;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use openclaw_content::{Untrusted, clean_line};
use openclaw_protocol::chat::Attachment;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::to_raw_value;

pub(crate) use fetch::Fetcher;
use kind::AttachmentKind;
pub use pdf::{PdfReader, extract as extract_pdf};
pub(crate) use returned::{FileAddress, MediaConversation, MediaEntry, Returned};

/// Maximum number of attachments of a message.
const MAX_FILES: usize = 16;
/// Maximum size of all of them, in bytes: in base64, it is what the gateway accepts.
const MAX_BYTES: usize = 15 * 1024 * 1024;
/// Maximum length of a name, in characters.
const NAME: usize = 100;

/// A file to attach. Exactly one of `data`, `path` and `uri` is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FileArgument {
    /// Its content, in base64.
    #[serde(default)]
    data: Option<String>,
    /// Its path: in the workspace of the agent, or in a folder that the user allows.
    #[serde(default)]
    path: Option<String>,
    /// Its URI: `https:` or `http:` on the public internet, or `data:`.
    #[serde(default)]
    uri: Option<String>,
    /// Its MIME type, if it cannot be detected from the content.
    #[serde(default)]
    mime_type: Option<String>,
    /// Its name.
    #[serde(default)]
    name: Option<String>,
}

impl FileArgument {
    /// The size of what is sent along.
    pub(crate) fn bytes(&self) -> usize {
        [&self.data, &self.uri].into_iter().flatten().map(String::len).sum()
    }
}

/// Where files may come from.
pub(crate) struct AllowedSources<'a> {
    /// Folders whose files may be attached.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) fetcher: &'a Fetcher,
    pub(crate) pdf: Option<&'a PdfReader>,
}

/// A file whose content is known.
struct Loaded {
    bytes: Vec<u8>,
    name: String,
    /// The type that its sender declares.
    declared: Option<String>,
    /// The URL it was fetched from.
    url: Option<String>,
}

/// Reads the attachments of a message.
///
/// # Errors
/// Which one cannot be attached, and why.
pub(crate) async fn load(
    files: Vec<FileArgument>,
    sources: &AllowedSources<'_>,
) -> Result<Vec<Attachment>, String> {
    if files.len() > MAX_FILES {
        return Err(format!("{} attachments; at most {MAX_FILES} are allowed", files.len()));
    }
    let mut left = MAX_BYTES;
    let mut attachments = Vec::with_capacity(files.len());
    for (nth, file) in files.into_iter().enumerate() {
        let wrong = |why: String| format!("attachment {}: {why}", nth + 1);
        let loaded = open(file, left, sources).await.map_err(wrong)?;
        left = left.checked_sub(loaded.bytes.len()).ok_or_else(|| wrong(too_large()))?;
        attachments.push(attach(loaded, sources.pdf).await.map_err(wrong)?);
    }
    Ok(attachments)
}

fn too_large() -> String {
    format!("too large; all attachments together may have {} MB", MAX_BYTES / 1024 / 1024)
}

async fn open(
    file: FileArgument,
    max_bytes: usize,
    sources: &AllowedSources<'_>,
) -> Result<Loaded, String> {
    let FileArgument { data, path, uri, mime_type, name } = file;
    let mut loaded = match (data, path, uri) {
        (Some(data), None, None) => Loaded::of_data(&data, max_bytes)?,
        (None, Some(path), None) => {
            let folders = sources.folders.clone();
            let read = tokio::task::spawn_blocking(move || path::read(&path, &folders, max_bytes));
            read.await.map_err(|_| "cannot be read".to_owned())??
        }
        (None, None, Some(uri)) => match uri.strip_prefix("data:") {
            Some(rest) => of_data_uri(rest, max_bytes)?,
            None => sources.fetcher.fetch(&uri, max_bytes).await?,
        },
        _ => return Err("exactly one of `data`, `path` and `uri` must be given".to_owned()),
    };
    if let Some(name) = name {
        loaded.name = name;
    }
    loaded.name = clean_line(Untrusted::new(&loaded.name), NAME);
    loaded.declared = mime_type.or(loaded.declared);
    Ok(loaded)
}

impl Loaded {
    fn of_data(data: &str, max_bytes: usize) -> Result<Self, String> {
        let problem = match data.trim_start().starts_with("data:") {
            true => "`data` is a `data:` URI: pass it as `uri`",
            false => "`data` is not base64",
        };
        Self::of_base64(data, max_bytes, problem)
    }

    /// Decodes base64; `problem` is reported if it is something else.
    fn of_base64(data: &str, max_bytes: usize, problem: &str) -> Result<Self, String> {
        if data.len() / 4 * 3 > max_bytes.saturating_add(2) {
            return Err(too_large());
        }
        // Some encoders break lines.
        let data: Cow<'_, str> = match data.bytes().any(|byte| byte.is_ascii_whitespace()) {
            true => data.split_ascii_whitespace().collect::<String>().into(),
            false => data.into(),
        };
        // With or without padding, in both alphabets: senders differ.
        let decoded = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD]
            .iter()
            .find_map(|engine| engine.decode(data.as_bytes()).ok());
        let bytes = decoded.ok_or_else(|| problem.to_owned())?;
        Ok(Self { bytes, name: "attachment".to_owned(), declared: None, url: None })
    }
}

/// Reads the part of a `data:` URI after the scheme.
fn of_data_uri(rest: &str, max_bytes: usize) -> Result<Loaded, String> {
    let (head, data) = rest.split_once(',').ok_or("invalid `data:` URI: no comma")?;
    let (declared, loaded) = match head.strip_suffix(";base64") {
        Some(declared) => {
            let problem = "invalid `data:` URI: not base64";
            (declared, Loaded::of_base64(data, max_bytes, problem)?)
        }
        None => {
            if data.len() > max_bytes.saturating_mul(3) {
                return Err(too_large());
            }
            let bytes = percent_encoding::percent_decode_str(data).collect();
            (head, Loaded { bytes, name: "attachment".to_owned(), declared: None, url: None })
        }
    };
    let declared = (!declared.is_empty()).then(|| declared.to_owned());
    Ok(Loaded { declared, ..loaded })
}

/// Converts a file to an attachment of the gateway.
async fn attach(file: Loaded, pdf: Option<&PdfReader>) -> Result<Attachment, String> {
    let Loaded { bytes, name, declared, url } = file;
    if bytes.is_empty() {
        return Err(format!("`{name}` is empty"));
    }
    let kind = AttachmentKind::detect(&bytes, declared.as_deref());
    let (word, mime_type) = match kind {
        AttachmentKind::Image(mime_type) => ("image", mime_type),
        AttachmentKind::Audio(mime_type) => ("audio", mime_type),
        AttachmentKind::Pdf => ("file", "application/pdf"),
        AttachmentKind::Video(mime_type) => ("file", mime_type),
        AttachmentKind::Text => ("file", "text/plain"),
        AttachmentKind::Other(found) => {
            let found = clean_line(Untrusted::new(found.as_str()), NAME);
            return Err(format!(
                "`{name}` has an unsupported type ({found}); images, audio, video, PDF and text are \
                 supported"
            ));
        }
    };
    let text = match (kind, pdf) {
        (AttachmentKind::Pdf, Some(reader)) => {
            Some(reader.text(&bytes).await.unwrap_or_else(|why| {
                tracing::info!(%why, "cannot read the text of a PDF");
                format!("(The text of this PDF cannot be read: {why}.)")
            }))
        }
        _ => None,
    };
    Ok(Attachment {
        kind: Some(word.to_owned()),
        mime_type: Some(mime_type.to_owned()),
        file_name: Some(name),
        content: to_raw_value(&STANDARD.encode(bytes)).ok(),
        text,
        url,
        ..Attachment::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_may_have_line_breaks() {
        assert_eq!(Loaded::of_data(" aGVs\r\nbG8=\n", 100).ok().unwrap().bytes, b"hello");
        let error = Loaded::of_data("data:text/plain;base64,aGVsbG8=", 100).err().unwrap();
        assert!(error.contains("pass it as `uri`"), "{error}");
    }
}
