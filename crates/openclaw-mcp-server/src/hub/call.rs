//! A tool call of a client, through the pipeline of all calls.

use std::sync::Arc;

use openclaw_tools::pipeline::{Refusal, RefuseCall, Resolve, Resolving, unknown};
use openclaw_tools::{
    Call, CallContext, CallOptions, Consent, Failure, RefusedBy, Relay, Tool, Watcher,
};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::answers::Answers;
use super::approver::ClientApprover;
use super::client::Client;
use super::incoming::CallRequest;
use super::reply::{BUSY, INVALID_PARAMS, Reply};
use super::search;

/// For whom a call is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallFor<'a> {
    /// The session of the call, by which servers' questions find the client.
    pub(super) session: &'a str,
    /// The client, if it can be asked.
    pub(super) answers: &'a dyn Answers,
    /// Receives progress reports.
    pub(super) watcher: Option<&'a Watcher>,
}

/// Resolves names as the client knows them. Looked up for each attempt: the tools may change.
struct ClientTools<'a>(&'a Client);

impl Resolve for ClientTools<'_> {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        if let Some(tool) = self.find(name) {
            return Resolving::Now(Ok(tool));
        }
        // A server that is still connecting may have it.
        Resolving::Later(Box::pin(async move {
            let _ = self.0.settled_view().await;
            self.find(name).ok_or_else(|| unknown(name, ""))
        }))
    }
}

impl ClientTools<'_> {
    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let view = self.0.view()?;
        view.tool(name).map(|tool| Arc::clone(tool) as Arc<dyn Tool>)
    }
}

impl Client {
    /// Calls a tool. Dropping the future cancels the call at the server.
    pub(super) async fn call(&self, request: &CallRequest, by: CallFor<'_>) -> Reply {
        if !self.options.search {
            return self.call_tool(&request.name, &request.arguments, request, by).await;
        }
        match search::tool_of(request) {
            Ok(search::Asked::Search(query)) => match self.settled_view().await {
                Some(view) => search::find(&view, &query),
                None => Reply::error(BUSY, "the agent was removed"),
            },
            Ok(search::Asked::Call { name, arguments }) => {
                Box::pin(self.call_tool(&name, &arguments, request, by)).await
            }
            Err(problem) => Reply::error(INVALID_PARAMS, &problem),
        }
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: &RawValue,
        request: &CallRequest,
        by: CallFor<'_>,
    ) -> Reply {
        let (Some(agent), Some(tools)) = (self.agent(), self.hub.agent_tools(self.agent_id()))
        else {
            return Reply::error(BUSY, "the agent was removed");
        };
        let approver = ClientApprover(by.answers);
        let context = CallContext {
            agent: Some(self.agent_id()),
            session: Some(by.session),
            who: self.who(),
            consent: Consent::Ask { approver: &approver, fallback: agent.fallback },
            options: CallOptions {
                watcher: by.watcher,
                relay: Some(self.relay(request)),
                ..CallOptions::default()
            },
            begun: None,
            trace: request.trace.as_ref(),
        };
        let call = Call::new(name, arguments);
        let pipeline = tools.pipeline();
        let outcome = match self.check_limit(Instant::now()) {
            Ok(()) => pipeline.call(&ClientTools(self), call, &context).await,
            Err(words) => {
                let refuse =
                    || Refusal::new(Failure::RateLimited, words.clone()).by(RefusedBy::Limit);
                Box::pin(pipeline.call(&RefuseCall(refuse), call, &context)).await
            }
        };
        let reply = Reply::of_call(outcome, self.options.wrap);
        if request.modern.is_some() { reply.typed() } else { reply }
    }

    fn relay<'a>(&self, request: &'a CallRequest) -> Relay<'a> {
        let modern = request.modern.as_ref();
        Relay {
            wraps: self.options.wrap,
            more: modern.map_or("", |modern| &modern.more),
            meta: modern.map(|modern| modern.meta.as_str()),
        }
    }
}
