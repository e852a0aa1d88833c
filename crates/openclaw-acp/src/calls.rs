//! Events about calls, as the client shows them.

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    ToolCallContent, ToolCallStatus, ToolCallUpdateFields,
};
use openclaw_tools::native::{self, Native, PlanStep, StepStatus};
use serde_json::{Value, json};

use crate::builtin::{BuiltinTool, EditorTool};
use crate::client::SessionClient;
use crate::content::{block, printable_text, text_content};
use crate::describe::CallDescriber;
use crate::open_calls::{OpenCall, OpenCalls};

/// Handles an event about a call.
pub(crate) fn on_tool(
    data: &Value,
    calls: &OpenCalls,
    describer: &CallDescriber,
    client: &SessionClient,
) {
    let Some(own) = text(data, "toolCallId") else { return };
    match text(data, "phase") {
        Some("start") => begin(own, data, calls, describer, client),
        Some("update") => {
            let call = calls.find(own).filter(|call| !is_plan(&call.name));
            if let (Some(call), Some(progress)) = (call, data.get("progress").and_then(progress)) {
                let fields = ToolCallUpdateFields::new()
                    .status(ToolCallStatus::InProgress)
                    .content(vec![text_content(progress)]);
                client.update_call(call.id, fields);
            }
        }
        Some("result") => {
            let Some(call) = calls.remove(own) else { return };
            let is_error = data.get("isError").and_then(Value::as_bool).unwrap_or_default();
            if is_plan(&call.name) {
                let plan = plan(&call.args).filter(|_| !is_error);
                plan.into_iter().for_each(|plan| client.send(plan));
            } else {
                client.update_call(call.id.clone(), result(call, is_error, data));
            }
        }
        _ => {}
    }
}

fn text<'d>(data: &'d Value, name: &str) -> Option<&'d str> {
    data.get(name).and_then(Value::as_str)
}

fn begin(
    own: &str,
    data: &Value,
    calls: &OpenCalls,
    describer: &CallDescriber,
    client: &SessionClient,
) {
    let name = text(data, "name").unwrap_or_default();
    let args = data.get("args").cloned().unwrap_or(Value::Null);
    // An unknown tool has no label.
    let label = text(data, "label").filter(|label| !label.is_empty()).unwrap_or(name);
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
fn progress(progress: &Value) -> Option<String> {
    let message = text(progress, "message");
    let percent = progress.get("percent").and_then(Value::as_f64);
    match (message, percent) {
        (Some(message), Some(percent)) => Some(format!("{percent:.0} %: {message}")),
        (Some(message), None) => Some(message.to_owned()),
        (None, Some(percent)) => Some(format!("{percent:.0} %")),
        (None, None) => None,
    }
}

/// Describes how a call ended.
fn result(call: OpenCall, is_error: bool, data: &Value) -> ToolCallUpdateFields {
    let output = printable_text(text(data, "text").unwrap_or_default());
    let raw = raw_output(&output, is_error, data);
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

/// The output of a call for programs. `notes` has what the gateway knows about it.
pub(crate) fn raw_output(text: &str, is_error: bool, notes: &Value) -> Value {
    let mut raw = json!({ "text": text, "isError": is_error });
    for name in ["failure", "durationMs"] {
        if let Some(value) = notes.get(name).filter(|it| !it.is_null()) {
            raw[name] = value.clone();
        }
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
