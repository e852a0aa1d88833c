//! The result of a message.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use schemars::JsonSchema;
use serde::Serialize;

use super::follow::Status;
use crate::media::MediaEntry;

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrderResult {
    /// The answer: all text of the run, in order.
    pub(crate) text: String,
    /// The session. Pass it again to continue.
    pub(crate) session_key: String,
    /// The id of this run.
    pub(crate) run_id: String,
    /// `completed`; `incomplete` if the agent stopped early; `timeout` and `aborted` if the run was
    /// aborted; `failed`.
    #[schemars(extend("enum" = ["completed", "incomplete", "timeout", "aborted", "failed"]))]
    pub(crate) status: &'static str,
    /// Why there is no complete answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The number of tokens used: `inputTokens`, `outputTokens`, `cachedTokens`; and `costUsd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<JsonObject>,
    /// Images, audio and files of the answer, in the order of their content blocks.
    pub(crate) media: Vec<MediaEntry>,
}

/// Builds the result.
pub(crate) fn result(
    output: OrderResult,
    status: Status,
    media: Vec<ContentBlock>,
) -> CallToolResult {
    let mut content = Vec::new();
    if !output.text.is_empty() {
        content.push(ContentBlock::text(output.text.clone()));
    }
    content.extend(media);
    if let Some(note) = note(&output, status) {
        content.push(ContentBlock::text(note));
    } else if content.is_empty() {
        content.push(ContentBlock::text("(The agent returned no text.)"));
    }
    let mut result = match status {
        Status::Failed => CallToolResult::error(content),
        _ => CallToolResult::success(content),
    };
    result.structured_content = serde_json::to_value(output).ok();
    result
}

/// What a caller must know about a result that is not complete.
fn note(output: &OrderResult, status: Status) -> Option<String> {
    let why = output.error.as_deref();
    let key = &output.session_key;
    Some(match status {
        Status::Completed => return None,
        Status::Incomplete => format!(
            "[The agent stopped early: {}. Continue with sessionKey `{key}`.]",
            why.unwrap_or("no reason given")
        ),
        Status::Timeout if output.text.is_empty() => format!(
            "[Timed out before there was an answer; the run was aborted. Continue with sessionKey \
             `{key}`.]"
        ),
        Status::Timeout => format!(
            "[Timed out: the run was aborted, and the text above is what there was so far. \
             Continue with sessionKey `{key}`.]"
        ),
        Status::Aborted => format!("[The run was aborted. Continue with sessionKey `{key}`.]"),
        Status::Failed => {
            format!("[The run failed: {}. sessionKey `{key}`.]", why.unwrap_or("no reason given"))
        }
    })
}

/// A result that reports a failure to the client's model.
pub(crate) fn failure(words: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(words)])
}
