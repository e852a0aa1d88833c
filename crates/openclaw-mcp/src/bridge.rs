//! A call of a tool, from its name to its outcome (B4–B8, B10, B11, B13).
//!
//! The way of a call crosses no actor and waits for no lock: catalogue, policy, pin, limiter, schema,
//! wire, wrapping. Whatever goes wrong on it becomes an outcome in plain words.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use openclaw_tools::{Decision, Failure, ToolOutcome};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::AgentTools;
use crate::audit::{Audit, AuditOutcome, CallRecord};
use crate::catalogue::CatalogueTool;
use crate::client::Changes;
use crate::limiter::{AskedBy, RetryAfter};
use crate::pins::{Pin, Pins};
use crate::resource_tool;
use crate::results::{self, Origin, ResultLimits};
use crate::schema::{Validator, Violations};
use crate::spill::Spill;
use crate::wire::CallError;

/// How long a server is left alone that wants fewer calls and does not say for how long.
const PAUSE: Duration = Duration::from_secs(5);

/// A result of so many bytes is read elsewhere.
const LARGE: usize = 256 * 1024;
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

    pub(crate) async fn close(&self) {
        self.audit.flush().await;
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
    /// Somebody has seen what the tool says about itself today, and wants the call.
    pub approved: bool,
}

impl AgentTools {
    /// Calls a tool. Dropping the future tells the server that nobody waits any more.
    pub async fn call(&self, call: Call<'_>) -> ToolOutcome {
        let started = Instant::now();
        let catalogue = self.catalogue();
        let Some(tool) = catalogue.get(call.name) else {
            return match call.name {
                resource_tool::NAME => self.use_resources(call.arguments).await,
                name => unknown(name),
            };
        };
        let mut record = Recorder { tools: self, tool, call, started, is_written: false };
        let mut outcome = self.carry_out(tool, call).await;
        outcome.details.duration = started.elapsed();
        record.write(&outcome);
        outcome
    }

    async fn carry_out(&self, tool: &CatalogueTool, call: Call<'_>) -> ToolOutcome {
        let server = &tool.server;
        let origin = Origin { server: server.name().as_str(), tool: tool.listed.name.as_str() };
        let fail = |kind, words| results::failure(kind, words, Some(origin));
        if let Decision::Denied { by } = &tool.decision {
            let words = format!("This call is not allowed: the configuration says so (`{by}`).");
            return fail(Failure::Denied, words);
        }
        if let Err(words) = self.check_pin(tool, call) {
            return fail(Failure::Denied, format!("This call is not allowed: {words}."));
        }
        match tool.validator.get() {
            Ok(validator) => {
                if let Err(violations) = check(validator, call.arguments) {
                    let words = format!(
                        "The arguments do not fit this tool. Nothing was called.\n{violations}"
                    );
                    return fail(Failure::InvalidArguments, words);
                }
            }
            Err(unusable) => {
                let words =
                    format!("This tool cannot be called, its schema is broken: {unusable}.");
                return fail(Failure::Protocol, words);
            }
        }
        if let Err(wait) = server.limiter.check() {
            return fail(Failure::RateLimited, limited(origin.server, wait));
        }
        let attached = match server.ready().await {
            Ok(attached) => attached,
            Err(unavailable) => return fail(Failure::Unavailable, unavailable.to_string()),
        };
        let _turn = match &server.turn {
            Some(turn) => turn.acquire().await.ok(),
            None => None,
        };
        let started = Instant::now();
        let connection = attached.connection();
        let headers = tool.headers();
        let name = &tool.listed.name;
        let mut result = connection.call_tool(name, call.arguments, headers, server.limits).await;
        if result.as_ref().is_err_and(|error| has_code(error, HEADER_MISMATCH)) {
            // The tool has changed meanwhile: which arguments go into headers is looked up anew.
            attached.list_again(Changes { tools: 1, ..Changes::default() }).await;
            let catalogue = self.catalogue();
            let headers = catalogue.get(call.name).map_or(headers, |tool| tool.headers());
            result = connection.call_tool(name, call.arguments, headers, server.limits).await;
        }
        let duration = started.elapsed();
        let outcome = match result {
            Ok(raw) => {
                let limits = ResultLimits { max_chars: server.config().max_result_chars };
                self.read_result(raw, origin, limits, duration).await
            }
            Err(error) => {
                if is_unknown_tool(&error) {
                    server.shelf().remove_tool(&tool.listed.name);
                    // Whoever keeps the lists fresh asks again.
                    connection.client().changed(|changes| changes.tools += 1);
                }
                match &error {
                    CallError::RateLimited { retry_after } => {
                        server.limiter.back_off(retry_after.unwrap_or(PAUSE));
                    }
                    // Connecting anew leads to the state that says so.
                    CallError::NeedsAuth { .. } => server.reconnect().await,
                    _ => {}
                }
                results::call_failed(error, origin)
            }
        };
        server.stats.record(duration, outcome.is_error);
        outcome
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
        let reading = tokio::task::spawn_blocking(move || {
            let origin = Origin { server: &server, tool: &tool };
            results::outcome(raw, origin, limits, spill.as_deref(), duration)
        });
        reading.await.unwrap_or_else(|_| {
            let words = "The result could not be read.".to_owned();
            results::failure(Failure::InvalidResponse, words, Some(origin))
        })
    }

    /// A tool that says something else about itself than when it was approved needs another look.
    fn check_pin(&self, tool: &CatalogueTool, call: Call<'_>) -> Result<(), &'static str> {
        let Some(pins) = &self.office.pins else { return Ok(()) };
        let (server, name) = (tool.server.name().as_str(), tool.listed.name.as_str());
        let fingerprint = tool.fingerprint();
        match (pins.check(server, name, fingerprint), call.approved) {
            (Pin::Same, _) | (Pin::New, false) => Ok(()),
            (Pin::New | Pin::Changed { .. }, true) => {
                if let Err(error) = pins.approve(server, name, *fingerprint) {
                    tracing::warn!(%server, tool = %name, %error, "the approval cannot be kept");
                }
                Ok(())
            }
            (Pin::Changed { .. }, false) => {
                Err("the tool says something else about itself than when it was approved, and \
                 somebody must look at it and approve it again")
            }
        }
    }
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
    let who = match wait.asked_by {
        AskedBy::Us => "There were too many calls to",
        AskedBy::Server => "Fewer calls are wanted by",
    };
    format!("{who} MCP server '{server}'. Try again in {seconds} s.")
}

/// The outcome of a call of a tool that is not there.
fn unknown(name: &str) -> ToolOutcome {
    // A model may have made the name up.
    let name: String = name.chars().take(64).filter(|c| c.is_ascii_graphic()).collect();
    let mut outcome = ToolOutcome::failure(format!("There is no tool '{name}'."));
    outcome.details.failure = Some(Failure::Denied);
    outcome
}

/// Writes the audit line, also for a call whose caller has gone.
struct Recorder<'a> {
    tools: &'a AgentTools,
    tool: &'a CatalogueTool,
    call: Call<'a>,
    started: Instant,
    is_written: bool,
}

impl Recorder<'_> {
    fn write(&mut self, outcome: &ToolOutcome) {
        self.is_written = true;
        let chars = if self.tools.office.audit.is_on() { outcome.content_chars() } else { 0 };
        self.record(AuditOutcome::of(outcome), chars);
    }

    fn record(&self, ending: AuditOutcome, result_chars: usize) {
        let duration = self.started.elapsed();
        let (server, raw_tool) = (self.tool.server.name().as_str(), &self.tool.listed.name);
        tracing::debug!(
            server,
            tool = raw_tool,
            outcome = ending.name(),
            duration_ms = duration.as_secs_f64() * 1_000.0,
            "call"
        );
        if !self.tools.office.audit.is_on() {
            return;
        }
        self.tools.office.audit.record(&CallRecord {
            at: SystemTime::now(),
            who: self.call.who,
            agent: Some(self.tools.id().as_str()),
            session: self.call.session,
            server,
            tool: self.call.name,
            raw_tool,
            arguments: self.call.arguments,
            outcome: ending,
            duration,
            result_chars,
        });
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        if !self.is_written {
            self.record(AuditOutcome::Cancelled, 0);
        }
    }
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
