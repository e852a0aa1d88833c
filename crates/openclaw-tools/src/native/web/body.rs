//! Response bodies: text, an image, or a description.

use openclaw_content::{Source, Untrusted, clean_line};
use reqwest::Response;

use super::super::reply::{OutcomeBuilder, beginning};
use super::html;
use super::rules::FetchError;
use crate::media::image_type;

/// Maximum number of bytes read.
const MAX_BYTES: usize = 5 * 1024 * 1024;

/// A body, possibly truncated.
pub(super) struct PageBody {
    bytes: Vec<u8>,
    has_more: bool,
}

/// Reads a body up to the limit.
pub(super) async fn read(mut response: Response) -> Result<PageBody, FetchError> {
    let mut bytes = Vec::new();
    while let Some(chunk) =
        response.chunk().await.map_err(|error| FetchError::from_client(&error))?
    {
        let room = MAX_BYTES - bytes.len();
        if chunk.len() > room {
            bytes.extend_from_slice(chunk.get(..room).unwrap_or_default());
            return Ok(PageBody { bytes, has_more: true });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(PageBody { bytes, has_more: false })
}

impl PageBody {
    /// Adds the parts that a model can process.
    pub(super) fn show(
        &self,
        reply: OutcomeBuilder,
        declared: &str,
        url: &str,
        max_chars: usize,
    ) -> OutcomeBuilder {
        let Self { bytes, has_more } = self;
        if bytes.is_empty() {
            return reply.say("The response is empty.");
        }
        if let Some(mime_type) = image_type(bytes) {
            return if *has_more {
                reply.say("The response is an image that is too large to be shown.")
            } else {
                reply.picture(mime_type, bytes)
            };
        }
        let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !is_text(&essence, bytes) {
            let kind = match clean_line(Untrusted::new(&essence), 80) {
                kind if kind.is_empty() => "no type".to_owned(),
                kind => format!("the type `{}`", kind.replace('`', "'")),
            };
            let at_least = if *has_more { "at least " } else { "" };
            return reply.say(format!(
                "The response is neither text nor a supported image: {at_least}{} bytes, with {kind}.",
                bytes.len()
            ));
        }
        let text = decode(declared, bytes);
        let is_html = essence.contains("html") || (essence.is_empty() && looks_like_html(&text));
        let text = if is_html { html::readable(&text) } else { text };
        if text.trim().is_empty() {
            return reply.say("The page has no text.");
        }
        let (shown, is_cut) = beginning(&text, max_chars);
        let reply = reply.show(shown, Source::web_fetch(url));
        if is_cut {
            let chars = shown.chars().count();
            return reply.cut().say(format!(
                "The text is too long: only its first {chars} characters are shown."
            ));
        }
        if *has_more {
            let most = MAX_BYTES / 1024 / 1024;
            return reply
                .cut()
                .say(format!("The response is larger than {most} MB: the rest is missing."));
        }
        reply
    }
}

fn is_text(essence: &str, bytes: &[u8]) -> bool {
    let is_declared = essence.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "toml", "x-www-form-urlencoded"]
            .iter()
            .any(|kind| essence.ends_with(kind))
        || essence.is_empty();
    let head = bytes.get(..8 * 1024).unwrap_or(bytes);
    is_declared && !head.contains(&0)
}

fn looks_like_html(text: &str) -> bool {
    let head = beginning(text.trim_start(), 200).0.to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

/// Decodes UTF-8, or Latin-1 where declared.
fn decode(declared: &str, bytes: &[u8]) -> String {
    let declared = declared.to_ascii_lowercase();
    let charset = declared.split("charset=").nth(1).unwrap_or_default();
    let charset = charset.trim_start_matches(['"', '\'']);
    let is_latin =
        ["iso-8859-1", "windows-1252", "latin1"].iter().any(|it| charset.starts_with(it));
    if is_latin && std::str::from_utf8(bytes).is_err() {
        return bytes.iter().map(|byte| char::from(*byte)).collect();
    }
    String::from_utf8_lossy(bytes).into_owned()
}
