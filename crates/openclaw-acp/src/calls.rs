//! Tool calls as the client shows them.

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    ToolCall, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use openclaw_content::{ShownArguments, excerpt, printable, reveal_hidden};
use openclaw_protocol::tools::Risk;
use openclaw_tools::ToolEffect;
use openclaw_tools::native::{self, Native, PlanStep, StepStatus};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::changes;
use crate::client_tools::ClientTool;
use crate::content::{block, text_block};
use crate::session::AcpSession;

/// Maximum number of characters of a command or of arguments that are shown before a call.
const MAX_SHOWN: usize = 20_000;
/// A call of the running turn.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    /// Its id for the client: unique in the session.
    pub(crate) id: ToolCallId,
    /// Its id in the turn, chosen by the model.
    own: String,
    pub(crate) name: String,
    pub(crate) args: Value,
    /// Whether its approval was requested.
    pub(crate) is_asked: bool,
    /// What it changes in files.
    pub(crate) changes: Vec<ToolCallContent>,
    /// Whether its content is shown already: a terminal, or the changes of a file.
    pub(crate) is_shown: bool,
    /// Its result, if the tool belongs to this session. Events have the beginning of its text only.
    pub(crate) result: Option<Vec<ToolCallContent>>,
}

/// Handles an event about a call.
pub(crate) fn on_tool(session: &AcpSession, data: &Value) {
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    let Some(own) = text("toolCallId") else { return };
    match text("phase") {
        Some("start") => {
            let name = text("name").unwrap_or_default();
            let args = data.get("args").cloned().unwrap_or(Value::Null);
            // An unknown tool has no label.
            let label = text("label").filter(|label| !label.is_empty()).unwrap_or(name);
            let id = {
                let mut state = session.lock();
                // A model may use the same id in every turn.
                let id = ToolCallId::new(format!("{}-{own}", state.turns));
                state.calls.push(OpenCall {
                    id: id.clone(),
                    own: own.to_owned(),
                    name: name.to_owned(),
                    args: args.clone(),
                    is_asked: false,
                    changes: Vec::new(),
                    is_shown: false,
                    result: None,
                });
                id
            };
            if is_plan(name) {
                return;
            }
            let call = describe(session, id, name, label, args).status(ToolCallStatus::InProgress);
            if !call.content.is_empty() {
                keep_changes(session, own, &call.content);
            }
            session.updates.send(SessionUpdate::ToolCall(call));
        }
        Some("update") => {
            let progress = data.get("progress");
            let message = progress.and_then(|it| it.get("message")?.as_str());
            let percent = progress.and_then(|it| it.get("percent")?.as_f64());
            let words = match (message, percent) {
                (Some(message), Some(percent)) => format!("{percent:.0} %: {message}"),
                (Some(message), None) => message.to_owned(),
                (None, Some(percent)) => format!("{percent:.0} %"),
                (None, None) => return,
            };
            if let Some(call) = find(session, own).filter(|call| !is_plan(&call.name)) {
                let fields = ToolCallUpdateFields::new()
                    .status(ToolCallStatus::InProgress)
                    .content(vec![text_content(words)]);
                session
                    .updates
                    .send(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.id, fields)));
            }
        }
        Some("result") => {
            let Some(call) = find(session, own) else { return };
            session.lock().calls.retain(|open| open.own != own);
            let is_error = data.get("isError").and_then(Value::as_bool).unwrap_or_default();
            if is_plan(&call.name) {
                let plan = plan(&call.args).filter(|_| !is_error);
                return plan.into_iter().for_each(|plan| session.updates.send(plan));
            }
            let output = clean(text("text").unwrap_or_default());
            let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
            let raw = raw_output(&output, is_error, data);
            // The result of an edit is the diff, and that of a command is its terminal, also if it
            // fails.
            let is_terminal = ClientTool::find(&call.name) == Some(ClientTool::Run);
            let is_complete = call.is_shown && (is_terminal || !is_error);
            let content = (!is_complete).then(|| {
                let result = call.result.unwrap_or_else(|| vec![text_content(output)]);
                // Those of a server are what it was asked for; it says what it did.
                let changes = call.changes.into_iter().filter(|_| !is_error);
                changes.chain(result).collect::<Vec<_>>()
            });
            let fields =
                ToolCallUpdateFields::new().status(status).content(content).raw_output(raw);
            session
                .updates
                .send(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.id, fields)));
        }
        _ => {}
    }
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

/// Records the result of a call of one of the session's tools.
pub(crate) fn record(session: &AcpSession, name: &str, arguments: &RawValue, blocks: &[Value]) {
    let Ok(args) = serde_json::from_str::<Value>(arguments.get()) else { return };
    let content = blocks.iter().filter_map(block).map(|block| match block {
        ContentBlock::Text(text) => text_content(clean(&text.text)),
        block => ToolCallContent::Content(Content::new(block)),
    });
    let content: Vec<ToolCallContent> = content.collect();
    let mut state = session.lock();
    let mut same = state.calls.iter_mut().filter(|call| call.name == name && call.args == args);
    if let Some(call) = same.find(|call| call.result.is_none()).filter(|_| !content.is_empty()) {
        call.result = Some(content);
    }
}

/// Escapes what could change the look of other text; a client may be a terminal.
fn clean(text: &str) -> String {
    text.split('\t').map(printable).collect::<Vec<_>>().join("\t")
}

fn find(session: &AcpSession, own: &str) -> Option<OpenCall> {
    session.lock().calls.iter().rev().find(|call| call.own == own).cloned()
}

/// Ends the calls of a turn that is over, and has no result for them.
pub(crate) fn close(session: &AcpSession) {
    let calls = std::mem::take(&mut session.lock().calls);
    for call in calls.into_iter().filter(|call| !is_plan(&call.name)) {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Failed);
        session.updates.send(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.id, fields)));
    }
}

/// Keeps the changes that are shown. For built-in tools they are also the result.
fn keep_changes(session: &AcpSession, own: &str, changes: &[ToolCallContent]) {
    if let Some(call) = session.lock().calls.iter_mut().rev().find(|call| call.own == own) {
        call.is_shown = is_builtin(&call.name);
        call.changes = changes.to_vec();
    }
}

/// Whether a call only shows a plan, for which clients have a place of its own.
pub(crate) fn is_plan(name: &str) -> bool {
    native(name) == Some(Native::UpdatePlan)
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
        PlanEntry::new(clean(&step), PlanEntryPriority::Medium, status)
    };
    let is_valid = plan.is_valid();
    let entries: Vec<PlanEntry> = plan.plan.into_iter().map(entry).collect();
    is_valid.then(|| SessionUpdate::Plan(Plan::new(entries)))
}

pub(crate) fn text_content(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text_block(text)))
}

/// Describes a call.
pub(crate) fn describe(
    session: &AcpSession,
    id: ToolCallId,
    name: &str,
    label: &str,
    args: Value,
) -> ToolCall {
    let about = About::of(session, name);
    let path = changes::path(session, name, &args);
    let title = about.title.unwrap_or_else(|| label.to_owned());
    // One argument says most about a call of these tools.
    let detail = command_line(name, &args).or_else(|| {
        let detail = ["path", "url"].iter().find_map(|key| args.get(*key)?.as_str());
        detail.map(ToOwned::to_owned)
    });
    let title = match detail.filter(|_| about.is_builtin) {
        Some(detail) => format!("{title}: {}", first_line(&detail)),
        None => title,
    };
    ToolCall::new(id, title)
        .name(name.to_owned())
        .kind(about.kind)
        .content(changes::of(session, name, &args, about.kind))
        .locations(path.into_iter().map(ToolCallLocation::new).collect::<Vec<_>>())
        .raw_input(args)
}

/// The command that a call runs, as it would be typed; `None` if it runs none.
fn command_line(name: &str, args: &Value) -> Option<String> {
    let command = args.get("command").and_then(Value::as_str)?;
    if native(name) == Some(Native::Exec) {
        return Some(command.to_owned());
    }
    if ClientTool::find(name) != Some(ClientTool::Run) {
        return None;
    }
    let words = args.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = std::iter::once(command).chain(words.filter_map(Value::as_str));
    let line = words.map(|word| shlex::try_quote(word).unwrap_or(word.into()));
    Some(line.collect::<Vec<_>>().join(" "))
}

/// What a call will do, in full, for the user who decides about it: its command, or its arguments, which
/// are `raw` as they will be sent.
pub(crate) fn whole(name: &str, args: &Value, raw: &str) -> Option<ToolCallContent> {
    let folder = args.get("cwd").and_then(Value::as_str).map(|it| format!("\nin {it}"));
    let (language, text) = match command_line(name, args) {
        Some(line) => ("sh", reveal_hidden(&(line + &folder.unwrap_or_default()))),
        None if args.as_object().is_none_or(Map::is_empty) => return None,
        None => ("", ShownArguments::read(raw).text()),
    };
    // The raw input has all of it.
    let shown = excerpt(&text, MAX_SHOWN);
    // Longer than any in the text, which cannot end the block then.
    let ticks = shown.split(|it| it != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(ticks.max(2) + 1);
    Some(text_content(format!("{fence}{language}\n{shown}\n{fence}")))
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.trim_end().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// What is known about a tool.
struct About {
    kind: ToolKind,
    title: Option<String>,
    /// Whether its arguments are known to this program.
    is_builtin: bool,
}

impl About {
    fn of(session: &AcpSession, name: &str) -> Self {
        if let Some(native) = native(name) {
            let kind = match native {
                Native::Read | Native::List => ToolKind::Read,
                Native::Write | Native::Edit => ToolKind::Edit,
                Native::Exec => ToolKind::Execute,
                Native::WebFetch => ToolKind::Fetch,
                Native::UpdatePlan => ToolKind::Think,
            };
            return Self { kind, title: Some(native.label().to_owned()), is_builtin: true };
        }
        if let Some(tool) = ClientTool::find(name) {
            let title = Some(tool.title().to_owned());
            return Self { kind: tool.kind(), title, is_builtin: true };
        }
        let state = session.lock();
        match state.lent.iter().flatten().find(|tool| tool.name == name) {
            Some(tool) => Self {
                kind: kind_of(tool.effect),
                title: Some(tool.label.clone()),
                is_builtin: false,
            },
            None => {
                let kind = match state.risks.as_ref().and_then(|risks| risks.get(name)) {
                    Some(Risk::Low) => ToolKind::Read,
                    Some(Risk::High) => ToolKind::Edit,
                    Some(Risk::Medium) | None => ToolKind::Other,
                };
                Self { kind, title: None, is_builtin: false }
            }
        }
    }
}

/// The kind of a tool of an MCP server, from its annotations.
fn kind_of(effect: ToolEffect) -> ToolKind {
    match effect {
        ToolEffect::ReadOnly => ToolKind::Read,
        ToolEffect::Destructive => ToolKind::Edit,
        ToolEffect::Unknown => ToolKind::Other,
    }
}

/// Whether the user knows what a tool does without its description.
pub(crate) fn is_builtin(name: &str) -> bool {
    native(name).is_some() || ClientTool::find(name).is_some()
}

pub(crate) fn native(name: &str) -> Option<Native> {
    Native::ALL.into_iter().find(|native| native.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_they_will_be_sent() {
        let raw = r#"{"z":12345678901234567890123,"text":"EVIL","text":"a\u202eb"}"#;
        let shown = whole("mcp_one_write", &serde_json::from_str(raw).unwrap(), raw);
        let shown = serde_json::to_string(&shown).unwrap();
        for part in ["z=12345678901234567890123", "EVIL", "u{202e}b"] {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(whole("mcp_one_write", &json!({}), "{}").is_none());
    }
}
