//! A call of a relay that no future waits for: its response is handled by the task that reads the
//! server. What has to be waited for is left to [`bridge::call`].

use std::sync::Arc;
use std::time::Duration;

use openclaw_tools::{
    CallOptions, Executed, OnExecuted, Ready, Relay, StartedCall, ToolCall, ToolOutcome,
};
use tokio::time::Instant;

use super::bridge;
use super::results::{self, ReplyKind};
use crate::connection::client::CallGuard;
use crate::connection::era::Era;
use crate::fleet::catalogue::CatalogueTool;
use crate::inventory::listing::TaskSupport;
use crate::server::live::LiveConnection;
use crate::wire::json::{Json, JsonCow, JsonRef};
use crate::wire::{self, CallError, DirectLane, OnReply, redacted};

/// A call, and where its result goes.
pub(crate) struct DirectCall {
    tool: Arc<CatalogueTool>,
    live: Arc<LiveConnection>,
    lane: DirectLane,
    wraps: bool,
    /// Once it is started.
    running: Option<Running>,
}

struct Running {
    started: Instant,
    done: OnExecuted,
    at_work: Option<CallGuard>,
}

impl DirectCall {
    /// Prepares a call, if its server is connected and nothing else has to be waited for.
    pub(crate) fn prepare(tool: Arc<CatalogueTool>, options: CallOptions<'_>) -> Option<Box<Self>> {
        let CallOptions { relay, watcher, deadline, .. } = options;
        let wraps = match relay {
            Some(Relay { wraps, meta: None, more: "" }) => wraps,
            _ => return None,
        };
        if watcher.is_some() || deadline.is_some() || tool.server().takes_turns() {
            return None;
        }
        let live = tool.server().connected()?;
        let connection = live.connection();
        if tool.listed.task_support == TaskSupport::Required && connection.era() == Era::Legacy {
            return None;
        }
        let lane = connection.direct()?;
        Some(Box::new(Self { tool, live, lane, wraps, running: None }))
    }

    /// Converts a result. A large one is read by a task of its own, which gets the rest of the call.
    fn read(mut self: Box<Self>, raw: JsonRef<'_>) {
        let Some(Running { started, .. }) = &self.running else { return };
        let (length, duration) = (raw.get().len(), started.elapsed());
        let redactor = self.lane.redactor();
        let raw = redacted::result(JsonCow::Borrowed(raw), redactor);
        if !bridge::is_quick(self.wraps, length) {
            let raw = Json::from(raw);
            tokio::spawn(async move {
                let relay = Relay { wraps: self.wraps, more: "", meta: None };
                let options = CallOptions { relay: Some(relay), ..CallOptions::default() };
                let outcome = bridge::read_result(&self.tool, raw, options, duration).await;
                bridge::succeeded(&self.tool, &self.live, &outcome, length);
                self.finish(outcome, duration);
            });
            return;
        }
        let renderer = self.tool.renderer();
        let outcome = results::relayed(raw, ReplyKind::Call, renderer, self.wraps, duration);
        bridge::succeeded(&self.tool, &self.live, &outcome, length);
        self.finish(outcome, duration);
    }

    fn finish(&mut self, outcome: ToolOutcome, duration: Duration) {
        self.tool.server().stats.record(duration, outcome.is_error);
        if let Some(Running { done, at_work, .. }) = self.running.take() {
            drop(at_work);
            done(Executed::Done(outcome));
        }
    }
}

impl Ready for DirectCall {
    fn start(mut self: Box<Self>, call: ToolCall<'_>, done: OnExecuted) -> StartedCall {
        let (tool, live) = (Arc::clone(&self.tool), Arc::clone(&self.live));
        let connection = live.connection();
        bridge::describe(call.span, connection);
        let at_work = connection.client().working_for(call.agent, call.session);
        self.running = Some(Running { started: call.started, done, at_work });
        let lane = self.lane.clone();
        let request = wire::ToolCall {
            tool: &tool.listed.name,
            arguments: call.arguments.raw(),
            meta: "",
            more: "",
            headers: &[],
            trace: call.span.context(),
        };
        lane.start(&request, tool.member.limits, call.started, self)
    }
}

impl OnReply for DirectCall {
    fn reply(mut self: Box<Self>, reply: Result<JsonRef<'_>, CallError>) {
        match reply {
            Ok(raw) => self.read(raw),
            Err(error) => {
                let Some(Running { started, .. }) = &self.running else { return };
                let duration = started.elapsed();
                let relay = Relay { wraps: self.wraps, more: "", meta: None };
                let outcome = bridge::rejected(&self.tool, &self.live, error, Some(relay));
                self.finish(outcome, duration);
            }
        }
    }
}
