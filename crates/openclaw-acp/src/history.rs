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
use openclaw_protocol::rpc;
use openclaw_protocol::sessions::DescribeParams;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::builtin::BuiltinTool;
use crate::calls::{end_status, is_plan, plan, raw_output};
use crate::client::SessionClient;
use crate::content::block;
use crate::describe::CallDescriber;
use crate::gateway::GatewaySession;

/// Messages per request.
const PAGE: u32 = 200;
/// Maximum number of messages that are replayed: the newest ones.
const MAX_MESSAGES: usize = 5_000;
/// Maximum length of a text, in characters.
const MAX_CHARS: u32 = 100_000;
/// The timeout of a page.
const ANSWER: Duration = Duration::from_secs(60);

/// Sends the messages of a session, oldest first, until it is `ended`.
///
/// # Errors
/// If the gateway does not return them.
pub(crate) async fn replay(
    gateway: &GatewaySession,
    client: &SessionClient,
    describer: &CallDescriber,
    ended: &CancellationToken,
) -> Result<(), Error> {
    let pages = fetch(gateway).await?;
    // The kinds of the calls depend on it.
    let labels = describer.catalog.fetch().await;
    let mut replay =
        Replay { describer, labels, nth: 0, calls: BTreeMap::new(), updates: Vec::new() };
    // As fast as the client reads them: a long history neither takes more memory nor loses a part.
    let send = async |updates: Vec<SessionUpdate>| {
        for update in updates {
            tokio::select! {
                () = client.updates.room() => client.send(update),
                // Nothing is sent any more.
                () = ended.cancelled() => return,
            }
        }
    };
    for raw in pages.iter().rev().flatten() {
        if let Ok(message) = serde_json::from_str::<Value>(raw.get()) {
            replay.show(&message);
            send(std::mem::take(&mut replay.updates)).await;
        }
    }
    replay.finish();
    send(replay.updates).await;
    show_usage(gateway, client).await;
    Ok(())
}

/// Fetches the messages of a session in pages, the newest page first.
async fn fetch(gateway: &GatewaySession) -> Result<Vec<Vec<Box<RawValue>>>, Error> {
    let mut pages: Vec<Vec<Box<RawValue>>> = Vec::new();
    let mut offset = None;
    let mut count = 0;
    loop {
        let params = HistoryParams {
            session_key: gateway.key.clone(),
            limit: Some(PAGE),
            offset,
            max_chars: Some(MAX_CHARS),
            include_media: Some(true),
            ..HistoryParams::default()
        };
        let page = gateway.ask_within::<rpc::ChatHistory>(ANSWER, params).await?;
        count += page.messages.len();
        offset = page.next_offset;
        pages.push(page.messages);
        if offset.is_none() || count >= MAX_MESSAGES {
            return Ok(pages);
        }
    }
}

/// Sends how much of the context is used, if the gateway knows it.
pub(crate) async fn show_usage(gateway: &GatewaySession, client: &SessionClient) {
    let params = DescribeParams { key: gateway.key.clone(), ..DescribeParams::default() };
    let described = gateway.ask_within::<rpc::SessionsDescribe>(ANSWER, params).await;
    let row = described.ok().and_then(|described| described.session);
    let tokens = row.and_then(|row| row.total_tokens.zip(row.context_tokens));
    if let Some((used, size)) = tokens {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "numbers of tokens are small and positive"
        )]
        let usage = UsageUpdate::new(used as u64, size as u64);
        client.send(SessionUpdate::UsageUpdate(usage));
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

/// Converts messages to updates.
struct Replay<'d> {
    describer: &'d CallDescriber,
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
        let call = self.describer.describe(id.clone(), name, &label, args);
        let is_shown = !call.content.is_empty() && BuiltinTool::find(name).is_some();
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
        let parts = || part.get("content").and_then(Value::as_array).into_iter().flatten();
        let texts = parts().filter_map(|it| it.get("text")?.as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        let notes = message.get("calls").and_then(Value::as_array).into_iter().flatten();
        let notes = notes.into_iter().find(|it| it["id"] == own);
        let failure = notes.and_then(|it| it.get("failure")?.as_str());
        let duration_ms = notes.and_then(|it| it.get("durationMs")?.as_f64());
        // As in a turn: the result of an edit is the diff.
        let content = (is_error || !call.is_shown).then(|| {
            let blocks = parts().filter_map(block);
            let blocks = blocks.map(|it| ToolCallContent::Content(Content::new(it)));
            let changes = call.changes.iter().filter(|_| !is_error).cloned();
            changes.chain(blocks).collect::<Vec<_>>()
        });
        let fields = ToolCallUpdateFields::new()
            .status(end_status(is_error))
            .content(content)
            .raw_output(raw_output(&text, is_error, failure, duration_ms));
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
