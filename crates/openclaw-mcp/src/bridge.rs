//! A call of a tool, from its name to its outcome (B4–B8, B10, B11, B13).
//!
//! The way of a call crosses no actor and waits for no lock: catalogue, policy, pin, limiter, schema,
//! wire, wrapping. Whatever goes wrong on it becomes an outcome in plain words.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openclaw_tools::{Approval, Decision, Failure, ToolOutcome};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use crate::agent::AgentTools;
use crate::attached::Attached;
use crate::audit::Audit;
use crate::catalogue::CatalogueTool;
use crate::client::Changes;
use crate::limiter::{AskedBy, RetryAfter};
use crate::pins::{Fingerprint, Pin, Pins, Unsaved};
use crate::record::Recorder;
use crate::resource_tool;
use crate::results::{self, Origin, ResultLimits};
use crate::server::Server;
use crate::spill::Spill;
use crate::wire::{CallError, Limits, Watcher};
use openclaw_tools::schema::{Validator, Violations};

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
pub struct Office {
    /// Who did what.
    pub audit: Audit,
    /// Where large results are kept.
    pub spill: Option<Arc<Spill>>,
    /// What tools looked like when they were approved.
    pub pins: Option<Arc<Pins>>,
}

impl Office {
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

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The tool's final name.
    pub name: &'a str,
    /// The arguments: a JSON object.
    pub arguments: &'a RawValue,
    /// Who is behind it.
    pub who: &'a str,
    /// The session that it belongs to.
    pub session: Option<&'a str>,
    /// What somebody has seen and approved: the call is made if the tool still says so about itself.
    pub approved: Option<Approved>,
}

/// What else whoever calls wants. An agent wants nothing of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes<'a> {
    /// To be told how far the call has got.
    pub watcher: Option<&'a Watcher>,
    /// An answer within this time, whatever the server is allowed otherwise.
    pub within: Option<Duration>,
    /// All that is in the answer: no text is cut, and beside what a model sees, the details hold its
    /// structured content and its binary resources.
    pub everything: bool,
    /// No more than so many characters of text.
    pub max_chars: Option<usize>,
}

impl Wishes<'_> {
    pub(crate) fn limits(self, server: &Server) -> Limits {
        let within = |within| Limits { timeout: within, cap: within };
        self.within.map_or(server.limits, within)
    }

    pub(crate) fn result_limits(self, server: &Server) -> ResultLimits {
        let usual =
            if self.everything { usize::MAX } else { server.config().treatment.max_result_chars };
        let max_chars = self.max_chars.map_or(usual, |most| most.min(usual));
        ResultLimits { max_chars, everything: self.everything }
    }
}

/// What somebody has seen and approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approved {
    /// What the tool said about itself.
    pub fingerprint: Fingerprint,
    /// For this call, or for good.
    pub how: Approval,
}

/// The tool has changed since the catalogue was built. What the call came to, should that be all.
struct Stale(ToolOutcome);

impl AgentTools {
    /// Calls a tool. Dropping the future tells the server that nobody waits any more.
    pub async fn call(&self, call: Call<'_>) -> ToolOutcome {
        self.call_with(call, Wishes::default()).await
    }

    /// The same for somebody with wishes.
    pub async fn call_with(&self, call: Call<'_>, wishes: Wishes<'_>) -> ToolOutcome {
        let catalogue = self.catalogue();
        let Some(tool) = catalogue.get(call.name) else {
            let record = Recorder::new(self, call, "", "");
            let outcome = match call.name {
                resource_tool::NAME => self.use_resources(call).await,
                name => unknown(name),
            };
            return record.write(outcome);
        };
        let server = tool.server.name().as_str();
        let record = Recorder::new(self, call, server, &tool.listed.name);
        let outcome = match self.carry_out(tool, call, wishes).await {
            Ok(outcome) => outcome,
            // It is looked up anew, and all checks with it.
            Err(_) => match self.catalogue().get(call.name) {
                Some(tool) => {
                    let last = self.carry_out(tool, call, wishes).await;
                    last.unwrap_or_else(|Stale(outcome)| outcome)
                }
                None => unknown(call.name),
            },
        };
        record.write(outcome)
    }

    async fn carry_out(
        &self,
        tool: &CatalogueTool,
        call: Call<'_>,
        wishes: Wishes<'_>,
    ) -> Result<ToolOutcome, Stale> {
        let server = &tool.server;
        let origin = Origin { server: server.name().as_str(), tool: tool.listed.name.as_str() };
        if let Err((kind, words)) = self.may_be_called(tool, call) {
            return Ok(results::failure(kind, words, Some(origin)));
        }
        self.keep_approval(tool, call);
        let usable = match self.usable(server).await {
            Ok(usable) => usable,
            Err((kind, words)) => return Ok(results::failure(kind, words, Some(origin))),
        };
        let attached = &usable.attached;
        let started = Instant::now();
        let (name, headers) = (&tool.listed.name, tool.headers());
        let (limits, watcher) = (wishes.limits(server), wishes.watcher);
        let connection = attached.connection();
        let _at_work = connection.client().working_for(self.id().as_str(), call.session);
        let result =
            connection.call_tool_watched(name, call.arguments, headers, limits, watcher).await;
        let duration = started.elapsed();
        let outcome = match result {
            Ok(raw) => {
                server.was_let_in();
                let limits = wishes.result_limits(server);
                let is_short = raw.get().len() < 1_000;
                let outcome = self.read_result(raw, origin, limits, duration).await;
                if is_short && outcome.is_error && says_unknown_tool(&outcome) {
                    ask_again(attached);
                }
                outcome
            }
            Err(error) if has_code(&error, HEADER_MISMATCH) => {
                let _ = attached.list_again(Changes { tools: 1, ..Changes::default() }).await;
                return Err(Stale(results::call_failed(error, origin)));
            }
            Err(error) => {
                if is_unknown_tool(&error) {
                    server.shelf().remove_tool(&tool.listed.name);
                    ask_again(attached);
                }
                self.failed(server, attached, &error).await;
                results::call_failed(error, origin)
            }
        };
        server.stats.record(duration, outcome.is_error);
        Ok(outcome)
    }

    /// All that can be decided without the server.
    fn may_be_called(&self, tool: &CatalogueTool, call: Call<'_>) -> Result<(), (Failure, String)> {
        if let Decision::Denied { by } = &tool.decision {
            let words = format!("This call is not allowed: the configuration says so (`{by}`).");
            return Err((Failure::Denied, words));
        }
        if let Some(flaw) = tool.flaw() {
            return Err((Failure::Protocol, format!("This tool cannot be called: {flaw}.")));
        }
        self.check_pin(tool, call)
            .map_err(|words| (Failure::Denied, format!("This call is not allowed: {words}.")))?;
        if tool.validator.plainly_fits(call.arguments) {
            return Ok(());
        }
        let validator = tool.validator.get().map_err(|unusable| {
            let words = format!("This tool cannot be called, its schema is broken: {unusable}.");
            (Failure::Protocol, words)
        })?;
        check(validator, call.arguments).map_err(|violations| {
            let words =
                format!("The arguments do not fit this tool. Nothing was called.\n{violations}");
            (Failure::InvalidArguments, words)
        })
    }

    /// A server that can be used now, within its limits.
    pub(crate) async fn usable<'s>(
        &self,
        server: &'s Server,
    ) -> Result<Usable<'s>, (Failure, String)> {
        let turn = match &server.turn {
            Some(turn) => match timeout(server.limits.cap, turn.acquire()).await {
                Ok(turn) => turn.ok(),
                Err(_) => {
                    let words = format!("Too many calls wait for MCP server '{}'.", server.name());
                    return Err((Failure::Unavailable, words));
                }
            },
            None => None,
        };
        let attached = server.ready().await;
        let attached =
            attached.map_err(|unavailable| (Failure::Unavailable, unavailable.for_model()))?;
        server
            .limiter
            .check()
            .map_err(|wait| (Failure::RateLimited, limited(server.name().as_str(), wait)))?;
        Ok(Usable { attached, _turn: turn })
    }

    /// What follows from a failure for the calls to come.
    pub(crate) async fn failed(
        &self,
        server: &Server,
        attached: &Arc<Attached>,
        error: &CallError,
    ) {
        match error {
            CallError::RateLimited { .. } | CallError::OutOfService { .. } => {
                server.limiter.back_off(error.retry_after().unwrap_or(PAUSE));
            }
            CallError::NeedsAuth { challenge } => {
                server.wants_login(attached, challenge.as_deref()).await;
            }
            _ => {}
        }
    }

    /// The outcome of a result. A large one takes its time, and perhaps a file: that is done elsewhere,
    /// so that other calls need not wait.
    async fn read_result(
        &self,
        raw: Box<RawValue>,
        origin: Origin<'_>,
        limits: ResultLimits,
        duration: Duration,
    ) -> ToolOutcome {
        let spill = self.office.spill.clone();
        if raw.get().len() < LARGE {
            return results::outcome(raw, origin, limits, spill.as_deref(), duration);
        }
        let (server, tool) = (origin.server.to_owned(), origin.tool.to_owned());
        let reading = move || {
            let origin = Origin { server: &server, tool: &tool };
            results::outcome(raw, origin, limits, spill.as_deref(), duration)
        };
        elsewhere(reading).await
    }

    /// A tool that says something else about itself than when it was approved needs another look.
    fn check_pin(&self, tool: &CatalogueTool, call: Call<'_>) -> Result<(), &'static str> {
        const CHANGED: &str = "the tool says something else about itself than when it was approved, \
                               and somebody must look at it and approve it again";
        let fingerprint = tool.fingerprint();
        if call.approved.is_some_and(|approved| approved.fingerprint != *fingerprint) {
            return Err(CHANGED);
        }
        let (Some(pins), None) = (&self.office.pins, call.approved) else { return Ok(()) };
        match pins.check(tool.server.name().as_str(), &tool.listed.name, fingerprint) {
            Pin::Changed { .. } => Err(CHANGED),
            Pin::Same | Pin::New => Ok(()),
        }
    }

    /// Writes down what somebody has approved, unless that is known. Nobody waits for it but the end.
    fn keep_approval(&self, tool: &CatalogueTool, call: Call<'_>) {
        let (Some(pins), Some(Approved { fingerprint, how })) = (&self.office.pins, call.approved)
        else {
            return;
        };
        let (server, name) = (tool.server.name().as_str(), tool.listed.name.as_str());
        if how == Approval::Always || pins.check(server, name, &fingerprint) != Pin::Same {
            pins.keep(server, name, fingerprint, how);
        }
    }
}

/// A server that can be used now.
pub(crate) struct Usable<'s> {
    pub(crate) attached: Arc<Attached>,
    /// For a server that takes one call at a time.
    _turn: Option<SemaphorePermit<'s>>,
}

/// Reads a large answer where nobody waits.
pub(crate) async fn elsewhere(
    reading: impl FnOnce() -> ToolOutcome + Send + 'static,
) -> ToolOutcome {
    let read = tokio::task::spawn_blocking(reading).await;
    read.unwrap_or_else(|_| {
        results::failure(Failure::InvalidResponse, "The answer could not be read.".to_owned(), None)
    })
}

/// Whoever keeps the lists fresh asks for the tools again.
fn ask_again(attached: &Attached) {
    attached.connection().client().changed(|changes| changes.tools += 1);
}

/// Models like to send `null` for what they leave out: where nothing is required, that is no mistake.
fn check(validator: &Validator, arguments: &RawValue) -> Result<(), Violations> {
    let Err(violations) = validator.check_raw(arguments) else { return Ok(()) };
    let Ok(Value::Object(mut members)) = serde_json::from_str::<Value>(arguments.get()) else {
        return Err(violations);
    };
    let all = members.len();
    members.retain(|_, value| !value.is_null());
    if members.len() < all && validator.check(&Value::Object(members)).is_ok() {
        return Ok(());
    }
    Err(violations)
}

/// Too many calls, in words.
pub(crate) fn limited(server: &str, wait: RetryAfter) -> String {
    let seconds = wait.after.as_secs() + u64::from(wait.after.subsec_nanos() > 0);
    let server = match wait.asked_by {
        AskedBy::Us => format!("There were too many calls to MCP server '{server}'."),
        AskedBy::Server => format!("MCP server '{server}' wants no calls for now."),
    };
    format!("{server} Try again in {seconds} s.")
}

/// The outcome of a call of a tool that is not there.
fn unknown(name: &str) -> ToolOutcome {
    // A model may have made the name up.
    let name: String = name.chars().take(64).filter(|c| c.is_ascii_graphic()).collect();
    let mut outcome = ToolOutcome::failure(format!("There is no tool '{name}'."));
    outcome.details.failure = Some(Failure::Denied);
    outcome
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
