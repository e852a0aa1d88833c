//! Client tools: tools that a client provides to a session (`sessions.setExtraTools`). A call is
//! sent over the connection that provides the tool, and the tools are removed when that connection
//! closes.

mod tool;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use openclaw_mcp::inventory::model_schema::ModelSchema;
use openclaw_protocol::ErrorShape;
use openclaw_protocol::sessions::{ExtraTool, ExtraToolSchema};
use openclaw_protocol::tools::{InvokeProgress, InvokeProgressParams, InvokeResultParams};
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::{
    Decision, Policy, Progress, ProgressWatcher, ToolEffect, ToolName, ToolSource, ToolSpec,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::callers::Callers;
use tool::{LentTool, LentTools};

/// Default and maximum timeout of a call.
const USUAL: Duration = Duration::from_secs(120);
const MOST: Duration = Duration::from_secs(3_600);
/// Maximum number of tools a client may provide to a session: as many as an editor's servers may
/// have, and its own.
const MAX_TOOLS: usize = 1_024;
/// Maximum number of sessions a client may provide tools to.
const MAX_SESSIONS: usize = 64;
/// Maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 2_000;
/// Maximum length of a progress message, in characters.
const MAX_PROGRESS: usize = 200;

/// Client tools and the calls in progress.
#[derive(Debug)]
pub(crate) struct Lent {
    callers: Arc<Callers>,
    /// By session.
    sets: Mutex<BTreeMap<String, ByLender>>,
    calls: Mutex<BTreeMap<String, PendingCall>>,
    next: AtomicU64,
}

/// A call that waits for its result.
#[derive(Debug)]
struct PendingCall {
    lender: u64,
    result: oneshot::Sender<InvokeResultParams>,
    /// Receives its progress.
    watcher: Option<ProgressWatcher>,
}

type ByLender = BTreeMap<u64, Arc<Vec<LentToolEntry>>>;

/// The agent that tools are provided to.
pub(crate) struct ToolRecipient<'a> {
    pub(crate) policy: &'a Policy,
    /// Whether the agent has a tool of its own with this name.
    pub(crate) is_taken: &'a dyn Fn(&str) -> bool,
}

fn is_allowed(policy: &Policy, entry: &LentToolEntry) -> bool {
    policy.decide(&entry.spec.name) == Decision::Allowed
}

/// A tool provided by a client.
#[derive(Debug)]
struct LentToolEntry {
    spec: ToolSpec,
    validator: LazyValidator,
    timeout: Duration,
}

impl Lent {
    pub(crate) fn new(callers: Arc<Callers>) -> Self {
        Self { callers, sets: Mutex::default(), calls: Mutex::default(), next: AtomicU64::new(0) }
    }

    /// Sets a client's tools for a session, replacing its earlier ones. A name must not be taken by
    /// another tool of the agent. Returns the names that the agent may use.
    pub(crate) fn lend(
        &self,
        session: &str,
        lender: u64,
        tools: &[ExtraTool],
        recipient: &ToolRecipient<'_>,
    ) -> Result<Vec<String>, ErrorShape> {
        if tools.len() > MAX_TOOLS {
            let message = format!("{} tools; at most {MAX_TOOLS} are allowed", tools.len());
            return Err(ErrorShape::invalid(message));
        }
        let entries =
            tools.iter().map(entry).collect::<Result<Vec<LentToolEntry>, ErrorShape>>()?;
        for (at, name) in entries.iter().map(|entry| &entry.spec.name).enumerate() {
            if entries[..at].iter().any(|entry| entry.spec.name == *name) {
                return Err(ErrorShape::invalid(format!("duplicate tool `{name}`")));
            }
            if (recipient.is_taken)(name.as_str()) {
                let message = format!("the agent already has a tool `{name}`; use another name");
                return Err(ErrorShape::invalid(message));
            }
        }
        let usable = entries.iter().filter(|entry| is_allowed(recipient.policy, entry));
        let names = usable.map(|entry| entry.spec.name.to_string()).collect();
        let mut sets = self.sets.lock();
        let others = sets.iter().filter(|(key, _)| key.as_str() != session);
        let others = others.filter_map(|(_, lenders)| lenders.get(&lender));
        let (empty, used): (Vec<_>, Vec<_>) = others.partition(|entries| entries.is_empty());
        let is_full = if entries.is_empty() { empty.len() } else { used.len() } >= MAX_SESSIONS;
        match (is_full, entries.is_empty()) {
            (true, false) => {
                let message =
                    format!("client tools are allowed in at most {MAX_SESSIONS} sessions");
                return Err(ErrorShape::invalid(message));
            }
            (true, true) => {
                if let Some(lenders) = sets.get_mut(session) {
                    lenders.remove(&lender);
                }
            }
            // An empty list counts, too: the client's messages use no tools of others.
            (false, _) => {
                sets.entry(session.to_owned()).or_default().insert(lender, Arc::new(entries));
            }
        }
        Ok(names)
    }

    /// Removes the tools of a client that has disconnected; calls in progress fail immediately.
    pub(crate) fn take_back(&self, lender: u64) {
        let mut sets = self.sets.lock();
        sets.values_mut().for_each(|lenders| {
            lenders.remove(&lender);
        });
        sets.retain(|_, lenders| !lenders.is_empty());
        drop(sets);
        let mut calls = self.calls.lock();
        calls.retain(|_, call| call.lender != lender);
    }

    /// The client tools of a session, with the agent's policy applied (B8), for a message of this
    /// caller. A caller that lends tools uses only its own: two editors with the same session must
    /// not use each other's files and servers.
    pub(crate) fn tools(
        self: &Arc<Self>,
        session: &str,
        caller: u64,
        policy: &Policy,
    ) -> Arc<dyn ToolSource> {
        let sets = self.sets.lock();
        let lenders = sets.get(session);
        let is_lender = lenders.is_some_and(|lenders| lenders.contains_key(&caller));
        let lenders = lenders.into_iter().flatten();
        let lenders = lenders.filter(|(lender, _)| !is_lender || **lender == caller);
        let tools = lenders.flat_map(|(lender, entries)| {
            (0..entries.len()).map(|nth| LentTool {
                lent: Arc::clone(self),
                lender: *lender,
                decision: policy.decide(&entries[nth].spec.name),
                entries: Arc::clone(entries),
                nth,
            })
        });
        Arc::new(LentTools(tools.map(Arc::new).collect()))
    }

    /// Handles a client's result of a call.
    pub(crate) fn answered(
        &self,
        lender: u64,
        result: InvokeResultParams,
    ) -> Result<(), ErrorShape> {
        let mut calls = self.calls.lock();
        pending(&calls, &result.id, lender)?;
        if let Some(call) = calls.remove(&result.id) {
            let _ = call.result.send(result);
        }
        Ok(())
    }

    /// Handles a client's report about the progress of a call.
    pub(crate) fn progressed(
        &self,
        lender: u64,
        report: &InvokeProgressParams,
    ) -> Result<(), ErrorShape> {
        let calls = self.calls.lock();
        let call = pending(&calls, &report.invoke_id, lender)?;
        let progress = serde_json::from_str(&report.chunk).unwrap_or_else(|_| InvokeProgress {
            message: Some(report.chunk.clone()),
            ..InvokeProgress::default()
        });
        let line = |text: String| clean_line(Untrusted::new(&text), MAX_PROGRESS);
        if let Some(watcher) = &call.watcher {
            watcher.report(Progress {
                done: progress.progress,
                total: progress.total,
                message: progress.message.map(line),
            });
        }
        Ok(())
    }
}

/// Finds a call that this client has to answer.
fn pending<'c>(
    calls: &'c BTreeMap<String, PendingCall>,
    id: &str,
    lender: u64,
) -> Result<&'c PendingCall, ErrorShape> {
    let call = calls.get(id).filter(|call| call.lender == lender);
    call.ok_or_else(|| ErrorShape::invalid("no pending call with this id"))
}

fn entry(tool: &ExtraTool) -> Result<LentToolEntry, ErrorShape> {
    let name = ToolName::new(tool.name.as_str())
        .map_err(|error| ErrorShape::invalid(format!("`{}`: {error}", tool.name)))?;
    let no_object = || {
        let message = format!("`{name}`: `parameters` must be the JSON Schema of an object");
        ErrorShape::invalid(message)
    };
    let any_object = || json!({ "type": "object" });
    let (members, is_fit) = match &tool.parameters {
        Some(ExtraToolSchema::Shared(schema)) => (Arc::clone(schema), true),
        Some(ExtraToolSchema::Json(json)) => {
            let parsed = serde_json::from_str(json.get()).unwrap_or_else(|_| any_object());
            let Value::Object(members) = parsed else { return Err(no_object()) };
            (Arc::new(members), false)
        }
        None => (Arc::new(Map::from_iter([("type".to_owned(), "object".into())])), true),
    };
    // Arguments are always an object: with another type the tool could never be called.
    let is_object = match members.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    };
    if !is_object {
        return Err(no_object());
    }
    let schema = if is_fit {
        Arc::clone(&members)
    } else {
        let ModelSchema { schema, hazard } = ModelSchema::of(&members);
        if let Some(hazard) = hazard {
            return Err(ErrorShape::invalid(format!("`{name}`: {hazard}")));
        }
        schema
    };
    let timeout = tool.timeout_ms.map_or(USUAL, Duration::from_millis).min(MOST);
    let spec = ToolSpec {
        label: name.to_string(),
        name,
        description: clean_line(Untrusted::new(&tool.description), MAX_DESCRIPTION),
        input_schema: schema,
        effect: if tool.read_only == Some(true) {
            ToolEffect::ReadOnly
        } else {
            ToolEffect::Unknown
        },
    };
    Ok(LentToolEntry { spec, validator: LazyValidator::new(members), timeout })
}
