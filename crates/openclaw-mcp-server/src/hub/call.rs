//! A tool call of a client, through the pipeline of all calls.

use std::sync::Arc;

use openclaw_tools::pipeline::{Refusal, RefuseCall, Resolve, Resolving, unknown};
use openclaw_tools::{
    Call, CallContext, CallOptions, Consent, Fallback, ProgressWatcher, RefusedBy, Relay,
    StartedCall, Tool, ToolFailure,
};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::answers::AskableClient;
use super::approver::ClientApprover;
use super::client::{HubClient, Rights};
use super::incoming::{CallRequest, PlainCall};
use super::reply::{BUSY, HubReply, INVALID_PARAMS};
use super::search;
use super::view::HubView;

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
struct ClientTools<'a>(&'a HubClient);

impl Resolve for ClientTools<'_> {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        if let Some(tool) = self.find(name) {
            return Resolving::Now(Ok(tool));
        }
        // A server that is still connecting may have it.
        Resolving::Later(Box::pin(async move {
            let _ = self.0.connected_view().await;
            self.find(name).ok_or_else(|| unknown(name, ""))
        }))
    }
}

/// Resolves names by a view.
struct ViewedTools<'a>(&'a HubView);

impl Resolve for ViewedTools<'_> {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        let tool = self.0.tool(name).map(|tool| Arc::clone(tool) as Arc<dyn Tool>);
        Resolving::Now(tool.ok_or_else(|| unknown(name, "")))
    }
}

impl ClientTools<'_> {
    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let view = self.0.view()?;
        view.tool(name).map(|tool| Arc::clone(tool) as Arc<dyn Tool>)
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
                Some(view) => search::find(&view, &query),
                None => HubReply::error(BUSY, "the agent was removed"),
            },
            Ok(search::Asked::Call { name, arguments }) => {
                Box::pin(self.call_tool(&name, &arguments, request, by)).await
            }
            Err(problem) => HubReply::error(INVALID_PARAMS, &problem),
        }
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
        let meta = modern.map(|modern| modern.meta.as_str());
        let more = modern.map_or("", |modern| &modern.more);
        let context = CallContext {
            options: CallOptions { watcher: by.watcher, ..self.relaying(meta, more) },
            trace: request.trace.as_ref(),
            ..self.context(by.session, &who, &approver, fallback)
        };
        let call = Call::new(name, arguments);
        let pipeline = tools.pipeline();
        let outcome = match self.check_limit(Instant::now()) {
            Ok(()) => pipeline.call(&ClientTools(self), call, &context).await,
            Err(words) => {
                let refuse =
                    || Refusal::new(ToolFailure::RateLimited, words.clone()).by(RefusedBy::Limit);
                Box::pin(pipeline.call(&RefuseCall(refuse), call, &context)).await
            }
        };
        let reply = HubReply::of_call(outcome, self.options.wrap);
        if request.modern.is_some() { reply.typed() } else { reply }
    }

    /// Starts a call, if nothing has to be waited for but the result, which the function gets that `done`
    /// returns. The call is buffered until its lane is flushed.
    pub(super) fn begin<D: FnOnce(HubReply) + Send + 'static>(
        &self,
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
        let context = CallContext {
            options: self.relaying(meta.filter(|_| is_modern).map(|it| it.members.as_str()), ""),
            trace: meta.and_then(|meta| meta.trace.as_ref()),
            ..self.context(by.session, &who, &approver, rights.fallback)
        };
        let done = || {
            // There is room, unless another request of the client has just taken it: that one more is
            // let through.
            let _ = self.check_limit(rights.now);
            let (done, wraps) = (done(), self.options.wrap);
            move |outcome| {
                let reply = HubReply::of_call(outcome, wraps);
                done(if is_modern { reply.typed() } else { reply });
            }
        };
        let call = Call::new(call.name, call.arguments);
        let pipeline = rights.view.agent().pipeline();
        pipeline.begin(&ViewedTools(&rights.view), call, &context, rights.now, done)
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

    fn relaying<'a>(&self, meta: Option<&'a str>, more: &'a str) -> CallOptions<'a> {
        let relay = Relay { wraps: self.options.wrap, more, meta };
        CallOptions { relay: Some(relay), client: Some(self.number()), ..CallOptions::default() }
    }
}
