//! The tools around `order_openclaw`: list sessions, read one, abort a run.

use std::sync::Arc;
use std::time::Duration;

use openclaw_protocol::chat::{AbortParams, HistoryParams};
use openclaw_protocol::sessions::{ListParams, Row};
use openclaw_protocol::{Rpc, ask, rpc};
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::order::{Orders, failure, key};
use crate::schema;

const LIST: &str = "list_openclaw_sessions";
const READ: &str = "read_openclaw_session";
const ABORT: &str = "abort_openclaw_run";

/// The timeout of a request to the gateway.
const SHORT: Duration = Duration::from_secs(30);
/// Sessions in a list, and messages of a session, unless the caller wants another number.
const USUAL: u32 = 20;
/// Maximum characters of a text of a message.
const MAX_CHARS: u32 = 20_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct List {
    /// Only sessions of this agent.
    #[serde(default)]
    agent_id: Option<String>,
    /// Only sessions with this text in their key, title or first message.
    #[serde(default)]
    search: Option<String>,
    /// The maximum number of sessions, the latest first; 20 if not given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Read {
    /// The key of the session.
    session_key: String,
    /// The maximum number of messages, counted from the latest one; 20 if not given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// The number of latest messages to skip, as returned in `nextOffset`.
    #[serde(default)]
    offset: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Abort {
    /// The key of the session.
    session_key: String,
    /// Only this run; all runs of the session if not given.
    #[serde(default)]
    run_id: Option<String>,
}

/// A session in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    session_key: String,
    agent_id: Option<String>,
    title: Option<String>,
    last_message: Option<String>,
    updated_at: Option<u64>,
}

impl From<Row> for Listed {
    fn from(row: Row) -> Self {
        Self {
            session_key: row.key,
            agent_id: row.agent_id,
            title: row.label.or(row.display_name).or(row.derived_title),
            last_message: row.last_message_preview,
            // Milliseconds, which are whole.
            updated_at: row.updated_at.and_then(|at| format!("{at:.0}").parse().ok()),
        }
    }
}

/// Returns the definitions of the tools.
pub(crate) fn tools() -> Vec<Tool> {
    let tool = |name, title: &str, description, schema: Arc<JsonObject>, hints: ToolAnnotations| {
        Tool::new(name, description, schema)
            .with_title(title)
            .with_annotations(hints.open_world(false))
    };
    let reads = || ToolAnnotations::new().read_only(true);
    let changes = ToolAnnotations::new().read_only(false).destructive(false).idempotent(true);
    vec![
        tool(
            LIST,
            "List sessions",
            "Lists sessions with OpenClaw agents.",
            schema::schema_of::<List>(),
            reads(),
        ),
        tool(
            READ,
            "Read a session",
            "Returns messages of a session.",
            schema::schema_of::<Read>(),
            reads(),
        ),
        tool(
            ABORT,
            "Abort a run",
            "Aborts the running messages of a session.",
            schema::schema_of::<Abort>(),
            changes,
        ),
    ]
}

/// Calls a tool; `None` if it is not one of these.
pub(crate) async fn call(orders: &Orders, name: &str, arguments: &Value) -> Option<CallToolResult> {
    let done = match name {
        LIST => list(orders, arguments).await,
        READ => read(orders, arguments).await,
        ABORT => abort(orders, arguments).await,
        _ => return None,
    };
    Some(done.map_or_else(failure, CallToolResult::structured))
}

async fn request<R: Rpc>(orders: &Orders, params: R::Params) -> Result<R::Result, String> {
    let Ok(_slot) = orders.lookups.acquire().await else {
        return Err("the server is stopping".to_owned());
    };
    let surface = orders.connect().await?;
    let answer = timeout(SHORT, ask::<R>(&*surface, params)).await;
    let answer = answer.map_err(|_| "the gateway did not respond in time".to_owned())?;
    answer.map_err(|error| error.to_string())
}

/// Checks a number of entries.
fn limit(asked: Option<u32>) -> Result<u32, String> {
    match asked.unwrap_or(USUAL) {
        limit @ 1..=200 => Ok(limit),
        _ => Err("invalid `limit`: it must be 1 to 200".to_owned()),
    }
}

async fn list(orders: &Orders, arguments: &Value) -> Result<Value, String> {
    let List { agent_id, search, limit: asked } = schema::read(arguments)?;
    let params = ListParams {
        agent_id: orders.agent(agent_id),
        search,
        limit: Some(limit(asked)?.into()),
        include_derived_titles: Some(true),
        include_last_message: Some(true),
        ..ListParams::default()
    };
    let found = request::<rpc::SessionsList>(orders, params).await?;
    let sessions: Vec<Listed> = found.sessions.into_iter().map(Listed::from).collect();
    Ok(json!({ "sessions": sessions }))
}

async fn read(orders: &Orders, arguments: &Value) -> Result<Value, String> {
    let Read { session_key, limit: asked, offset } = schema::read(arguments)?;
    key::check(&session_key, None)?;
    let params = HistoryParams {
        session_key,
        limit: Some(limit(asked)?),
        offset,
        max_chars: Some(MAX_CHARS),
        ..HistoryParams::default()
    };
    let found = request::<rpc::ChatHistory>(orders, params).await?;
    if found.messages.is_empty() && offset.is_none() {
        return Err(format!("no session `{}`", found.session_key));
    }
    Ok(json!({
        "sessionKey": found.session_key,
        "messages": found.messages,
        "nextOffset": found.next_offset,
    }))
}

async fn abort(orders: &Orders, arguments: &Value) -> Result<Value, String> {
    let Abort { session_key, run_id } = schema::read(arguments)?;
    key::check(&session_key, None)?;
    let params = AbortParams { session_key, agent_id: None, run_id, preserve_side_runs: None };
    let done = request::<rpc::ChatAbort>(orders, params).await?;
    Ok(json!({ "aborted": done.aborted, "runIds": done.run_ids }))
}
