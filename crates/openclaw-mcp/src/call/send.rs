//! Sends a call that the pipeline has approved to its server (B5–B7, B10, B11).
//!
//! It crosses no actor and takes no lock. Every error becomes an outcome with a plain message.

use std::sync::Arc;
use std::time::Duration;

use openclaw_content::Source;
use openclaw_mcp_client::connection::Connection;
use openclaw_mcp_client::connection::era::Era;
use openclaw_mcp_client::host::{CallGuard, Changes};
use openclaw_mcp_client::listing::TaskSupport;
use openclaw_mcp_client::wire::WireCall;
use openclaw_mcp_client::wire::json::{Json, JsonCow};
use openclaw_tools::schema::LazyValidator;
use openclaw_tools::{
    CallClient, CallOptions, Executed, Relay, Tool as _, ToolCall, ToolFailure, ToolOutcome,
};
use openclaw_trace::Span;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::call::consequences::{
    describe_error, failed, hint_at_version, is_header_mismatch, rejected, succeeded,
};
use crate::call::limits::{limits, result_limits};
use crate::call::output_schema;
use crate::call::results::{self, ReplyKind, ResponseOrigin, ResultLimits};
use crate::catalogue::CatalogueTool;
use crate::catalogue::member::FleetMember;
use crate::server::live::LiveConnection;
use crate::server::status::ServerState;
use crate::store::spill::Spill;

/// Results of at least this many bytes are processed on a blocking thread.
pub(crate) const LARGE: usize = 256 * 1024;

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
        let member = &*tool.member;
        let server = tool.server();
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
        let limits = limits(call.options, member);
        let watcher = call.options.watcher;
        let connection = live.connection();
        describe(call.span, connection);
        let at_work = connection.client().working_for(call.agent, call.session);
        let request = WireCall {
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
        CallGuard::end(at_work, result.as_ref().err());
        let duration = started.elapsed();
        let mut outcome = match result {
            Ok(raw) => {
                let length = raw.get().len();
                let outcome = read_result(tool, raw, call.options, duration).await;
                succeeded(tool, live, &outcome, length);
                outcome
            }
            // Only a remote server gets headers.
            Err(error) if connection.flavour().is_some() && is_header_mismatch(&error) => {
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

/// Waits for the turn of this call and for a connection to the server: that of all, or that of this
/// client.
pub(crate) async fn usable(
    member: &FleetMember,
    client: Option<CallClient>,
) -> Result<Usable, (ToolFailure, String)> {
    let server = &member.server;
    let queued = |_| {
        let words = format!("Too many calls are queued for MCP server '{}'.", server.name());
        (ToolFailure::Unavailable, words)
    };
    let turn = server.turn(member.limits.cap).await.map_err(queued)?;
    let own = server.of_client(client).map_err(|words| (ToolFailure::Unavailable, words))?;
    // The checks were made against the connection of all, which does not wait for this one.
    let own_turn = match &own {
        Some(own) => own.turn(member.limits.cap).await.map_err(queued)?,
        None => None,
    };
    let has_waited = turn.is_some() || own_turn.is_some();
    let turns = [turn, own_turn];
    let is_own = own.is_some();
    let server = own.as_ref().unwrap_or(server);
    if let Some(live) = server.connected() {
        return Ok(Usable { live, was_waited_for: false, has_waited, _turns: turns });
    }
    let live = Box::pin(server.ready()).await;
    let live = live.map_err(|unavailable| {
        let failure = match unavailable.state {
            ServerState::NeedsAuth => ToolFailure::NeedsLogin,
            _ => ToolFailure::Unavailable,
        };
        (failure, unavailable.for_model())
    })?;
    Ok(Usable { live, was_waited_for: !is_own, has_waited: true, _turns: turns })
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
    let source = Arc::clone(tool.source());
    let limits = result_limits(options, &tool.member);
    let spill = tool.services.spill.as_ref();
    let schema = tool.output_schema();
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
    let spill = spill.cloned();
    let schema = schema.cloned();
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
pub(crate) struct Usable {
    pub(crate) live: Arc<LiveConnection>,
    /// Whether it was connected for this call: its tools may differ from those that were checked.
    pub(crate) was_waited_for: bool,
    /// Whether the call had to wait.
    has_waited: bool,
    /// The turns, for a server that takes one call at a time, and for a connection of a client that does.
    _turns: [Option<OwnedSemaphorePermit>; 2],
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
