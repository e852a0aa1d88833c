//! A call that the pipeline has let pass, to its server and back (B5–B7, B10, B11).
//!
//! It crosses no actor and waits for no lock. Whatever goes wrong becomes an outcome in plain words.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use openclaw_content::Source;
use openclaw_tools::audit::Audit;
use openclaw_tools::{CallOptions, Executed, Failure, Tool as _, ToolCall, ToolOutcome};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout};

use crate::call::results::{self, Origin, ResultLimits};
use crate::call::spill::Spill;
use crate::connection::client::Changes;
use crate::fleet::catalogue::CatalogueTool;
use crate::fleet::member::Member;
use crate::server::Server;
use crate::server::limiter::{AskedBy, RetryAfter};
use crate::server::live::LiveConnection;
use crate::store::pins::{Pins, Unsaved};
use crate::wire::json::Json;
use crate::wire::{CallError, Limits};

/// How long a server is left alone that wants fewer calls and does not say for how long.
const PAUSE: Duration = Duration::from_secs(5);

/// How long approvals are waited for at the end.
const SAVING: Duration = Duration::from_secs(10);

/// A result of so many bytes is read elsewhere.
pub(crate) const LARGE: usize = 256 * 1024;
/// What a server answers if the headers of a call do not fit its arguments (2026-07-28).
const HEADER_MISMATCH: i64 = -32020;

/// What watches over calls.
#[derive(Debug, Clone)]
pub struct CallServices {
    /// Who did what.
    pub audit: Audit,
    /// Where large results are kept.
    pub spill: Option<Arc<Spill>>,
    /// What tools looked like when they were approved.
    pub pins: Option<Arc<Pins>>,
}

impl CallServices {
    /// Nothing is written down.
    pub fn none() -> Self {
        Self { audit: Audit::none(), spill: None, pins: None }
    }

    /// Waits for what is being written down, but not for a disk that hangs.
    pub(crate) async fn close(&self) {
        // That they cannot be saved was logged.
        let _ = self.approvals_saved().await;
        self.audit.flush().await;
    }

    /// Waits until approvals are saved, but not for a disk that hangs.
    pub(crate) async fn approvals_saved(&self) -> Result<(), Unsaved> {
        let Some(pins) = &self.pins else { return Ok(()) };
        let saved = timeout(SAVING, pins.saved()).await;
        saved.unwrap_or_else(|_| Err(pins.not_saved(io::ErrorKind::TimedOut)))
    }
}

/// How long a call may take.
pub(crate) fn limits(options: CallOptions<'_>, member: &Member) -> Limits {
    let Some(deadline) = options.deadline else { return member.limits };
    let left = deadline.saturating_duration_since(tokio::time::Instant::now());
    Limits { timeout: left, cap: left }
}

/// How much of a result is read.
pub(crate) fn result_limits(options: CallOptions<'_>, member: &Member) -> ResultLimits {
    let usual = if options.everything { usize::MAX } else { member.treatment.max_result_chars };
    let max_chars = options.max_chars.map_or(usual, |most| most.min(usual));
    ResultLimits { max_chars, everything: options.everything }
}

/// Calls a tool of a server, which has passed all checks. Dropping the future tells the server that nobody
/// waits any more.
///
/// The future is boxed for each call and should be small, for which an allocator is quickest: what happens
/// rarely is boxed by itself.
#[allow(clippy::manual_async_fn, reason = "it would hold its arguments twice")]
pub(crate) fn call<'a>(
    tool: &'a CatalogueTool,
    call: ToolCall<'a>,
) -> impl Future<Output = Executed> + Send + 'a {
    async move {
        let (member, server) = (&*tool.member, tool.server());
        let origin = Origin::of(tool.source());
        let usable = match usable(member).await {
            Ok(usable) => usable,
            Err((kind, words)) => {
                return Executed::Done(results::failure(kind, words, Some(origin)));
            }
        };
        // What was checked is the tool of before.
        if usable.was_waited_for && !tool.is_current() {
            let words =
                "The server was reconnected and the tool has changed. The tool was not called.";
            let outcome = results::failure(Failure::Denied, words.to_owned(), Some(origin));
            return Executed::Stale(outcome);
        }
        let live = &usable.live;
        let started = if usable.has_waited { Instant::now() } else { call.started };
        let (name, headers) = (&tool.listed.name, tool.headers());
        let (limits, watcher) = (limits(call.options, member), call.options.watcher);
        let connection = live.connection();
        let _at_work = connection.client().working_for(call.agent, call.session);
        let arguments = call.arguments.raw();
        let result = connection.call_tool_watched(name, arguments, headers, limits, watcher).await;
        let duration = started.elapsed();
        let outcome = match result {
            Ok(raw) => {
                server.was_let_in();
                let limits = result_limits(call.options, member);
                let is_short = raw.get().len() < 1_000;
                let source = Arc::clone(tool.source());
                let outcome = read_result(&tool.services, raw, source, limits, duration).await;
                if is_short && outcome.is_error && says_unknown_tool(&outcome) {
                    ask_again(live);
                }
                outcome
            }
            Err(error) if has_code(&error, HEADER_MISMATCH) => {
                let changes = Changes { tools: 1, ..Changes::default() };
                let _ = Box::pin(live.list_again(changes)).await;
                return Executed::Stale(results::call_failed(error, origin));
            }
            Err(error) => {
                if is_unknown_tool(&error) {
                    server.cache().remove_tool(&tool.listed.name);
                    ask_again(live);
                }
                Box::pin(failed(server, live, &error)).await;
                results::call_failed(error, origin)
            }
        };
        server.stats.record(duration, outcome.is_error);
        Executed::Done(outcome)
    }
}

/// A server that can be used now, once it is this call's turn.
pub(crate) async fn usable(member: &Member) -> Result<Usable<'_>, (Failure, String)> {
    let server = &member.server;
    let turn = server.turn(member.limits.cap).await.map_err(|_| {
        let words = format!("Too many calls are queued for MCP server '{}'.", server.name());
        (Failure::Unavailable, words)
    })?;
    if let Some(live) = server.connected() {
        let has_waited = turn.is_some();
        return Ok(Usable { live, was_waited_for: false, has_waited, _turn: turn });
    }
    let live = Box::pin(server.ready()).await;
    let live = live.map_err(|unavailable| (Failure::Unavailable, unavailable.for_model()))?;
    Ok(Usable { live, was_waited_for: true, has_waited: true, _turn: turn })
}

/// What follows from a failure for the calls to come.
pub(crate) async fn failed(server: &Server, live: &Arc<LiveConnection>, error: &CallError) {
    match error {
        CallError::RateLimited { .. } | CallError::OutOfService { .. } => {
            server.limiter.back_off(error.retry_after().unwrap_or(PAUSE));
        }
        CallError::NeedsAuth { challenge } => {
            server.wants_login(live, challenge.as_deref()).await;
        }
        _ => {}
    }
}

/// The outcome of a result. A large one takes its time, and perhaps a file: that is done elsewhere,
/// so that other calls need not wait.
async fn read_result(
    services: &CallServices,
    raw: Json,
    source: Arc<Source>,
    limits: ResultLimits,
    duration: Duration,
) -> ToolOutcome {
    if raw.get().len() < LARGE {
        return results::outcome(raw, source, limits, services.spill.as_deref(), duration);
    }
    let spill = services.spill.clone();
    let reading = move || results::outcome(raw, source, limits, spill.as_deref(), duration);
    elsewhere(reading).await
}

/// A server that can be used now.
pub(crate) struct Usable<'s> {
    pub(crate) live: Arc<LiveConnection>,
    /// It was connected to for this call: what it has may be something else than was looked at.
    pub(crate) was_waited_for: bool,
    /// It may have taken time until it could be used.
    has_waited: bool,
    /// For a server that takes one call at a time.
    _turn: Option<SemaphorePermit<'s>>,
}

/// Reads a large answer where nobody waits.
pub(crate) async fn elsewhere(
    reading: impl FnOnce() -> ToolOutcome + Send + 'static,
) -> ToolOutcome {
    let read = tokio::task::spawn_blocking(reading).await;
    read.unwrap_or_else(|_| {
        results::failure(
            Failure::InvalidResponse,
            "The result could not be processed.".to_owned(),
            None,
        )
    })
}

/// Whoever keeps the lists fresh asks for the tools again.
fn ask_again(live: &LiveConnection) {
    live.connection().client().changed(|changes| changes.tools += 1);
}

/// Too many calls, in words.
pub(crate) fn limited(server: &str, wait: RetryAfter) -> String {
    let seconds = wait.after.as_secs() + u64::from(wait.after.subsec_nanos() > 0);
    let server = match wait.asked_by {
        AskedBy::Us => format!("Too many calls to MCP server '{server}'."),
        AskedBy::Server => format!("MCP server '{server}' is rate limiting calls."),
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

/// Whether a server says that it does not have the tool, in one of the ways in which servers do.
fn is_unknown_tool(error: &CallError) -> bool {
    let Some(error) = rpc(error) else { return false };
    let message = error.message.to_ascii_lowercase();
    let says_so = message.contains("unknown tool")
        || message.contains("tool") && message.contains("not found");
    matches!(error.code, -32601 | -32602) && says_so
}

/// Whether an answer says so, of servers that make a result of it.
fn says_unknown_tool(outcome: &ToolOutcome) -> bool {
    let text = outcome.text();
    text.contains("nknown tool") || text.contains("ool not found")
}
