//! Images and audio of an answer: what the agent produced, and what its tools returned.

use openclaw_protocol::chat::HistoryParams;
use openclaw_protocol::{Surface, ask, rpc};
use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::Value;

use crate::order::MediaEntry;

/// Maximum number of files of an answer.
const MAX_FILES: usize = 16;
/// Maximum size of all of them in base64, in bytes. Others are only listed.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// Messages of a run that are searched.
const MESSAGES: u32 = 100;

/// Files of an answer.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    pub(crate) blocks: Vec<ContentBlock>,
    pub(crate) list: Vec<MediaEntry>,
    bytes: usize,
}

/// Returns the files of a run, from its conversation.
///
/// # Errors
/// If the conversation cannot be read.
pub(crate) async fn of_run(
    surface: &dyn Surface,
    session: &str,
    agent: Option<&str>,
    run: &str,
) -> Result<Returned, String> {
    let params = HistoryParams {
        session_key: session.to_owned(),
        agent_id: agent.map(ToOwned::to_owned),
        limit: Some(MESSAGES),
        include_media: Some(true),
        ..HistoryParams::default()
    };
    let history = ask::<rpc::ChatHistory>(surface, params).await;
    let messages = history.map_err(|error| error.to_string())?.messages;
    let mut returned = Returned::default();
    for message in messages {
        let Ok(message) = serde_json::from_str::<Value>(message.get()) else { continue };
        if message["runId"] == run && message["role"] != "user" {
            returned.add_all(&message["content"], run);
        }
    }
    Ok(returned)
}

impl Returned {
    /// Adds the files of a content, also those inside tool results.
    fn add_all(&mut self, content: &Value, run: &str) {
        for part in content.as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("toolResult") => self.add_all(&part["content"], run),
                Some(kind @ ("image" | "audio" | "file")) => self.add(kind, part, run),
                _ => {}
            }
        }
    }

    fn add(&mut self, kind: &str, part: &Value, run: &str) {
        if self.list.len() >= MAX_FILES {
            return;
        }
        let mime_type = part["mimeType"].as_str().unwrap_or("application/octet-stream");
        let data = part["data"].as_str().unwrap_or_default();
        let is_omitted = data.is_empty() || self.bytes + data.len() > MAX_BYTES;
        let told = part["bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
        self.list.push(MediaEntry {
            mime_type: mime_type.to_owned(),
            bytes: told.unwrap_or(data.len() / 4 * 3),
            omitted: is_omitted,
        });
        if is_omitted {
            return;
        }
        self.bytes += data.len();
        self.blocks.push(match kind {
            "image" => ContentBlock::image(data, mime_type),
            "audio" => ContentBlock::audio(data, mime_type),
            _ => {
                let uri = format!("openclaw://run/{run}/{}", self.list.len());
                ContentBlock::resource(ResourceContents::blob(data, uri).with_mime_type(mime_type))
            }
        });
    }
}
