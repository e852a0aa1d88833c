//! Sends a call that the pipeline has approved to its server (B5–B7, B10, B11).
//!
//! It crosses no actor and takes no lock. Every error becomes an outcome with a plain message.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use openclaw_config::ProtocolVersion;
use openclaw_content::{Source, Text};
use openclaw_metrics::Metrics;
use openclaw_oauth::error::AuthError;
use openclaw_tools::audit::Audit;
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::{
    CallOptions, Content, Executed, Pipeline, Relay, Tool as _, ToolCall, ToolFailure, ToolOutcome,
};
use openclaw_trace::{Span, Tracer};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout};

use crate::call::output_schema;
use crate::call::results::{self, ReplyKind, ResponseOrigin, ResultLimits};
use crate::call::spill::Spill;
use crate::fleet::catalogue::CatalogueTool;
use crate::fleet::member::FleetMember;
use crate::server::Server;
use crate::server::live::LiveConnection;
use crate::server::status::ServerState;
use crate::store::pins::{Pins, Unsaved};
use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::connection::client::{CallGuard, Changes};
use openclaw_mcp_client::connection::era::Era;
use openclaw_mcp_client::limiter::{AskedBy, RetryAfter};
use openclaw_mcp_client::listing::TaskSupport;
use openclaw_mcp_client::wire::json::{Json, JsonCow};
use openclaw_mcp_client::wire::{self, CallError, TimeLimits};

/// The pause for a server that rate limits calls without a `Retry-After`.
const PAUSE: Duration = Duration::from_secs(5);

/// How long to wait at shutdown until approvals are saved.
const SAVING: Duration = Duration::from_secs(10);

/// Results of at least this many bytes are processed on a blocking thread.
pub(crate) const LARGE: usize = 256 * 1024;
/// The JSON-RPC error code for headers that do not match the arguments of a call (2026-07-28).
const HEADER_MISMATCH: i64 = -32020;

/// The services used by calls.
#[derive(Debug, Clone)]
pub struct CallServices {
    /// The audit log.
    pub audit: Audit,
    /// The store for large results.
    pub spill: Option<Arc<Spill>>,
    /// The approved tools.
    pub pins: Option<Arc<Pins>>,
    /// Where calls and servers are counted.
    pub metrics: Metrics,
    /// Records the spans of calls.
    pub tracer: Tracer,
}

impl CallServices {
    /// No audit log, no storage, no approvals, no metrics, no spans.
    pub fn none() -> Self {
        Self {
            audit: Audit::none(),
            spill: None,
            pins: None,
            metrics: Metrics::off(),
            tracer: Tracer::off(),
        }
    }

    /// Returns the pipeline of the calls that use these services.
    pub(crate) fn pipeline(&self) -> Pipeline {
        let pipeline = Pipeline::new(self.audit.clone());
        pipeline.counted_in(self.metrics.clone()).traced(self.tracer.clone())
    }

    /// Waits until approvals and the audit log are written, with a timeout in case the disk hangs.
    pub(crate) async fn close(&self) {
        // The error was logged.
        let _ = self.approvals_saved().await;
        self.audit.flush().await;
    }

    /// Waits until approvals are saved, with a timeout in case the disk hangs.
    pub(crate) async fn approvals_saved(&self) -> Result<(), Unsaved> {
        let Some(pins) = &self.pins else { return Ok(()) };
        let saved = timeout(SAVING, pins.saved()).await;
        saved.unwrap_or_else(|_| Err(pins.not_saved(io::ErrorKind::TimedOut)))
    }
}

/// The timeouts of a call.
pub(crate) fn limits(options: CallOptions<'_>, member: &FleetMember) -> TimeLimits {
    let Some(deadline) = options.deadline else { return member.limits };
    let left = deadline.saturating_duration_since(tokio::time::Instant::now());
    TimeLimits { timeout: left, cap: left }
}

/// The size limits of a result.
pub(crate) fn result_limits(options: CallOptions<'_>, member: &FleetMember) -> ResultLimits {
    let usual = if options.everything { usize::MAX } else { member.options.max_result_chars };
    let max_chars = options.max_chars.map_or(usual, |most| most.min(usual));
    ResultLimits { max_chars, everything: options.everything }
}

/// Calls a tool of a server after all checks have passed. Dropping the future cancels the call at
/// the server.
///
/// The future is boxed for each call, so it should be small: rare paths are boxed separately.
#[allow(clippy::manual_async_fn, reason = "it would hold its arguments twice")]
pub(crate) fn call<'a>(
    tool: &'a CatalogueTool,
    call: ToolCall<'a>,
) -> impl Future<Output = Executed> + Send + 'a {
    async move {
        let (member, server) = (&*tool.member, tool.server());
        let origin = ResponseOrigin::of(tool.source());
        let usable = match usable(member, call.options.client).await {
            Ok(usable) => usable,
            Err((kind, words)) => {
                return Executed::Done(results::failure(kind, words, Some(origin)));
            }
        };
        // The checks were made against the tool before the reconnect.
        if usable.was_waited_for && !tool.is_current() {
            let words =
                "The server was reconnected and the tool has changed. The tool was not called.";
            let outcome = results::failure(ToolFailure::Denied, words.to_owned(), Some(origin));
            return Executed::Stale(outcome);
        }
        let live = &usable.live;
        let started = if usable.has_waited { Instant::now() } else { call.started };
        let (limits, watcher) = (limits(call.options, member), call.options.watcher);
        let connection = live.connection();
        describe(call.span, connection);
        let at_work = connection.client().working_for(call.agent, call.session);
        let request = wire::WireCall {
            tool: &tool.listed.name,
            arguments: call.arguments.raw(),
            meta: "",
            more: "",
            headers: tool.headers(),
            trace: call.span.context(),
            work: at_work.as_ref().map(CallGuard::id),
        };
        let is_task =
            tool.listed.task_support == TaskSupport::Required && connection.era() == Era::Legacy;
        let result = if is_task {
            Box::pin(connection.call_as_task(request, limits, watcher)).await
        } else {
            connection.call_tool(request, limits, call.options).await
        };
        let duration = started.elapsed();
        let mut outcome = match result {
            Ok(raw) => {
                let length = raw.get().len();
                let outcome = read_result(tool, raw, call.options, duration).await;
                succeeded(tool, live, &outcome, length);
                outcome
            }
            // Only a remote server gets headers.
            Err(error) if connection.flavour().is_some() && has_code(&error, HEADER_MISMATCH) => {
                let changes = Changes { tools: 1, ..Changes::default() };
                let _ = Box::pin(live.list_again(changes)).await;
                return Executed::Stale(results::call_failed(error, origin));
            }
            Err(error) => {
                describe_error(call.span, &error);
                Box::pin(failed(server, live, &error)).await;
                rejected(tool, live, error, call.options.relay)
            }
        };
        server.stats.record(duration, outcome.is_error);
        if outcome.is_error {
            hint_at_version(&mut outcome, connection);
        }
        Executed::Done(outcome)
    }
}

/// Adds a hint to a call that fails because of the protocol version of its connection. There is no
/// error code for that: servers name the version in the text of the result. Replies that are relayed
/// stay as they are.
fn hint_at_version(outcome: &mut ToolOutcome, connection: &Connection) {
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

/// Adds the connection to the span of a call, in the semantic conventions for MCP.
pub(crate) fn describe(span: &Span, connection: &Connection) {
    if !span.is_recorded() {
        return;
    }
    let is_remote = connection.flavour().is_some();
    span.set("network.transport", if is_remote { "tcp" } else { "pipe" });
    if is_remote {
        span.set("network.protocol.name", "http");
        span.set("network.protocol.version", "1.1");
    }
    if let Some((host, port)) = connection.address() {
        span.set_text("server.address", host);
        span.set("server.port", u64::from(port));
    }
    span.set_text(
        "mcp.protocol.version",
        connection.about().version.as_deref().unwrap_or_default(),
    );
    span.set_text("mcp.session.id", connection.session_id().as_deref().unwrap_or_default());
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

/// Waits for the turn of this call and for a connection to the server: that of all, or that of this
/// client.
pub(crate) async fn usable(
    member: &FleetMember,
    client: Option<u64>,
) -> Result<Usable<'_>, (ToolFailure, String)> {
    let server = &member.server;
    let turn = server.turn(member.limits.cap).await.map_err(|_| {
        let words = format!("Too many calls are queued for MCP server '{}'.", server.name());
        (ToolFailure::Unavailable, words)
    })?;
    let own = server.of_client(client).map_err(|words| (ToolFailure::Unavailable, words))?;
    // The checks were made against the connection of all, which does not wait for this one.
    let is_own = own.is_some();
    let server = own.as_ref().unwrap_or(server);
    if let Some(live) = server.connected() {
        let has_waited = turn.is_some();
        return Ok(Usable { live, was_waited_for: false, has_waited, _turn: turn });
    }
    let live = Box::pin(server.ready()).await;
    let live = live.map_err(|unavailable| {
        let failure = match unavailable.state {
            ServerState::NeedsAuth => ToolFailure::NeedsLogin,
            _ => ToolFailure::Unavailable,
        };
        (failure, unavailable.for_model())
    })?;
    Ok(Usable { live, was_waited_for: !is_own, has_waited: true, _turn: turn })
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

/// Converts a result. A large one is processed on a blocking thread, because it takes long and may
/// be written to a file.
pub(super) async fn read_result(
    tool: &CatalogueTool,
    raw: Json,
    options: CallOptions<'_>,
    duration: Duration,
) -> ToolOutcome {
    if let Some(Relay { wraps, .. }) = options.relay {
        let renderer = Arc::clone(tool.renderer());
        let is_quick = is_quick(wraps, raw.get().len());
        let raw = JsonCow::Owned(raw);
        let read = move || results::relayed(raw, ReplyKind::Call, &renderer, wraps, duration);
        return if is_quick { read() } else { elsewhere(read).await };
    }
    let (source, limits) = (Arc::clone(tool.source()), result_limits(options, &tool.member));
    let (spill, schema) = (tool.services.spill.as_ref(), tool.output_schema());
    if raw.get().len() < LARGE {
        return read_now(
            raw,
            source,
            limits,
            spill.map(|it| &**it),
            schema.map(|it| &**it),
            duration,
        );
    }
    let (spill, schema) = (spill.cloned(), schema.cloned());
    elsewhere(move || read_now(raw, source, limits, spill.as_deref(), schema.as_deref(), duration))
        .await
}

/// Whether a reply of this length is relayed without a blocking thread.
pub(super) fn is_quick(wraps: bool, length: usize) -> bool {
    !wraps || length < LARGE
}

fn read_now(
    raw: Json,
    source: Arc<Source>,
    limits: ResultLimits,
    spill: Option<&Spill>,
    schema: Option<&LazyValidator>,
    duration: Duration,
) -> ToolOutcome {
    let violation = schema.and_then(|schema| output_schema::check(&raw, schema));
    let mut outcome = results::outcome(raw, source, limits, spill, duration);
    if let Some(violation) = violation {
        violation.report(&mut outcome);
    }
    outcome
}

/// A connection that is ready for a call.
pub(crate) struct Usable<'s> {
    pub(crate) live: Arc<LiveConnection>,
    /// Whether it was connected for this call: its tools may differ from those that were checked.
    pub(crate) was_waited_for: bool,
    /// Whether the call had to wait.
    has_waited: bool,
    /// The turn, for a server that takes one call at a time.
    _turn: Option<SemaphorePermit<'s>>,
}

/// Processes a large response on a blocking thread.
pub(crate) async fn elsewhere(
    reading: impl FnOnce() -> ToolOutcome + Send + 'static,
) -> ToolOutcome {
    let read = tokio::task::spawn_blocking(reading).await;
    read.unwrap_or_else(|_| {
        results::failure(
            ToolFailure::InvalidResponse,
            "The result could not be processed.".to_owned(),
            None,
        )
    })
}

/// Triggers a refresh of the tool list.
fn ask_again(live: &LiveConnection) {
    live.connection().client().changed(|changes| changes.tools += 1);
}

/// Counts a call against the rate limits of its server. For a relay and for calls of a user, only a
/// pause that the server has asked for counts.
pub(crate) fn check_limit(
    server: &Server,
    now: Instant,
    options: CallOptions<'_>,
) -> Result<(), String> {
    let checked = match options.unlimited || options.relay.is_some() {
        false => server.limiter.check(now),
        true => server.limiter.check_pause(now),
    };
    checked.map_err(|wait| limited(server.name().as_str(), wait))
}

/// The message for a call that was rate limited.
pub(crate) fn limited(server: &str, wait: RetryAfter) -> String {
    let seconds = wait.after.as_secs() + u64::from(wait.after.subsec_nanos() > 0);
    let server = match wait.asked_by {
        AskedBy::Us => {
            format!("Too many calls to MCP server '{server}' (`rateLimit` in its entry).")
        }
        AskedBy::Server => format!("MCP server '{server}' has asked for a pause."),
    };
    format!("{server} Retry in {seconds} s.")
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

fn has_code(error: &CallError, code: i64) -> bool {
    rpc(error).is_some_and(|error| error.code == code)
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
