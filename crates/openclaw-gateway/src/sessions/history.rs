//! Reads a session's history page by page. A page is limited in bytes, so that it fits into a
//! message.

use std::time::UNIX_EPOCH;

use openclaw_agent::{Compacted, MessageRecord};
use openclaw_content::Text;
use openclaw_models::{Message, Part};
use openclaw_protocol::ErrorShape;
use openclaw_protocol::chat::{HistoryParams, HistoryResult, InFlightRun};
use openclaw_sessions::{Entry, EntryKind, ReadFilter, SessionKey, SessionStore, StoreError};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::{Sessions, store_error};

/// Default and maximum number of messages.
const USUAL: u64 = 200;
const MOST: u64 = 1_000;
/// A page with this many bytes takes no further message.
const PAGE: usize = 4 * 1024 * 1024;
/// Maximum size of an unabridged message: with a page, it stays below the announced `maxPayload`.
const WHOLE: usize = 20 * 1024 * 1024;
/// Maximum number of entries read at a time: they may be large.
const MOST_AT_ONCE: u64 = 64;

impl Sessions {
    /// Returns a page of messages, with the session.
    pub(crate) async fn history(
        &self,
        key: &SessionKey,
        params: &HistoryParams,
    ) -> Result<HistoryResult, ErrorShape> {
        let session = self.store.get(key).await.map_err(store_error)?;
        let all = session.as_ref().map_or(0, |session| session.entries);
        let page = read(&*self.store, key, all, params).await.map_err(store_error)?;
        let next_offset = (page.begin > 0).then(|| all - page.begin);
        let session_info = match &session {
            Some(session) => self.row(session).await,
            None => self.missing(key).await,
        };
        let active = session_info.active_run_ids.iter().flatten().next().cloned();
        Ok(HistoryResult {
            session_key: key.to_string(),
            session_id: session_info.session_id.clone(),
            messages: page.messages,
            has_more: next_offset.map(|_| true),
            next_offset,
            thinking_level: None,
            session_info: Some(session_info),
            defaults: Some(self.defaults().await),
            // The next delta has the text.
            in_flight_run: active.map(|run_id| InFlightRun { run_id, text: String::new() }),
        })
    }
}

/// Messages, and the number of messages before them.
struct Page {
    messages: Vec<Box<RawValue>>,
    begin: u64,
}

/// Reads backwards from the end of the page.
async fn read(
    store: &dyn SessionStore,
    key: &SessionKey,
    all: u64,
    params: &HistoryParams,
) -> Result<Page, StoreError> {
    let end = all.saturating_sub(params.offset.unwrap_or(0));
    let wanted = params.limit.map_or(USUAL, u64::from).clamp(1, MOST);
    let first = end.saturating_sub(wanted);
    let view = View {
        max_chars: params.max_chars.map(|it| it as usize),
        media: params.include_media == Some(true),
    };
    let mut page = Page { messages: Vec::new(), begin: end };
    let mut bytes = 0;
    let mut at_once = 1;
    'page: while page.begin > first {
        let step = at_once.min(page.begin - first);
        // Sequence numbers begin at 1 and have no gaps.
        let filter = ReadFilter {
            from_seq: page.begin - step + 1,
            limit: usize::try_from(step).unwrap_or(usize::MAX),
            last: false,
        };
        let mut entries = store.read(key, filter).await?;
        // A read is limited in bytes, too: if the last entry is missing, it is read alone.
        if entries.last().is_some_and(|entry| entry.seq < page.begin) {
            let last = ReadFilter { from_seq: page.begin, limit: 1, last: false };
            entries = store.read(key, last).await?;
        }
        // Estimate how many entries of this size fit into a page.
        let weights = entries.iter().map(|entry| weight(&entry.body)).sum::<usize>();
        let fit = PAGE * entries.len() / weights.max(1);
        at_once = u64::try_from(fit).unwrap_or(MOST_AT_ONCE).clamp(1, MOST_AT_ONCE);
        let before = page.begin;
        for entry in entries.iter().rev().filter(|entry| entry.seq <= before) {
            let message = view.message(entry);
            let size = message.as_ref().map_or(0, |message| message.get().len());
            if bytes > 0 && bytes + size > PAGE {
                break 'page;
            }
            bytes += size;
            page.messages.extend(message);
            page.begin = entry.seq - 1;
        }
        if page.begin == before {
            page.begin -= 1;
        }
    }
    page.messages.reverse();
    Ok(page)
}

/// Approximate size of a body in bytes. Its nesting is limited.
fn weight(body: &Value) -> usize {
    match body {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(key, it)| key.len() + weight(it)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// Replaces the content of a message that is too large.
fn too_large(mut message: Value) -> Value {
    message["content"] = json!([{ "type": "text", "text": "(too large to show)" }]);
    message["calls"] = json!([]);
    message
}

/// How much of each message is returned.
#[derive(Clone, Copy)]
struct View {
    max_chars: Option<usize>,
    media: bool,
}

impl View {
    /// A message that fits into a response: without media if necessary, then with less text.
    fn message(self, entry: &Entry) -> Option<Box<RawValue>> {
        let mut view = self;
        loop {
            let message = to_raw_value(&view.whole(entry)?).ok()?;
            let chars = match view.max_chars {
                _ if message.get().len() <= WHOLE => return Some(message),
                _ if view.media => None,
                None => Some(WHOLE / 4),
                Some(0) => return to_raw_value(&too_large(view.whole(entry)?)).ok(),
                Some(chars) => Some(chars.min(WHOLE / 4) / 4),
            };
            view = Self { max_chars: chars.or(view.max_chars), media: false };
        }
    }

    /// A message in the format of the protocol.
    fn whole(self, entry: &Entry) -> Option<Value> {
        let at = entry.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let timestamp = u64::try_from(at).unwrap_or(u64::MAX);
        let id = entry.seq.to_string();
        if entry.kind == EntryKind::Compaction {
            let compacted: Compacted = serde_json::from_value(entry.body.clone()).ok()?;
            let content: Vec<Value> = compacted.summary.iter().map(|it| self.text(it)).collect();
            return Some(
                json!({ "role": "system", "id": id, "content": content, "timestamp": timestamp }),
            );
        }
        let record: MessageRecord = serde_json::from_value(entry.body.clone()).ok()?;
        let (role, content): (&str, Vec<Value>) = match &record.message {
            Message::User { parts } => ("user", self.parts(parts)),
            Message::Assistant { text, tool_uses, parts, .. } => {
                let mut content = Vec::new();
                if !text.is_empty() {
                    content.push(json!({ "type": "text", "text": self.cut(text) }));
                }
                content.extend(self.parts(parts));
                content.extend(tool_uses.iter().map(|it| {
                    let arguments = serde_json::from_str::<Value>(&it.arguments);
                    let arguments = arguments.unwrap_or_else(|_| Value::String(it.arguments.clone()));
                    json!({ "type": "toolCall", "id": it.id, "name": it.name, "arguments": arguments })
                }));
                ("assistant", content)
            }
            Message::Tool { results } => {
                let results = results.iter().map(|it| {
                    json!({ "type": "toolResult", "toolCallId": it.id, "name": it.name,
                            "isError": it.is_error, "content": self.parts(&it.parts) })
                });
                ("toolResult", results.collect())
            }
        };
        Some(json!({
            "role": role,
            "id": id,
            "__openclaw": identity(entry, role),
            "content": content,
            "timestamp": timestamp,
            "model": record.model,
            "usage": record.usage,
            "calls": record.calls,
            "runId": entry.run,
        }))
    }

    fn parts(self, parts: &[Part]) -> Vec<Value> {
        parts.iter().map(|part| self.part(part)).collect()
    }

    fn part(self, part: &Part) -> Value {
        let described = |kind: &str, mime_type: &str, data: &str| {
            let bytes = data.len() / 4 * 3;
            json!({ "type": kind, "mimeType": mime_type, "bytes": bytes, "omitted": true })
        };
        match part {
            Part::Text(text) => self.text(text),
            Part::Image { mime_type, data } if !self.media => described("image", mime_type, data),
            Part::Audio { mime_type, data } if !self.media => described("audio", mime_type, data),
            Part::File { mime_type, name, data, .. } if !self.media => {
                let mut file = described("file", mime_type, data);
                file["name"] = json!(name);
                file
            }
            Part::Image { .. } | Part::Audio { .. } | Part::File { .. } => {
                serde_json::to_value(part).unwrap_or_default()
            }
        }
    }

    fn text(self, text: &Text) -> Value {
        text_part(text, &self.cut(text.expose()))
    }

    fn cut(self, text: &str) -> String {
        match self.max_chars.and_then(|most| text.char_indices().nth(most)) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        }
    }
}

/// How clients of the Node gateway recognize a message: their own one by the id of its run.
fn identity(entry: &Entry, role: &str) -> Value {
    let mut identity = json!({ "id": entry.seq.to_string(), "seq": entry.seq });
    if let Some(run) = &entry.run {
        match role {
            "user" => identity["idempotencyKey"] = json!(format!("{run}:user")),
            _ => identity["runId"] = json!(run),
        }
    }
    identity
}

/// A text, or the beginning of it, with its source.
pub(crate) fn text_part(text: &Text, shown: &str) -> Value {
    match text.source() {
        Some(source) => {
            json!({ "type": "text", "text": shown, "untrusted": true, "source": source })
        }
        None => json!({ "type": "text", "text": shown }),
    }
}
