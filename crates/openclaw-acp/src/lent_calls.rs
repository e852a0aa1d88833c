//! Calls of lent tools.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::rpc;
use openclaw_protocol::tools::{
    InvokeProgress, InvokeProgressParams, InvokeRequestEvent, InvokeResultParams, NodeError,
};
use openclaw_tools::{Progress, ProgressWatcher};
use openclaw_trace::SpanContext;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::builtin::EditorTool;
use crate::calls::result_content;
use crate::current_turn::CurrentTurn;
use crate::editor_tools::EditorTools;
use crate::gateway::GatewaySession;
use crate::lent_tools::{EditorLentTools, LentToolOutcome, LentToolOwner};
use crate::open_calls::OpenCalls;
use crate::servers::SessionServers;
use crate::tasks::SessionTasks;

/// Minimum interval between progress reports of one call.
const PROGRESS: Duration = Duration::from_millis(100);

/// Executes the calls of lent tools.
pub(crate) struct LentCalls {
    pub(crate) gateway: Arc<GatewaySession>,
    pub(crate) turn: Arc<CurrentTurn>,
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) lent: Arc<EditorLentTools>,
    pub(crate) servers: Option<Arc<SessionServers>>,
    pub(crate) editor_tools: Arc<EditorTools>,
    pub(crate) tasks: SessionTasks,
}

impl LentCalls {
    /// Executes a call of the gateway, in a task of its own. It is cancelled when the turn is over.
    pub(crate) fn invoke(self: &Arc<Self>, call: InvokeRequestEvent) {
        let over = self.turn.over().unwrap_or_default();
        let calls = Arc::clone(self);
        self.tasks.spawn(async move {
            let outcome = tokio::select! {
                outcome = calls.run(&call) => outcome,
                () = over.cancelled() => return,
            };
            let params = invoke_result(call.id, call.node_id, outcome);
            // It fails if the gateway does not wait any more.
            let _ = calls.gateway.ask::<rpc::NodeInvokeResult>(params).await;
        });
    }

    async fn run(&self, call: &InvokeRequestEvent) -> LentToolOutcome {
        let arguments = call.params_json.clone().unwrap_or_else(|| "{}".to_owned());
        let arguments: Box<RawValue> = match RawValue::from_string(arguments) {
            Ok(arguments) => arguments,
            Err(_) => return LentToolOutcome::failed("The arguments are not JSON."),
        };
        let (watcher, progress) = ProgressWatcher::channel();
        let trace = call.trace();
        let outcome = tokio::select! {
            outcome = self.execute(&call.command, &arguments, &watcher, trace.as_ref()) => outcome,
            never = self.report(call, progress) => match never {},
        };
        let shown = outcome.for_user.as_ref().unwrap_or(&outcome.content);
        if let Ok(args) = serde_json::from_str::<Value>(arguments.get()) {
            self.calls.record_result(&call.command, &args, result_content(shown));
        }
        outcome
    }

    /// Executes a lent tool.
    pub(crate) async fn execute(
        &self,
        name: &str,
        arguments: &RawValue,
        progress: &ProgressWatcher,
        trace: Option<&SpanContext>,
    ) -> LentToolOutcome {
        let owner = self.lent.find(name).map(|tool| tool.owner);
        match (owner, &self.servers, EditorTool::find(name)) {
            (Some(LentToolOwner::Servers(name)), Some(servers), _) => {
                servers.call(&name, arguments, &self.gateway.key, progress, trace).await
            }
            (Some(LentToolOwner::Editor), _, Some(tool)) => {
                self.editor_tools.call(tool, arguments).await
            }
            _ => LentToolOutcome::failed("The session no longer has a tool with this name."),
        }
    }

    /// Reports the progress of a call to the gateway, until it is dropped.
    async fn report(
        &self,
        call: &InvokeRequestEvent,
        mut progress: watch::Receiver<Option<Progress>>,
    ) -> Infallible {
        let mut seq = 0;
        loop {
            if progress.changed().await.is_err() {
                return std::future::pending().await;
            }
            let Some(Progress { done, total, message }) = progress.borrow_and_update().clone()
            else {
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
            let _ = self.gateway.ask::<rpc::NodeInvokeProgress>(params).await;
            sleep(PROGRESS).await;
        }
    }
}

/// Converts an outcome to the result that the caller gets.
pub(crate) fn invoke_result(
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
