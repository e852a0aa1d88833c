//! The history of a loaded session, replayed as updates.

use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, SessionUpdate, ToolCallId, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use openclaw_protocol::chat::HistoryParams;
use openclaw_protocol::{ask, rpc};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::calls::{describe, text_content};
use crate::error::{internal, refused};
use crate::session::{Session, chunk};

/// Messages per request.
const PAGE: u32 = 200;
/// Maximum number of messages that are replayed: the newest ones.
const MAX_MESSAGES: usize = 5_000;
/// Maximum length of a text, in characters.
const MAX_CHARS: u32 = 100_000;
/// The timeout of a page.
const ANSWER: Duration = Duration::from_secs(60);

/// Sends the messages of a session, oldest first.
///
/// # Errors
/// If the gateway does not return them.
pub(crate) async fn replay(session: &Session) -> Result<(), Error> {
    let mut pages: Vec<Vec<Box<RawValue>>> = Vec::new();
    let (mut offset, mut count) = (None, 0);
    loop {
        let params = HistoryParams {
            session_key: session.key.clone(),
            limit: Some(PAGE),
            offset,
            max_chars: Some(MAX_CHARS),
            include_media: Some(true),
            ..HistoryParams::default()
        };
        let page = timeout(ANSWER, ask::<rpc::ChatHistory>(&*session.surface, params)).await;
        let page = page.map_err(|_| internal("the gateway did not respond in time"))?;
        let page = page.map_err(|error| refused(&error))?;
        count += page.messages.len();
        offset = page.next_offset;
        pages.push(page.messages);
        if offset.is_none() || count >= MAX_MESSAGES {
            break;
        }
    }
    let mut nth = 0;
    for raw in pages.iter().rev().flatten() {
        if let Ok(message) = serde_json::from_str::<Value>(raw.get()) {
            nth += 1;
            show(session, &message, nth);
        }
    }
    Ok(())
}

/// Sends one message. Calls are named after the message, because a model may repeat their ids; the
/// results are in the message that follows.
fn show(session: &Session, message: &Value, nth: usize) {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let parts = message.get("content").and_then(Value::as_array).into_iter().flatten();
    for part in parts {
        let field = |name: &str| part.get(name).and_then(Value::as_str);
        let id = |name: &str, nth: usize| {
            field(name).map(|own| ToolCallId::new(format!("h{nth}-{own}")))
        };
        match (role, field("type")) {
            ("assistant", Some("toolCall")) => {
                let Some(id) = id("id", nth) else { continue };
                let name = field("name").unwrap_or_default();
                let args = part.get("arguments").cloned().unwrap_or_default();
                let call = describe(session, id, name, name, args);
                session.update(SessionUpdate::ToolCall(call.status(ToolCallStatus::Completed)));
            }
            ("toolResult", Some("toolResult")) => {
                let Some(id) = id("toolCallId", nth.saturating_sub(1)) else { continue };
                let is_error = part.get("isError").and_then(Value::as_bool).unwrap_or_default();
                let status =
                    if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
                let texts = part.get("content").and_then(Value::as_array).into_iter().flatten();
                let texts = texts.filter_map(|it| it.get("text")?.as_str());
                let text = texts.collect::<Vec<_>>().join("\n");
                let fields =
                    ToolCallUpdateFields::new().status(status).content(vec![text_content(text)]);
                session.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields)));
            }
            ("user" | "assistant", Some("text" | "image")) => {
                let chunk = match (field("text"), field("data")) {
                    (Some(text), _) => chunk(text),
                    (_, Some(data)) => {
                        let mime_type = field("mimeType").or(field("mime_type"));
                        let image = ImageContent::new(data, mime_type.unwrap_or("image/png"));
                        ContentChunk::new(ContentBlock::Image(image))
                    }
                    _ => continue,
                };
                session.update(match role {
                    "user" => SessionUpdate::UserMessageChunk(chunk),
                    _ => SessionUpdate::AgentMessageChunk(chunk),
                });
            }
            // A summary of what came before, and kinds that are not known.
            _ => {}
        }
    }
}
