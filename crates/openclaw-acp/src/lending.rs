//! The tools of a session, lent to the gateway: those of its MCP servers and those of the client.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::sessions::{ExtraTool, ExtraToolSchema, SetExtraToolsParams};
use openclaw_protocol::tools::{
    InvokeProgress, InvokeProgressParams, InvokeRequestEvent, InvokeResultParams, NodeError,
};
use openclaw_protocol::{ask, rpc};
use openclaw_tools::{Progress, ProgressWatcher, ToolEffect};
use openclaw_trace::SpanContext;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::editor_tools::EditorTool;
use crate::servers::SessionServers;
use crate::session::AcpSession;
use crate::{calls, publish};

/// The timeout of a lent tool at the gateway: longer than any timeout here.
const TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Minimum interval between progress reports of one call.
const PROGRESS: Duration = Duration::from_millis(100);

/// A tool that a session lends to the gateway.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LentTool {
    /// The name that the model sees.
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) description: String,
    pub(crate) schema: Arc<Map<String, Value>>,
    pub(crate) effect: ToolEffect,
    pub(crate) by: LentToolOwner,
}

/// What executes a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LentToolOwner {
    /// The session's MCP servers, under this name.
    Servers(String),
    /// The client.
    Editor(EditorTool),
}

impl LentTool {
    fn lent(&self) -> ExtraTool {
        ExtraTool {
            name: self.name.clone(),
            description: self.description.clone(),
            // Those of servers come from the catalogue, the client's are ours.
            parameters: Some(ExtraToolSchema::Shared(Arc::clone(&self.schema))),
            read_only: Some(self.effect == ToolEffect::ReadOnly),
            timeout_ms: u64::try_from(TIMEOUT.as_millis()).ok(),
        }
    }
}

/// The outcome of a call of a lent tool.
#[derive(Debug, Default)]
pub(crate) struct LentToolOutcome {
    /// What the model sees: blocks as in MCP.
    pub(crate) content: Vec<Value>,
    /// What the user sees, if it is not the same.
    pub(crate) for_user: Option<Vec<Value>>,
    pub(crate) is_error: bool,
}

impl LentToolOutcome {
    /// An error without a result.
    pub(crate) fn failed(words: &str) -> Self {
        Self { is_error: true, ..Self::done(words) }
    }

    pub(crate) fn done(text: &str) -> Self {
        Self { content: vec![text_block(text)], ..Self::default() }
    }
}

/// A block of text.
pub(crate) fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

impl AcpSession {
    /// Lends the tools as they are now, if they have changed. When it returns, the gateway has them.
    pub(crate) async fn lend(self: &Arc<Self>) {
        // A turn must not begin while another task is still lending the same tools.
        let mut node = self.lending.lock().await;
        // Before the tools are read: a change meanwhile lends them again.
        let revision = self.servers.as_ref().map(SessionServers::revision);
        {
            let state = self.lock();
            if state.lent.is_some() && state.lent_revision == revision {
                return;
            }
        }
        let mut tools = self.editor_tools.tools();
        if let Some(servers) = &self.servers {
            let (own, note) = servers.tools();
            tools.extend(own);
            if let Some(note) = note.filter(|note| !self.lock().refused.contains(note)) {
                self.lock().refused.push(note.clone());
                self.note(&note);
            }
        }
        {
            let mut state = self.lock();
            state.lent_revision = revision;
            if state.lent.as_ref() == Some(&tools) {
                return;
            }
        }
        let params = SetExtraToolsParams {
            session_key: self.key.clone(),
            agent_id: None,
            tools: tools.iter().map(LentTool::lent).collect(),
        };
        // Before the request: a call may arrive before its answer. Also without tools: the turns of
        // this session must not use those that another client lends to it.
        self.lock().lent = Some(tools.clone());
        let lent = match ask::<rpc::SessionsSetExtraTools>(&*self.surface, params).await {
            Err(error) if error.is_unknown_method() => {
                publish::publish(self, &mut node, &tools).await
            }
            lent => lent.map(drop).map_err(|error| error.to_string()),
        };
        if let Err(error) = lent {
            self.lock().lent = None;
            let note = format!("The tools of this session are not available: {error}");
            if !self.lock().refused.contains(&note) {
                self.lock().refused.push(note.clone());
                self.note(&note);
            }
        }
    }
}

/// Returns the result of a call to its caller.
pub(crate) fn result_of(
    id: String,
    node_id: String,
    outcome: LentToolOutcome,
) -> InvokeResultParams {
    let LentToolOutcome { content, is_error, .. } = outcome;
    let text = |block: &Value| Some(block.get("text")?.as_str()?.to_owned());
    let texts: Option<Vec<String>> = content.iter().map(text).collect();
    let (payload, error) = match texts.filter(|_| is_error) {
        Some(texts) => (None, Some(NodeError { code: None, message: Some(texts.join("\n")) })),
        None if is_error => {
            (to_raw_value(&json!({ "content": content, "isError": true })).ok(), None)
        }
        None => (to_raw_value(&json!({ "content": content })).ok(), None),
    };
    InvokeResultParams { id, node_id, ok: error.is_none(), payload, payload_json: None, error }
}

/// Executes a call of a lent tool, in a task of its own. It is cancelled when the turn is over.
pub(crate) fn invoke(session: &Arc<AcpSession>, call: InvokeRequestEvent) {
    let over = session.lock().turn.as_ref().map(|turn| turn.over.clone()).unwrap_or_default();
    let calling = Arc::clone(session);
    session.spawn(async move {
        let outcome = tokio::select! {
            outcome = run(&calling, &call) => outcome,
            () = over.cancelled() => return,
        };
        let params = result_of(call.id, call.node_id, outcome);
        // It fails if the gateway does not wait any more.
        let _ = ask::<rpc::NodeInvokeResult>(&*calling.surface, params).await;
    });
}

async fn run(session: &Arc<AcpSession>, call: &InvokeRequestEvent) -> LentToolOutcome {
    let arguments = call.params_json.clone().unwrap_or_else(|| "{}".to_owned());
    let arguments: Box<RawValue> = match RawValue::from_string(arguments) {
        Ok(arguments) => arguments,
        Err(_) => return LentToolOutcome::failed("The arguments are not JSON."),
    };
    let (watcher, progress) = ProgressWatcher::channel();
    let trace = call.trace();
    let outcome = tokio::select! {
        outcome = execute(session, &call.command, &arguments, &watcher, trace.as_ref()) => outcome,
        never = report(session, call, progress) => match never {},
    };
    let shown = outcome.for_user.as_ref().unwrap_or(&outcome.content);
    calls::record(session, &call.command, &arguments, shown);
    outcome
}

/// Executes a tool of the session.
pub(crate) async fn execute(
    session: &Arc<AcpSession>,
    name: &str,
    arguments: &RawValue,
    progress: &ProgressWatcher,
    trace: Option<&SpanContext>,
) -> LentToolOutcome {
    let by = {
        let state = session.lock();
        let found = state.lent.iter().flatten().find(|tool| tool.name == name);
        found.map(|tool| tool.by.clone())
    };
    match (by, &session.servers) {
        (Some(LentToolOwner::Servers(name)), Some(servers)) => {
            let of_session = (session.key.as_str(), progress);
            servers.call(&name, arguments, of_session, trace).await
        }
        (Some(LentToolOwner::Editor(tool)), _) => {
            session.editor_tools.call(session, tool, arguments).await
        }
        _ => LentToolOutcome::failed("The session no longer has a tool with this name."),
    }
}

/// Reports the progress of a call to the gateway, until it is dropped.
async fn report(
    session: &AcpSession,
    call: &InvokeRequestEvent,
    mut progress: watch::Receiver<Option<Progress>>,
) -> Infallible {
    let mut seq = 0;
    loop {
        if progress.changed().await.is_err() {
            return std::future::pending().await;
        }
        let Some(Progress { done, total, message }) = progress.borrow_and_update().clone() else {
            continue;
        };
        let report = InvokeProgress { progress: done, total, message };
        let params = InvokeProgressParams {
            invoke_id: call.id.clone(),
            node_id: call.node_id.clone(),
            seq,
            chunk: serde_json::to_string(&report).unwrap_or_default(),
        };
        seq += 1;
        // A gateway that does not know the method gets no reports.
        let _ = ask::<rpc::NodeInvokeProgress>(&*session.surface, params).await;
        sleep(PROGRESS).await;
    }
}
