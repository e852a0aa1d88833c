//! A tool call of a client, through the pipeline of all calls.

use std::sync::Arc;

use openclaw_budget::ByteBudget;
use openclaw_config::LogLevel;
use openclaw_tools::pipeline::{Refusal, RefuseCall, Resolve, Resolving, unknown};
use openclaw_tools::{
    Call, CallContext, CallOptions, Consent, Fallback, ProgressWatcher, RefusedBy, Relay,
    StartedCall, Tool, ToolFailure, ToolOutcome,
};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::approver::ClientApprover;
use super::asks::CallScope;
use super::client::{HubClient, Rights};
use super::search;
use super::view::HubView;
use crate::front::connection::ClientConnection;
use crate::front::events::{CallEvents, ReplyingTask};
use crate::front::incoming::{CallRequest, PlainCall};
use crate::front::reply::{BUSY, HubReply, INVALID_PARAMS, ReplyTo};
use crate::front::running::{CALL, CallingClient, RunningCall, WaitingCalls, Watched};
use crate::input::AskableClient;

/// For whom a call is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallFor<'a> {
    /// The session of the call, by which servers' questions find the client.
    pub(super) session: &'a str,
    /// The client, if it can be asked.
    pub(super) answers: &'a dyn AskableClient,
    /// Receives progress reports.
    pub(super) watcher: Option<&'a ProgressWatcher>,
}

/// Resolves names as the client knows them. Looked up for each attempt: the tools may change.
struct ClientTools<'a> {
    client: &'a HubClient,
    shows_pages: bool,
}

impl Resolve for ClientTools<'_> {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        if let Some(tool) = self.find(name) {
            return Resolving::Now(Ok(tool));
        }
        // A server that is still connecting may have it.
        Resolving::Later(Box::pin(async move {
            let _ = self.client.connected_view().await;
            let hint = || self.client.view().map(|view| view.about_unknown(name));
            self.find(name).ok_or_else(|| unknown(name, &hint().unwrap_or_default()))
        }))
    }
}

/// Resolves names by a view.
struct ViewedTools<'a> {
    view: &'a HubView,
    shows_pages: bool,
}

impl Resolve for ViewedTools<'_> {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        let tool = self
            .view
            .tool_for(name, self.shows_pages)
            .map(|tool| Arc::clone(tool) as Arc<dyn Tool>);
        Resolving::Now(tool.ok_or_else(|| unknown(name, &self.view.about_unknown(name))))
    }
}

impl ClientTools<'_> {
    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let view = self.client.view()?;
        view.tool_for(name, self.shows_pages).map(|tool| Arc::clone(tool) as Arc<dyn Tool>)
    }
}

impl HubClient {
    /// Calls a tool. Dropping the future cancels the call at the server.
    pub(super) async fn call(&self, request: &CallRequest, by: CallFor<'_>) -> HubReply {
        if !self.options.search {
            return self.call_tool(&request.name, &request.arguments, request, by).await;
        }
        match search::tool_of(request) {
            Ok(search::Asked::Search(query)) => match self.settled_view().await {
                Some(view) => {
                    let to = self.reply_to(CALL, request);
                    search::find(&view, self.shows_pages_in(request), &query, to)
                }
                None => HubReply::error(BUSY, "the agent was removed"),
            },
            Ok(search::Asked::Call { name, arguments }) => {
                Box::pin(self.call_tool(&name, &arguments, request, by)).await
            }
            Err(problem) => HubReply::error(INVALID_PARAMS, &problem),
        }
    }

    /// Whether the client of a request shows pages of MCP Apps.
    pub(super) fn shows_pages_in(&self, request: &CallRequest) -> bool {
        request.modern.as_ref().map_or_else(|| self.shows_pages(), |modern| modern.shows_pages)
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: &RawValue,
        request: &CallRequest,
        by: CallFor<'_>,
    ) -> HubReply {
        let Some((fallback, tools)) = self.agent() else {
            return HubReply::error(BUSY, "the agent was removed");
        };
        let approver = ClientApprover { answers: by.answers, client: self };
        let modern = request.modern.as_ref();
        let who = self.who(modern.and_then(|modern| modern.client.as_deref()));
        if let Some(level) = modern.and_then(|modern| modern.log_level) {
            self.log_calls_from(name, level).await;
        }
        let context = CallContext {
            options: CallOptions { watcher: by.watcher, ..self.relaying_request(request) },
            trace: request.trace.as_ref(),
            ..self.context(by.session, &who, &approver, fallback)
        };
        let call = Call::new(name, arguments);
        let pipeline = tools.pipeline();
        let outcome = match self.check_limit(Instant::now()) {
            Ok(()) => {
                let shows_pages = self.shows_pages_in(request);
                let tools = ClientTools { client: self, shows_pages };
                pipeline.call(&tools, call, &context).await
            }
            Err(words) => {
                let refuse =
                    || Refusal::new(ToolFailure::RateLimited, words.clone()).by(RefusedBy::Limit);
                Box::pin(pipeline.call(&RefuseCall(refuse), call, &context)).await
            }
        };
        self.reply_of_call(outcome, by.session, self.reply_to(CALL, request))
    }

    /// Returns the reply for the outcome of a call of a session.
    fn reply_of_call(&self, mut outcome: ToolOutcome, session: &str, to: ReplyTo<'_>) -> HubReply {
        self.hub.asks.name_visits(&mut outcome, session);
        HubReply::of_call(outcome, self.options.wrap, to)
    }

    /// Has the server of a tool send log messages of this level, if it is told so by a request of its
    /// own.
    async fn log_calls_from(&self, tool: &str, level: LogLevel) {
        let view = self.view();
        if let Some(tool) = view.as_ref().and_then(|view| view.tool(tool)) {
            tool.server().log_from(level).await;
        }
    }

    /// Starts a call, if nothing has to be waited for but the result, which the function gets that `done`
    /// returns. The call is buffered until its lane is flushed.
    pub(super) fn begin<D: FnOnce(HubReply) + Send + 'static>(
        self: &Arc<Self>,
        rights: &Rights,
        call: &PlainCall<'_>,
        by: CallFor<'_>,
        done: impl FnOnce() -> D,
    ) -> Option<StartedCall> {
        // A client with two tools for all has its calls made by `call`, which also refuses those beyond
        // the rate limit.
        if self.options.search || self.check_room(rights.now).is_err() {
            return None;
        }
        let is_modern = call.is_modern();
        let meta = call.meta.as_ref();
        let approver = ClientApprover { answers: by.answers, client: self };
        let who = self.who(meta.and_then(|meta| meta.client.as_deref()));
        let members = meta.filter(|_| is_modern).map(|it| it.members.as_str());
        let extra = meta.map_or("", |it| it.extra.as_str());
        let context = CallContext {
            options: self.relaying(members, "", extra),
            trace: meta.and_then(|meta| meta.trace.as_ref()),
            ..self.context(by.session, &who, &approver, rights.fallback)
        };
        let done = || {
            // There is room, unless another request of the client has just taken it: that one more is
            // let through.
            let _ = self.check_limit(rights.now);
            let (done, by, session) = (done(), Arc::clone(self), by.session.to_owned());
            // A result since 2026-07-28 may have a state, which belongs to the request.
            let modern = is_modern.then(|| (call.name.to_owned(), call.arguments.to_owned()));
            move |outcome| {
                let to = match &modern {
                    Some((name, arguments)) => {
                        let origin = by.origin(CALL, name, arguments.get());
                        ReplyTo::Modern(&by.waiting().seal, origin)
                    }
                    None => ReplyTo::Legacy,
                };
                done(by.reply_of_call(outcome, &session, to));
            }
        };
        let made = Call::new(call.name, call.arguments);
        let pipeline = rights.view.agent().pipeline();
        let shows_pages = match meta.filter(|_| is_modern) {
            Some(meta) => meta.shows_pages,
            None => self.shows_pages(),
        };
        let tools = ViewedTools { view: &rights.view, shows_pages };
        pipeline.begin(&tools, made, &context, rights.now, done)
    }

    fn context<'a>(
        &'a self,
        session: &'a str,
        who: &'a str,
        approver: &'a ClientApprover<'a>,
        fallback: Fallback,
    ) -> CallContext<'a> {
        CallContext {
            agent: Some(self.agent_id()),
            session: Some(session),
            consent: Consent::Ask { approver, fallback },
            ..CallContext::by_hand(who)
        }
    }

    /// The options of a request.
    pub(super) fn relaying_request<'a>(&self, request: &'a CallRequest) -> CallOptions<'a> {
        let CallRequest { modern, extra, .. } = request;
        match modern {
            Some(modern) => self.relaying(Some(&modern.meta), &modern.more, extra),
            None => self.relaying(None, "", extra),
        }
    }

    /// The options of a request with these parts. Without the `meta` of 2026-07-28, the level of log
    /// messages is that of the client.
    pub(super) fn relaying<'a>(
        &self,
        meta: Option<&'a str>,
        more: &'a str,
        extra: &'a str,
    ) -> CallOptions<'a> {
        let level = if meta.is_none() { self.log_level() } else { None };
        let log_level = level.map(LogLevel::as_str);
        let relay =
            Relay { wraps: self.options.wrap, more, meta, shows_pages: false, extra, log_level };
        CallOptions { relay: Some(relay), client: Some(self.as_caller()), ..CallOptions::default() }
    }
}

impl CallingClient for HubClient {
    fn number(&self) -> u64 {
        self.as_caller().number
    }

    fn connection(&self) -> &ClientConnection {
        &self.connection
    }

    fn budget(&self) -> &Arc<ByteBudget> {
        &self.budget
    }

    fn waiting(&self) -> &WaitingCalls<Self> {
        &self.hub.waiting
    }

    fn owns_calls_of(&self, other: &Self) -> bool {
        self.principal() == other.principal()
    }

    fn start(self: &Arc<Self>, request: CallRequest) -> RunningCall<Self> {
        let (answers, events) = self.replying(&request);
        let scope = Arc::new(self.scope_of(Arc::clone(&answers) as _));
        start_in_scope(self, request, answers, events, scope, Watched::AsRequested)
    }
}

impl HubClient {
    /// What reaches the client by replies to this request only.
    pub(super) fn replying(&self, request: &CallRequest) -> (Arc<ReplyingTask>, CallEvents) {
        let (abilities, log_level) = match &request.modern {
            Some(modern) => (modern.abilities, modern.log_level),
            None => (self.abilities(), Some(self.log_level().unwrap_or(LogLevel::Debug))),
        };
        ReplyingTask::new(abilities, log_level)
    }
}

/// Starts a call in a scope of several calls.
pub(super) fn start_in_scope(
    client: &Arc<HubClient>,
    request: CallRequest,
    answers: Arc<ReplyingTask>,
    events: CallEvents,
    scope: Arc<CallScope>,
    watched: Watched,
) -> RunningCall<HubClient> {
    let calling = Arc::clone(client);
    RunningCall::new(client, request, events, watched, |request, watcher| {
        Box::pin(async move {
            let watcher = watcher.as_ref();
            let by = CallFor { session: scope.session(), answers: &*answers, watcher };
            calling.call(&request, by).await
        })
    })
}
