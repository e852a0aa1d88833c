//! What the end of a call means: for its outcome, for later calls, and for the list of tools (B7, B10,
//! B11).

use std::sync::Arc;
use std::time::Duration;

use openclaw_config::ProtocolVersion;
use openclaw_content::{Source, Text};
use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::wire::CallError;
use openclaw_oauth::error::AuthError;
use openclaw_tools::{Content, Relay, ToolOutcome};
use openclaw_trace::Span;

use crate::call::results::{self, ResponseOrigin};
use crate::catalogue::CatalogueTool;
use crate::server::Server;
use crate::server::live::LiveConnection;

/// The pause for a server that rate limits calls without a `Retry-After`.
const PAUSE: Duration = Duration::from_secs(5);

/// The JSON-RPC error code for headers that do not match the arguments of a call (2026-07-28).
const HEADER_MISMATCH: i64 = -32020;

/// Adds a hint to a call that fails because of the protocol version of its connection. There is no
/// error code for that: servers name the version in the text of the result. Replies that are relayed
/// stay as they are.
pub(super) fn hint_at_version(outcome: &mut ToolOutcome, connection: &Connection) {
    const NEWEST: &str = ProtocolVersion::V20260728.as_str();
    const LAST_WITH_HANDSHAKE: &str = ProtocolVersion::V20251125.as_str();
    let is_newest = connection.about().version.as_deref() == Some(NEWEST);
    if is_newest && outcome.details.raw.is_none() && outcome.text().contains(NEWEST) {
        let hint = format!(
            "The connection uses protocol version {NEWEST}. If the server offers this in an older \
             version only, set `protocolVersion: \"{LAST_WITH_HANDSHAKE}\"` in its entry in \
             openclaw.json (`openclaw mcp add` creates one for a server of an editor)."
        );
        outcome.content.push(Content::Text(Text::ours(hint)));
    }
}

/// Applies the consequences of a result of this length to later calls.
pub(super) fn succeeded(
    tool: &CatalogueTool,
    live: &LiveConnection,
    outcome: &ToolOutcome,
    length: usize,
) {
    tool.server().was_let_in();
    if length < 1_000 && outcome.is_error && says_unknown_tool(outcome) {
        ask_again(live);
    }
}

/// Returns the outcome of an error. An unknown tool is not offered any longer.
pub(super) fn rejected(
    tool: &CatalogueTool,
    live: &LiveConnection,
    error: CallError,
    relay: Option<Relay<'_>>,
) -> ToolOutcome {
    if is_unknown_tool(&error) {
        tool.server().cache().remove_tool(&tool.listed.name);
        ask_again(live);
    }
    failure_of(error, tool.source(), relay)
}

/// Adds the code of an error response. Its message may quote the call, and is left out.
pub(crate) fn describe_error(span: &Span, error: &CallError) {
    if span.is_recorded()
        && let Some(error) = rpc(error)
    {
        let code = error.code.to_string();
        span.set_text("rpc.response.status_code", &code);
        span.fail(code, "");
    }
}

/// Applies the consequences of a failure to later calls: a pause, or a required login.
pub(crate) async fn failed(server: &Server, live: &Arc<LiveConnection>, error: &CallError) {
    match error {
        CallError::RateLimited { .. } | CallError::OutOfService { .. } => {
            server.limiter.back_off(error.retry_after().unwrap_or(PAUSE));
        }
        CallError::NeedsAuth { challenge } => {
            server.wants_login(live, challenge.as_deref()).await;
        }
        CallError::Auth(AuthError::LoginRequired) => server.wants_login(live, None).await,
        _ => {}
    }
}

/// Converts the error of a call.
pub(crate) fn failure_of(
    error: CallError,
    source: &Source,
    relay: Option<Relay<'_>>,
) -> ToolOutcome {
    let Some(relay) = relay else {
        return results::call_failed(error, ResponseOrigin::of(source));
    };
    let reply = results::raw_error(&error, source, relay.wraps);
    let mut outcome = results::call_failed(error, ResponseOrigin::of(source));
    outcome.details.raw = reply;
    outcome
}

/// Triggers a refresh of the tool list.
fn ask_again(live: &LiveConnection) {
    live.connection().client().changed(|changes| changes.tools += 1);
}

#[derive(serde::Deserialize)]
struct RpcError {
    code: i64,
    #[serde(default)]
    message: String,
}

fn rpc(error: &CallError) -> Option<RpcError> {
    let CallError::Rpc(raw) = error else { return None };
    serde_json::from_str(raw.get()).ok()
}

/// Whether the server rejects the headers of a call.
pub(super) fn is_header_mismatch(error: &CallError) -> bool {
    rpc(error).is_some_and(|error| error.code == HEADER_MISMATCH)
}

/// Whether an error means that the server does not know the tool. Servers phrase it in different
/// ways.
fn is_unknown_tool(error: &CallError) -> bool {
    let Some(error) = rpc(error) else { return false };
    let message = error.message.to_ascii_lowercase();
    let says_so = message.contains("unknown tool")
        || message.contains("tool") && message.contains("not found");
    matches!(error.code, -32601 | -32602) && says_so
}

/// Like `is_unknown_tool`, for servers that report it as a result.
fn says_unknown_tool(outcome: &ToolOutcome) -> bool {
    let says = |text: &str| text.contains("nknown tool") || text.contains("ool not found");
    match &outcome.details.raw {
        Some(raw) => says(raw.json()),
        None => says(&outcome.text()),
    }
}
