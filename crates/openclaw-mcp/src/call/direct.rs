//! A call of a relay that no future waits for: its response is handled by the task that reads the
//! server. What has to be waited for is left to [`send::call`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use openclaw_tools::{
    CallOptions, Executed, OnExecuted, Ready, Relay, StartedCall, ToolCall, ToolOutcome,
};
use openclaw_trace::SpanContext;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::results::{self, ReplyKind};
use super::{consequences, send};
use crate::catalogue::CatalogueTool;
use crate::server::live::LiveConnection;
use openclaw_mcp_client::connection::Called;
use openclaw_mcp_client::connection::era::Era;
use openclaw_mcp_client::listing::TaskSupport;
use openclaw_mcp_client::wire::json::{Json, JsonCow, JsonRef};
use openclaw_mcp_client::wire::{self, CallError, DirectLane, OnReply, WorkId, redacted};

/// A call, and where its result goes.
pub(crate) struct DirectCall {
    tool: Arc<CatalogueTool>,
    live: Arc<LiveConnection>,
    lane: DirectLane,
    wraps: bool,
    /// Whether a request for input is its result (2026-07-28).
    relays_input: bool,
    /// The number of the server's work on it.
    work: Option<WorkId>,
    /// Once it is started.
    running: Option<Running>,
}

struct Running {
    started: Instant,
    done: OnExecuted,
    /// What is needed to repeat the call, if its server may request input.
    again: Option<Again>,
}

struct Again {
    arguments: Box<RawValue>,
    /// The members of `_meta` besides our own, without braces.
    extra: String,
    log_level: Option<String>,
    trace: Option<SpanContext>,
}

impl DirectCall {
    /// Prepares a call, if its server is connected and nothing else has to be waited for.
    pub(crate) fn prepare(tool: Arc<CatalogueTool>, options: CallOptions<'_>) -> Option<Box<Self>> {
        let CallOptions { relay, watcher, deadline, .. } = options;
        let Relay { wraps, meta, .. } = relay.filter(|relay| relay.more.is_empty())?;
        if watcher.is_some() || deadline.is_some() || tool.server().takes_turns() {
            return None;
        }
        let live = match tool.server().of_client(options.client).ok()? {
            Some(own) if own.takes_turns() => return None,
            Some(own) => own.connected()?,
            None => tool.server().connected()?,
        };
        let connection = live.connection();
        if tool.listed.task_support == TaskSupport::Required && connection.era() == Era::Legacy {
            return None;
        }
        let lane = connection.direct()?;
        let relays_input = meta.is_some() && connection.may_ask_back();
        let work = None;
        let running = None;
        Some(Box::new(Self { tool, live, lane, wraps, relays_input, work, running }))
    }

    /// Converts a result. A large one, and one that is not the end of the call, is left to a task.
    fn read(mut self: Box<Self>, call: u64, raw: JsonRef<'_>, now: Instant) {
        let Some(Running { started, .. }) = &self.running else { return };
        let length = raw.get().len();
        let duration = now.saturating_duration_since(*started);
        let raw = redacted::result(JsonCow::Borrowed(raw), self.lane.redactor());
        let is_final = self.live.connection().is_final(raw.as_ref().get(), self.relays_input);
        if !is_final || !send::is_quick(self.wraps, length) {
            let raw = Json::from(raw);
            let lane = self.lane.clone();
            return lane.go_on(call, self.rest(call, raw, is_final));
        }
        let renderer = self.tool.renderer();
        let outcome = results::relayed(raw, ReplyKind::Call, renderer, self.wraps, duration);
        consequences::succeeded(&self.tool, &self.live, &outcome, length);
        self.end_work(None);
        self.finish(outcome, duration);
    }

    /// The rest of a call with this result.
    async fn rest(mut self: Box<Self>, call: u64, raw: Json, is_final: bool) {
        let Some(Running { started, again, .. }) = &mut self.running else { return };
        let started = *started;
        let again = again.take();
        let work = self.work;
        // Nothing of this is borrowed across an `await`: the receiver of the result is not `Sync`.
        let tool = Arc::clone(&self.tool);
        let live = Arc::clone(&self.live);
        let relay = self.relay();
        let result = match &again {
            Some(again) if !is_final => {
                let connection = live.connection();
                let limits = tool.member.limits;
                let meta = connection.meta_with(&again.extra, again.log_level.as_deref());
                let trace = again.trace.as_ref();
                let call = request(&tool, &meta, &again.arguments, trace, work);
                let asks = !self.relays_input;
                let called = Called { call, started, limits, watcher: None, asks };
                connection.continued(called, raw).await
            }
            _ => Ok(raw),
        };
        self.end_work(result.as_ref().err());
        let duration = started.elapsed();
        let outcome = match result {
            Ok(raw) => {
                let length = raw.get().len();
                let options = CallOptions { relay: Some(relay), ..CallOptions::default() };
                let outcome = send::read_result(&tool, raw, options, duration).await;
                consequences::succeeded(&tool, &live, &outcome, length);
                outcome
            }
            Err(error) => consequences::rejected(&tool, &live, error, Some(relay)),
        };
        if self.lane.is_over(call) {
            self.finish(outcome, duration);
        }
    }

    fn relay(&self) -> Relay<'static> {
        Relay {
            wraps: self.wraps,
            more: "",
            meta: None,
            shows_pages: false,
            extra: "",
            log_level: None,
        }
    }

    /// Ends the server's work on the call, which has failed with this error, if any.
    fn end_work(&mut self, error: Option<&CallError>) {
        if error.is_none_or(CallError::ends_work)
            && let Some(work) = self.work.take()
        {
            self.live.connection().client().end_work(work);
        }
    }

    fn finish(&mut self, outcome: ToolOutcome, duration: Duration) {
        self.tool.server().stats.record(duration, outcome.is_error);
        if let Some(Running { done, .. }) = self.running.take() {
            done(Executed::Done(outcome));
        }
    }
}

impl Drop for DirectCall {
    fn drop(&mut self) {
        // It was cancelled, or has timed out.
        if let Some(work) = self.work.take() {
            self.live.connection().client().abandon_work(work);
        }
    }
}

fn request<'a>(
    tool: &'a CatalogueTool,
    meta: &'a str,
    arguments: &'a RawValue,
    trace: Option<&'a SpanContext>,
    work: Option<WorkId>,
) -> wire::WireCall<'a> {
    let tool = &tool.listed.name;
    wire::WireCall { tool, arguments, meta, more: "", headers: &[], trace, work }
}

impl Ready for DirectCall {
    fn start(mut self: Box<Self>, call: ToolCall<'_>, done: OnExecuted) -> StartedCall {
        let connection = self.live.connection();
        send::describe(call.span, connection);
        let work = connection.client().begin_work(call.agent, call.session);
        let arguments = call.arguments.raw();
        let trace = call.span.context();
        let (theirs, extra, log_level) = match call.options.relay {
            Some(relay) => (relay.meta.filter(|_| self.relays_input), relay.extra, relay.log_level),
            None => (None, "", None),
        };
        let again = connection.may_ask_back().then(|| Again {
            arguments: arguments.to_owned(),
            extra: extra.to_owned(),
            log_level: log_level.map(ToOwned::to_owned),
            trace: trace.cloned(),
        });
        (self.work, self.running) = (work, Some(Running { started: call.started, done, again }));
        let lane = self.lane.clone();
        let limits = self.tool.member.limits;
        lane.start(work, limits, call.started, self, |it, frame| {
            let connection = it.live.connection();
            let meta = match theirs {
                Some(theirs) => Cow::Borrowed(theirs),
                None => connection.meta_with(extra, log_level),
            };
            frame.write(&request(&it.tool, &meta, arguments, trace, work));
        })
    }
}

impl OnReply for DirectCall {
    fn reply(mut self: Box<Self>, call: u64, reply: Result<JsonRef<'_>, CallError>, now: Instant) {
        match reply {
            Ok(raw) => self.read(call, raw, now),
            Err(error) => {
                let Some(Running { started, .. }) = &self.running else { return };
                let duration = now.saturating_duration_since(*started);
                let relay = Some(self.relay());
                self.end_work(Some(&error));
                let outcome = consequences::rejected(&self.tool, &self.live, error, relay);
                self.finish(outcome, duration);
            }
        }
    }
}
