//! The payloads of events: their names, and the memory that they take.

use serde_json::Value;

use crate::agent_event::{
    AgentData, AgentEvent, ApprovalPhase, RunPhase, ToolPhase, ToolResult, ToolStart, ToolUpdate,
};
use crate::approvals::{self, Approval, published};
use crate::chat::{ChatEvent, ChatState};
use crate::connect::Challenge;
use crate::event::{EventPayload, Shutdown, Tick, names};
use crate::mcp::elicitation::{self, Elicitation, QuestionKind};
use crate::mcp::{ProgressEvent, ServerEvent};
use crate::sessions::ChangedEvent;
use crate::tools::InvokeRequestEvent;

macro_rules! payloads {
    ($($name:ident: $payload:ty, $value:ident => $size:expr;)*) => {$(
        impl EventPayload for $payload {
            const NAME: &'static str = names::$name;

            fn size(&self) -> usize {
                let $value = self;
                $size
            }
        }
    )*};
}

payloads! {
    CONNECT_CHALLENGE: Challenge, _it => 0;
    CHAT: ChatEvent, it => chat(&it.state);
    AGENT: AgentEvent, it => agent(&it.data);
    TICK: Tick, _it => 0;
    SHUTDOWN: Shutdown, _it => 0;
    MCP_SERVER: ServerEvent, it => text(it.error.as_deref());
    MCP_PROGRESS: ProgressEvent, it => text(it.message.as_deref());
    MCP_ELICITATION_REQUESTED: Elicitation, it => elicitation(it);
    MCP_ELICITATION_RESOLVED: elicitation::ResolvedEvent, _it => 0;
    APPROVAL_REQUESTED: Approval, it => approval(it);
    APPROVAL_RESOLVED: approvals::ResolvedEvent, _it => 0;
    NODE_INVOKE_REQUEST: InvokeRequestEvent, it => text(it.params_json.as_deref());
    PLUGIN_APPROVAL_REQUESTED: published::Requested, _it => 0;
    PLUGIN_APPROVAL_RESOLVED: published::Resolved, _it => 0;
    SESSIONS_CHANGED: ChangedEvent, _it => 0;
}

fn text(text: Option<&str>) -> usize {
    text.map_or(0, str::len)
}

fn json(value: Option<&Value>) -> usize {
    let Some(value) = value else { return 0 };
    let content = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| json(Some(item))).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + json(Some(value))).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + content
}

fn chat(state: &ChatState) -> usize {
    match state {
        ChatState::Status { .. } => 0,
        ChatState::Delta { message, delta_text, usage, .. } => {
            json(message.as_ref()) + delta_text.len() + json(usage.as_ref())
        }
        ChatState::Final { message, usage, .. } => json(message.as_ref()) + json(usage.as_ref()),
        ChatState::Aborted { message, error_message, .. } => {
            json(message.as_ref()) + text(error_message.as_deref())
        }
        ChatState::Error { message, error_message, error_detail, usage, .. } => {
            let error = text(error_message.as_deref()) + json(error_detail.as_ref());
            json(message.as_ref()) + json(usage.as_ref()) + error
        }
    }
}

fn agent(data: &AgentData) -> usize {
    match data {
        AgentData::Lifecycle(RunPhase::Start { message, .. }) => text(message.as_deref()),
        AgentData::Lifecycle(RunPhase::Error { error, .. }) => text(error.as_deref()),
        AgentData::Lifecycle(RunPhase::End { .. }) | AgentData::Usage(_) => 0,
        AgentData::Assistant(more) | AgentData::Reasoning(more) => more.delta.len(),
        AgentData::Tool(ToolPhase::Start(ToolStart { args, .. })) => json(args.as_ref()),
        AgentData::Tool(ToolPhase::Update(ToolUpdate { progress, partial_result, .. })) => {
            let message = progress.as_ref().and_then(|it| it.message.as_deref());
            text(message) + json(partial_result.as_ref())
        }
        AgentData::Tool(ToolPhase::Result(ToolResult { text, result, .. })) => {
            text.len() + json(result.as_ref())
        }
        AgentData::Approval(ApprovalPhase::Requested(approval)) => {
            approval.title.len() + text(approval.command.as_deref())
        }
        AgentData::Notice(notice) => notice.text.len(),
        AgentData::Other { data, .. } => json(Some(data)),
    }
}

fn elicitation(asked: &Elicitation) -> usize {
    let wanted = match &asked.wanted {
        QuestionKind::Form { requested_schema } => json(Some(requested_schema)),
        QuestionKind::Url { url } => url.len(),
    };
    asked.message.len() + wanted
}

fn approval(asked: &Approval) -> usize {
    let args = asked.args.as_ref().map_or(0, |args| args.get().len());
    let changes: usize = asked.changes.iter().map(String::len).sum();
    let texts = text(asked.description.as_deref()) + text(asked.whole.as_deref());
    asked.title.len() + args + changes + texts
}
