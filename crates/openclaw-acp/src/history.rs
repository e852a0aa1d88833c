//! The history of a loaded session, replayed as updates.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    Content, ContentBlock, ContentChunk, EmbeddedResource, EmbeddedResourceResource, SessionUpdate,
    TextResourceContents, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, UsageUpdate,
};
use openclaw_protocol::chat::HistoryParams;
use openclaw_protocol::sessions::DescribeParams;
use openclaw_protocol::{ask, rpc};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::calls::{describe, is_builtin, is_plan, plan, raw_output};
use crate::commands;
use crate::content::block;
use crate::error::{internal, refused};
use crate::session::AcpSession;

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
pub(crate) async fn replay(session: &AcpSession) -> Result<(), Error> {
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
    // The kinds of the calls depend on it.
    let labels = commands::learn_tools(session).await;
    let mut replay =
        Replay { session, labels, nth: 0, calls: BTreeMap::new(), updates: Vec::new() };
    for raw in pages.iter().rev().flatten() {
        if let Ok(message) = serde_json::from_str::<Value>(raw.get()) {
            replay.show(&message);
            replay.send().await;
        }
    }
    replay.finish();
    replay.send().await;
    show_usage(session).await;
    Ok(())
}

/// Sends how much of the context is used, if the gateway knows it.
pub(crate) async fn show_usage(session: &AcpSession) {
    let params = DescribeParams { key: session.key.clone(), ..DescribeParams::default() };
    let described = timeout(ANSWER, ask::<rpc::SessionsDescribe>(&*session.surface, params)).await;
    let row = described.ok().and_then(Result::ok).and_then(|described| described.session);
    let tokens = row.and_then(|row| row.total_tokens.zip(row.context_tokens));
    if let Some((used, size)) = tokens {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "numbers of tokens are small and positive"
        )]
        let usage = UsageUpdate::new(used as u64, size as u64);
        session.updates.send(SessionUpdate::UsageUpdate(usage));
    }
}

/// The label of a tool of a session's MCP server, from its name: it may not be lent yet.
fn label(name: &str) -> String {
    let parts = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    match parts {
        Some((server, tool)) => format!("MCP: {server}/{tool}"),
        None => name.to_owned(),
    }
}

/// A call whose result follows in a later message.
struct ReplayedCall {
    id: ToolCallId,
    /// What it changes in files.
    changes: Vec<ToolCallContent>,
    /// Whether its content is shown already: the changes of a file.
    is_shown: bool,
}

struct Replay<'s> {
    session: &'s AcpSession,
    /// The labels of the agent's tools, by name.
    labels: BTreeMap<String, String>,
    /// The number of the message. Calls are named after it, because a model may repeat their ids.
    nth: usize,
    /// The calls without a result so far, by the model's id.
    calls: BTreeMap<String, ReplayedCall>,
    /// The updates that are not sent yet.
    updates: Vec<SessionUpdate>,
}

impl Replay<'_> {
    /// Sends the updates as fast as the client reads them: a long history neither takes more memory
    /// nor loses a part.
    async fn send(&mut self) {
        for update in self.updates.drain(..) {
            tokio::select! {
                () = self.session.updates.room() => self.session.updates.send(update),
                // Nothing is sent any more.
                () = self.session.ended.cancelled() => return,
            }
        }
    }

    /// Adds the updates of one message.
    fn show(&mut self, message: &Value) {
        self.nth += 1;
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        for part in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            match (role, part.get("type").and_then(Value::as_str)) {
                ("assistant", Some("toolCall")) => self.call(part),
                ("toolResult", Some("toolResult")) => self.result(part, message),
                ("user" | "assistant", _) => {
                    let shown = if role == "user" { attached_file(part) } else { None };
                    let Some(chunk) = shown.or_else(|| block(part)).map(ContentChunk::new) else {
                        continue;
                    };
                    self.updates.push(match role {
                        "user" => SessionUpdate::UserMessageChunk(chunk),
                        _ => SessionUpdate::AgentMessageChunk(chunk),
                    });
                }
                // A summary of what came before, and kinds that are not known.
                _ => {}
            }
        }
    }

    fn call(&mut self, part: &Value) {
        let field = |name: &str| part.get(name).and_then(Value::as_str);
        let Some(own) = field("id") else { return };
        let name = field("name").unwrap_or_default();
        let id = ToolCallId::new(format!("h{}-{own}", self.nth));
        let args = part.get("arguments").cloned().unwrap_or_default();
        if is_plan(name) {
            return self.updates.extend(plan(&args));
        }
        let label = self.labels.get(name).cloned().unwrap_or_else(|| label(name));
        let call = describe(self.session, id.clone(), name, &label, args);
        let is_shown = !call.content.is_empty() && is_builtin(name);
        let changes = call.content.clone();
        let before = self.calls.insert(own.to_owned(), ReplayedCall { id, changes, is_shown });
        self.updates.push(SessionUpdate::ToolCall(call.status(ToolCallStatus::InProgress)));
        before.into_iter().for_each(|call| self.interrupted(call));
    }

    /// Ends a call without a result: it was interrupted.
    fn interrupted(&mut self, call: ReplayedCall) {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
        let update = ToolCallUpdate::new(call.id, fields);
        self.updates.push(SessionUpdate::ToolCallUpdate(update));
    }

    fn finish(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        calls.into_values().for_each(|call| self.interrupted(call));
    }

    fn result(&mut self, part: &Value, message: &Value) {
        let own = part.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        let Some(call) = self.calls.remove(own) else { return };
        let is_error = part.get("isError").and_then(Value::as_bool).unwrap_or_default();
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let parts = || part.get("content").and_then(Value::as_array).into_iter().flatten();
        let texts = parts().filter_map(|it| it.get("text")?.as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        let notes = message.get("calls").and_then(Value::as_array).into_iter().flatten();
        let notes = notes.into_iter().find(|it| it["id"] == own).cloned().unwrap_or_default();
        // As in a turn: the result of an edit is the diff.
        let content = (is_error || !call.is_shown).then(|| {
            let blocks = parts().filter_map(block);
            let blocks = blocks.map(|it| ToolCallContent::Content(Content::new(it)));
            let changes = call.changes.iter().filter(|_| !is_error).cloned();
            changes.chain(blocks).collect::<Vec<_>>()
        });
        let fields = ToolCallUpdateFields::new()
            .status(status)
            .content(content)
            .raw_output(raw_output(&text, is_error, &notes));
        let update = ToolCallUpdate::new(call.id, fields);
        self.updates.push(SessionUpdate::ToolCallUpdate(update));
    }
}

/// Returns the text of a file that was attached to a message, as the editor attached it.
fn attached_file(part: &Value) -> Option<ContentBlock> {
    let field = |name: &str| part.pointer(name).and_then(Value::as_str);
    if field("/source/kind") != Some("file") {
        return None;
    }
    let contents = TextResourceContents::new(field("/text")?, field("/source/path")?);
    let resource = EmbeddedResourceResource::TextResourceContents(contents);
    Some(ContentBlock::Resource(EmbeddedResource::new(resource)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_attached_file_is_replayed_as_it_was_attached() {
        let part = json!({ "type": "text", "text": "fn a() {}", "untrusted": true,
            "source": { "kind": "file", "path": "file:///a.rs" } });
        let resource = json!({ "uri": "file:///a.rs", "text": "fn a() {}" });
        let block = serde_json::to_value(attached_file(&part).unwrap()).unwrap();
        assert_eq!(block, json!({ "type": "resource", "resource": resource }));
        for other in [json!({ "kind": "other", "name": "x" }), json!(null)] {
            let part = json!({ "type": "text", "text": "x", "source": other });
            assert_eq!(attached_file(&part), None);
        }
    }

    #[test]
    fn the_label_of_a_server_s_tool_is_derived_from_its_name() {
        assert_eq!(label("mcp__files__read_file"), "MCP: files/read_file");
        assert_eq!(label("mcp__resources"), "mcp__resources");
        assert_eq!(label("read"), "read");
    }
}
