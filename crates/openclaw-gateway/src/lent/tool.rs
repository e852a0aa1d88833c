//! Calls of client tools.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use openclaw_content::{Source, Text, Untrusted, label};
use openclaw_protocol::tools::{InvokeRequestEvent, InvokeResultParams};
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::{
    ApprovalRule, Arguments, AuditName, Content, Decision, Executed, MediaKind, OutcomeDetails,
    Tool, ToolCall, ToolEffect, ToolFailure, ToolOutcome, ToolSource, ToolSpec, check_media,
};
use openclaw_trace::SpanContext;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{Lent, LentToolEntry, PendingCall};

/// The client tools of a session.
#[derive(Debug)]
pub(super) struct LentTools(pub(super) Vec<Arc<LentTool>>);

impl ToolSource for LentTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let allowed = self.0.iter().filter(|tool| tool.decision == Decision::Allowed);
        allowed.map(|tool| Arc::clone(tool) as Arc<dyn Tool>).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tool = self.0.iter().find(|tool| tool.spec().name.as_str() == name)?;
        Some(Arc::clone(tool) as Arc<dyn Tool>)
    }
}

/// A tool provided by a client.
#[derive(Debug)]
pub(super) struct LentTool {
    pub(super) lent: Arc<Lent>,
    pub(super) lender: u64,
    pub(super) decision: Decision,
    pub(super) entries: Arc<Vec<LentToolEntry>>,
    pub(super) nth: usize,
}

impl LentTool {
    fn entry(&self) -> &LentToolEntry {
        &self.entries[self.nth]
    }

    async fn run(&self, call: ToolCall<'_>) -> ToolOutcome {
        let entry = self.entry();
        let lent = &*self.lent;
        let id = format!("lent-{}", lent.next.fetch_add(1, Ordering::Relaxed));
        let (result, answered) = oneshot::channel();
        let watcher = call.options.watcher.cloned();
        let pending = PendingCall { lender: self.lender, result, watcher };
        lent.calls.lock().insert(id.clone(), pending);
        let _under_way = PendingInvocation { lent, id: &id };
        let trace = call.span.context();
        let request = InvokeRequestEvent {
            id: id.clone(),
            node_id: self.lender.to_string(),
            command: entry.spec.name.to_string(),
            params_json: Some(call.arguments.raw().get().to_owned()),
            timeout_ms: u64::try_from(entry.timeout.as_millis()).ok(),
            idempotency_key: Some(id.clone()),
            traceparent: trace.map(|it| it.traceparent().to_string()),
            tracestate: trace.and_then(SpanContext::state).map(str::to_owned),
            baggage: trace.and_then(SpanContext::baggage).map(str::to_owned),
        };
        const GONE: &str = "The client that provides this tool has disconnected.";
        if !lent.callers.send_to_one(self.lender, request) {
            return fail(ToolFailure::Unavailable, GONE);
        }
        match tokio::time::timeout(entry.timeout, answered).await {
            Ok(Ok(result)) => outcome(&entry.spec, &result),
            Ok(Err(_)) => fail(ToolFailure::Unavailable, GONE),
            Err(_) => {
                let message = format!("The tool timed out after {} ms.", entry.timeout.as_millis());
                fail(ToolFailure::TimedOut, &message)
            }
        }
    }
}

/// A call in progress. Dropping it unregisters the call.
struct PendingInvocation<'a> {
    lent: &'a Lent,
    id: &'a str,
}

impl Drop for PendingInvocation<'_> {
    fn drop(&mut self) {
        self.lent.calls.lock().remove(self.id);
    }
}

impl Tool for LentTool {
    fn spec(&self) -> &ToolSpec {
        &self.entry().spec
    }

    fn origin(&self) -> AuditName<'_> {
        let name = self.entry().spec.name.as_str();
        AuditName { name, source: "client", ..AuditName::default() }
    }

    fn decision(&self) -> &Decision {
        &self.decision
    }

    /// A permanent approval is not offered: what the client does with a call cannot be known.
    fn rule(&self, _: &Arguments<'_>) -> ApprovalRule {
        match self.entry().spec.effect {
            ToolEffect::ReadOnly => ApprovalRule::Auto,
            ToolEffect::Unknown | ToolEffect::Destructive => ApprovalRule::Always,
        }
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn validator(&self) -> &LazyValidator {
        &self.entry().validator
    }

    fn execute<'a>(&'a self, call: ToolCall<'a>) -> BoxFuture<'a, Executed> {
        Box::pin(async move { Executed::Done(self.run(call).await) })
    }
}

/// Builds the outcome. A client's result is untrusted content, like any other.
fn outcome(spec: &ToolSpec, result: &InvokeResultParams) -> ToolOutcome {
    let error = result.error.as_ref().and_then(|error| error.message.as_deref());
    let payload = result.payload.as_ref().map(|payload| payload.get());
    // Both names are in the published schema.
    let payload = result.payload_json.as_deref().or(payload);
    if let (true, Some(blocks)) = (result.ok, payload.and_then(blocks)) {
        return ToolOutcome { is_error: blocks.is_error, ..of_blocks(spec, &blocks.content) };
    }
    let text = match (result.ok, payload, error) {
        (true, Some(payload), _) => readable(payload),
        (true, None, _) => String::new(),
        (false, _, error) => {
            error.unwrap_or("The tool failed without an error message.").to_owned()
        }
    };
    if text.is_empty() {
        let content = vec![Content::Text(Text::ours("The result is empty."))];
        return ToolOutcome { content, is_error: !result.ok, details: Box::default() };
    }
    let name = spec.name.as_str();
    match label(Untrusted::new(text), Source::other(name)) {
        Ok((text, findings)) => ToolOutcome {
            details: Box::new(OutcomeDetails {
                untrusted: true,
                source: Some("client"),
                tool: Some(name.into()),
                findings,
                ..OutcomeDetails::default()
            }),
            content: vec![Content::Text(text)],
            is_error: !result.ok,
        },
        Err(_) => fail(ToolFailure::InvalidResponse, "The result cannot be shown."),
    }
}

/// A block of a result, as in MCP.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Block {
    Text { text: String },
    Image { mime_type: String, data: String },
    Audio { mime_type: String, data: String },
}

/// A payload `{"content": [{"type": "text", …}, …]}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Blocks {
    content: Vec<Block>,
    #[serde(default)]
    is_error: bool,
}

/// Returns the blocks of a payload; `None` for any other.
fn blocks(payload: &str) -> Option<Blocks> {
    serde_json::from_str(payload).ok()
}

/// Builds the outcome of blocks: the text first, as one, then images and audio.
fn of_blocks(spec: &ToolSpec, blocks: &[Block]) -> ToolOutcome {
    let name = spec.name.as_str();
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Image { .. } | Block::Audio { .. } => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let mut details = OutcomeDetails {
        untrusted: true,
        source: Some("client"),
        tool: Some(name.into()),
        ..OutcomeDetails::default()
    };
    let mut content = Vec::new();
    if !text.is_empty() {
        let Ok((text, findings)) = label(Untrusted::new(text), Source::other(name)) else {
            return fail(ToolFailure::InvalidResponse, "The result cannot be shown.");
        };
        details.findings = findings;
        content.push(Content::Text(text));
    }
    content.extend(blocks.iter().filter_map(|block| match block {
        Block::Text { .. } => None,
        Block::Image { mime_type, data } => Some(media(MediaKind::Image, mime_type, data)),
        Block::Audio { mime_type, data } => Some(media(MediaKind::Audio, mime_type, data)),
    }));
    if content.is_empty() {
        content.push(Content::Text(Text::ours("The result is empty.")));
    }
    ToolOutcome { content, is_error: false, details: Box::new(details) }
}

fn media(kind: MediaKind, declared: &str, data: &str) -> Content {
    match (check_media(kind, declared, data, kind.max_bytes()), kind) {
        (Ok(mime_type), MediaKind::Image) => {
            Content::Image { mime_type: mime_type.to_owned(), data: data.to_owned() }
        }
        (Ok(mime_type), MediaKind::Audio) => {
            Content::Audio { mime_type: mime_type.to_owned(), data: data.to_owned() }
        }
        (Err(why), _) => {
            let message = format!("[{} that cannot be shown: {why}]", kind.words());
            Content::Placeholder(Text::ours(message))
        }
    }
}

/// Returns a JSON string as text, anything else as JSON.
fn readable(payload: &str) -> String {
    match serde_json::from_str::<Value>(payload) {
        Ok(Value::String(text)) => text,
        _ => payload.to_owned(),
    }
}

fn fail(failure: ToolFailure, message: &str) -> ToolOutcome {
    let mut outcome = ToolOutcome::failure(message);
    outcome.details.failure = Some(failure);
    outcome
}
