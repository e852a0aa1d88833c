//! Images, audio and files of an answer: what the agent produced, and what its tools returned. They
//! are read from the conversation, where they stay: each has a URI that it can be read by later.

use openclaw_protocol::chat::{HistoryParams, HistoryResult};
use openclaw_protocol::{Surface, ask, rpc};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{ContentBlock, Resource, ResourceContents};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Maximum number of files of an answer.
const MAX_FILES: usize = 16;
/// Maximum size of all of them in base64, in bytes. Others are linked.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of messages of a run that are searched.
const MESSAGES: u32 = 200;
/// The beginning of the URI of a file: the session, the message and the number of the file follow.
const SCHEME: &str = "openclaw://media/";

/// Files of an answer.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    pub(crate) blocks: Vec<ContentBlock>,
    pub(crate) list: Vec<MediaEntry>,
}

/// A file of the answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MediaEntry {
    /// Its type.
    pub(crate) mime_type: String,
    /// Its size in bytes.
    pub(crate) bytes: usize,
    /// Whether it is too large to be part of the result. Then it is linked.
    pub(crate) omitted: bool,
    /// Where it can be read, with `resources/read`.
    pub(crate) uri: String,
}

/// A conversation whose files are read.
pub(crate) struct MediaConversation<'a> {
    pub(crate) surface: &'a dyn Surface,
    pub(crate) session: &'a str,
    pub(crate) agent: Option<&'a str>,
}

/// A file of a message.
struct Found {
    /// The message.
    message: u64,
    /// Its position among the files of the message.
    nth: usize,
    kind: &'static str,
    mime_type: String,
    bytes: usize,
}

impl MediaConversation<'_> {
    /// Returns the files of a run. Those that are too large together are links, or for a client that
    /// does not know links, texts with the URI.
    ///
    /// # Errors
    /// If the conversation cannot be read.
    pub(crate) async fn files_of(&self, run: &str, links: bool) -> Result<Returned, String> {
        let (session, all) = self.find(run).await?;
        let mut returned = Returned::default();
        let (mut room, mut read) = (MAX_BYTES, None);
        for found in all.into_iter().take(MAX_FILES) {
            let uri = uri(&session, &found);
            let needed = found.bytes.div_ceil(3) * 4;
            let mut data = None;
            if needed <= room {
                // Files of one message are read together.
                if read.as_ref().is_none_or(|(message, _)| *message != found.message) {
                    read = Some((found.message, self.message(found.message).await?));
                }
                data = read.as_ref().and_then(|(_, message)| data_of(message, found.nth));
            }
            returned.list.push(MediaEntry {
                mime_type: found.mime_type.clone(),
                bytes: found.bytes,
                omitted: data.is_none(),
                uri: uri.clone(),
            });
            room = room.saturating_sub(data.as_ref().map_or(0, String::len));
            returned.blocks.push(block(&found, data, &uri, links));
        }
        Ok(returned)
    }

    /// Finds the files of a run. Returns the full key of the session, too.
    async fn find(&self, run: &str) -> Result<(String, Vec<Found>), String> {
        let (mut offset, mut left) = (0, MESSAGES);
        let mut all = Vec::new();
        loop {
            let page = self.page(offset, left.min(100), false).await?;
            let mut is_begun = false;
            for message in page.messages.iter().rev() {
                left = left.saturating_sub(1);
                let Ok(message) = serde_json::from_str::<Value>(message.get()) else { continue };
                if message["runId"] != run {
                    // Messages before the run, or after it.
                    is_begun |= !all.is_empty();
                    continue;
                }
                is_begun |= message["role"] == "user";
                if message["role"] != "user" {
                    all.push(files_in(&message));
                }
            }
            match page.next_offset {
                Some(next) if next > offset && left > 0 && !is_begun => offset = next,
                _ => {
                    let in_order = all.into_iter().rev().flatten().collect();
                    return Ok((page.session_key, in_order));
                }
            }
        }
    }

    /// Reads one message with its files.
    async fn message(&self, id: u64) -> Result<Value, String> {
        let newest = number(self.page(0, 1, false).await?.messages.pop());
        let offset = newest.and_then(|(newest, _)| newest.checked_sub(id));
        let offset = offset.ok_or("message not found")?;
        let read = number(self.page(offset, 1, true).await?.messages.pop());
        match read {
            Some((read, message)) if read == id => Ok(message),
            // Another message was added meanwhile.
            _ => Err("the session has changed; try again".to_owned()),
        }
    }

    async fn page(&self, offset: u64, limit: u32, media: bool) -> Result<HistoryResult, String> {
        let params = HistoryParams {
            session_key: self.session.to_owned(),
            agent_id: self.agent.map(ToOwned::to_owned),
            offset: Some(offset),
            limit: Some(limit),
            max_chars: Some(1),
            include_media: Some(media),
            ..HistoryParams::default()
        };
        ask::<rpc::ChatHistory>(self.surface, params).await.map_err(|error| error.to_string())
    }
}

/// A file that a URI names.
pub(crate) struct FileAddress {
    pub(crate) session: String,
    message: u64,
    nth: usize,
}

impl FileAddress {
    /// Parses a URI; `None` if it does not name a file.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        let mut parts = uri.strip_prefix(SCHEME)?.split('/');
        let session = percent_decode_str(parts.next()?).decode_utf8().ok()?.into_owned();
        let (message, nth) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(Self { session, message, nth })
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) async fn read(
        &self,
        surface: &dyn Surface,
        uri: &str,
    ) -> Result<ResourceContents, String> {
        let conversation = MediaConversation { surface, session: &self.session, agent: None };
        let message = conversation.message(self.message).await?;
        if message["role"] == "user" {
            return Err("file not found".to_owned());
        }
        let found = files_in(&message).into_iter().nth(self.nth).ok_or("file not found")?;
        let data = data_of(&message, self.nth);
        let data = data.ok_or("the file is larger than the gateway sends (20 MB in base64)")?;
        Ok(ResourceContents::blob(data, uri).with_mime_type(found.mime_type))
    }
}

/// The number of a message, and its content.
fn number(message: Option<Box<serde_json::value::RawValue>>) -> Option<(u64, Value)> {
    let message: Value = serde_json::from_str(message?.get()).ok()?;
    Some((message["id"].as_str()?.parse().ok()?, message))
}

/// The files of a message, also those inside tool results.
fn parts(content: &Value) -> Vec<(&'static str, &Value)> {
    let mut all = Vec::new();
    for part in content.as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("toolResult") => all.extend(parts(&part["content"])),
            Some("image") => all.push(("image", part)),
            Some("audio") => all.push(("audio", part)),
            Some("file") => all.push(("file", part)),
            _ => {}
        }
    }
    all
}

fn files_in(message: &Value) -> Vec<Found> {
    let id = message["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_default();
    let found = |(nth, (kind, part)): (usize, (&'static str, &Value))| {
        let mime_type = part["mimeType"].as_str().unwrap_or("application/octet-stream");
        let bytes = part["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
        let data = part["data"].as_str().unwrap_or_default();
        let bytes = bytes.unwrap_or(data.len() / 4 * 3);
        Found { message: id, nth, kind, mime_type: mime_type.to_owned(), bytes }
    };
    parts(&message["content"]).into_iter().enumerate().map(found).collect()
}

/// The data of a file, in base64; `None` if the gateway has left it out.
fn data_of(message: &Value, nth: usize) -> Option<String> {
    let parts = parts(&message["content"]);
    let data = parts.get(nth)?.1["data"].as_str()?;
    (!data.is_empty()).then(|| data.to_owned())
}

fn uri(session: &str, found: &Found) -> String {
    let session = utf8_percent_encode(session, NON_ALPHANUMERIC);
    format!("{SCHEME}{session}/{}/{}", found.message, found.nth)
}

/// A file as content: with its data, or how to read it.
fn block(found: &Found, data: Option<String>, uri: &str, links: bool) -> ContentBlock {
    let Found { message, nth, kind, mime_type, bytes } = found;
    match data {
        Some(data) if *kind == "image" => ContentBlock::image(data, mime_type),
        Some(data) if *kind == "audio" => ContentBlock::audio(data, mime_type),
        Some(data) => {
            ContentBlock::resource(ResourceContents::blob(data, uri).with_mime_type(mime_type))
        }
        None if links => ContentBlock::resource_link(
            Resource::new(uri, format!("{kind}-{message}-{nth}"))
                .with_description("Too large for this result: read it with `resources/read`.")
                .with_mime_type(mime_type)
                .with_size(u64::try_from(*bytes).unwrap_or(u64::MAX)),
        ),
        None => ContentBlock::text(format!(
            "[{mime_type}, {bytes} bytes, is too large for this result. Read it as the resource {uri}]"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> Found {
        let mime_type = "image/png".to_owned();
        Found { message: 7, nth: 1, kind: "image", mime_type, bytes: 3 }
    }

    #[test]
    fn a_client_that_does_not_know_links_gets_the_uri_as_text() {
        let link = block(&found(), None, "openclaw://media/a/7/1", true);
        assert!(matches!(link, ContentBlock::ResourceLink(_)), "{link:?}");
        let text = block(&found(), None, "openclaw://media/a/7/1", false);
        let text = text.as_text().unwrap();
        assert!(text.text.contains("openclaw://media/a/7/1"), "{text:?}");
    }

    #[test]
    fn a_uri_leads_back_to_the_file() {
        let address = FileAddress::parse(&uri("agent:main:カギ 🔑", &found())).unwrap();
        assert_eq!(address.session, "agent:main:カギ 🔑");
        assert_eq!((address.message, address.nth), (7, 1));
        for bad in ["", "file:///etc/passwd", "openclaw://media/a", "openclaw://media/a/1/2/3"] {
            assert!(FileAddress::parse(bad).is_none(), "{bad}");
        }
    }
}
