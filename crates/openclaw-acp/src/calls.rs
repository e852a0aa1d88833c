//! Events about calls, as the client shows them.

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    ToolCallContent, ToolCallStatus, ToolCallUpdateFields,
};
use openclaw_protocol::agent_event::{ToolPhase, ToolProgress, ToolResult, ToolStart};
use openclaw_tools::native::{self, Native, PlanStep, StepStatus};
use serde_json::{Value, json};

use crate::builtin::{BuiltinTool, EditorTool};
use crate::client::SessionClient;
use crate::content::{block, printable_text, text_content};
use crate::describe::CallDescriber;
use crate::open_calls::{OpenCall, OpenCalls};

/// Handles an event about a call.
pub(crate) fn on_tool(
    phase: ToolPhase,
    calls: &OpenCalls,
    describer: &CallDescriber,
    client: &SessionClient,
) {
    match phase {
        ToolPhase::Start(start) => begin(start, calls, describer, client),
        ToolPhase::Update(update) => {
            let call = calls.find(&update.tool_call_id).filter(|call| !is_plan(&call.name));
            if let (Some(call), Some(progress)) = (call, update.progress.and_then(progress)) {
                let fields = ToolCallUpdateFields::new()
                    .status(ToolCallStatus::InProgress)
                    .content(vec![text_content(progress)]);
                client.update_call(call.id, fields);
            }
        }
        ToolPhase::Result(ended) => {
            let Some(call) = calls.remove(&ended.tool_call_id) else { return };
            if is_plan(&call.name) {
                let plan = plan(&call.args).filter(|_| !ended.is_error);
                plan.into_iter().for_each(|plan| client.send(plan));
            } else {
                client.update_call(call.id.clone(), result(call, &ended));
            }
        }
    }
}

fn begin(start: ToolStart, calls: &OpenCalls, describer: &CallDescriber, client: &SessionClient) {
    let (own, name) = (start.tool_call_id.as_str(), start.name.as_str());
    let args = start.args.unwrap_or_default();
    // An unknown tool has no label.
    let label = start.label.as_deref().filter(|label| !label.is_empty()).unwrap_or(name);
    let mut call = OpenCall::new(calls.id_of(own), own, name, args.clone());
    if is_plan(name) {
        return calls.add(call);
    }
    let shown = describer.describe(call.id.clone(), name, label, args);
    // For built-in tools, the changes that are shown are also the result.
    call.is_shown = !shown.content.is_empty() && BuiltinTool::find(name).is_some();
    call.changes.clone_from(&shown.content);
    calls.add(call);
    client.send(SessionUpdate::ToolCall(shown.status(ToolCallStatus::InProgress)));
}

/// Describes the progress of a call.
fn progress(progress: ToolProgress) -> Option<String> {
    match (progress.message, progress.percent) {
        (Some(message), Some(percent)) => Some(format!("{percent:.0} %: {message}")),
        (Some(message), None) => Some(message),
        (None, Some(percent)) => Some(format!("{percent:.0} %")),
        (None, None) => None,
    }
}

/// Describes how a call ended.
fn result(call: OpenCall, ended: &ToolResult) -> ToolCallUpdateFields {
    let is_error = ended.is_error;
    let output = printable_text(&ended.text);
    let raw = raw_output(&output, is_error, ended.failure.as_deref(), ended.duration_ms);
    // The result of an edit is the diff, and that of a command is its terminal, also if it fails.
    let is_terminal = EditorTool::find(&call.name) == Some(EditorTool::Run);
    let is_complete = call.is_shown && (is_terminal || !is_error);
    let content = (!is_complete).then(|| {
        let result = call.result.unwrap_or_else(|| vec![text_content(output)]);
        // Those of a server are what it was asked for; it says what it did.
        let changes = call.changes.into_iter().filter(|_| !is_error);
        changes.chain(result).collect::<Vec<_>>()
    });
    ToolCallUpdateFields::new().status(end_status(is_error)).content(content).raw_output(raw)
}

pub(crate) fn end_status(is_error: bool) -> ToolCallStatus {
    if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed }
}

/// The output of a call for programs, with what the gateway knows about it.
pub(crate) fn raw_output(
    text: &str,
    is_error: bool,
    failure: Option<&str>,
    duration_ms: Option<f64>,
) -> Value {
    let mut raw = json!({ "text": text, "isError": is_error });
    if let Some(failure) = failure {
        raw["failure"] = json!(failure);
    }
    if let Some(duration) = duration_ms {
        raw["durationMs"] = json!(duration);
    }
    raw
}

/// Converts the result of a lent tool.
pub(crate) fn result_content(blocks: &[Value]) -> Vec<ToolCallContent> {
    let content = blocks.iter().filter_map(block).map(|block| match block {
        ContentBlock::Text(text) => text_content(printable_text(&text.text)),
        block => ToolCallContent::Content(Content::new(block)),
    });
    content.collect()
}

/// Ends the calls of a turn that is over, and has no result for them.
pub(crate) fn close(calls: &OpenCalls, client: &SessionClient) {
    for call in calls.take().into_iter().filter(|call| !is_plan(&call.name)) {
        client.update_call(call.id, ToolCallUpdateFields::new().status(ToolCallStatus::Failed));
    }
}

/// Whether a call only shows a plan, for which clients have a place of its own.
pub(crate) fn is_plan(name: &str) -> bool {
    BuiltinTool::find(name) == Some(BuiltinTool::Native(Native::UpdatePlan))
}

/// The plan in the arguments of a call.
pub(crate) fn plan(args: &Value) -> Option<SessionUpdate> {
    let plan: native::Plan = serde_json::from_value(args.clone()).ok()?;
    let entry = |PlanStep { step, status }| {
        let status = match status {
            StepStatus::Pending => PlanEntryStatus::Pending,
            StepStatus::InProgress => PlanEntryStatus::InProgress,
            StepStatus::Completed => PlanEntryStatus::Completed,
        };
        PlanEntry::new(printable_text(&step), PlanEntryPriority::Medium, status)
    };
    let is_valid = plan.is_valid();
    let entries: Vec<PlanEntry> = plan.plan.into_iter().map(entry).collect();
    is_valid.then(|| SessionUpdate::Plan(Plan::new(entries)))
}
