//! A caller's end of the gateway: the front door of every caller.

use std::fmt;
use std::sync::Arc;

use futures_util::TryFutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_protocol::socket::Backlog;
use openclaw_protocol::{ErrorShape, EventReceiver, Request, RequestError, Response, Surface};
use openclaw_trace::SpanContext;
use serde_json::value::RawValue;

use crate::callers::Connected;
use crate::methods::{self, RequestContext, Services};
use crate::socket::{Caller, Endpoint, RequestOptions};

/// A caller's end of the gateway. Dropping it unregisters the caller and its tools.
pub(crate) struct CallerSurface {
    services: Arc<Services>,
    caller: Arc<Connected>,
}

impl fmt::Debug for CallerSurface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerSurface").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl CallerSurface {
    pub(crate) fn new(services: Arc<Services>, caller: Caller) -> Self {
        let caller = services.callers.add(caller);
        Self { services, caller }
    }

    fn context(&self, options: RequestOptions) -> RequestContext<'_> {
        let RequestOptions { trace, early } = options;
        RequestContext { services: &self.services, caller: &self.caller, trace, early }
    }
}

impl Drop for CallerSurface {
    fn drop(&mut self) {
        self.services.callers.remove(self.caller.id());
        self.services.lent.take_back(self.caller.id());
    }
}

impl Surface for CallerSurface {
    fn call_in(
        &self,
        request: Request,
        trace: Option<SpanContext>,
    ) -> BoxFuture<'_, Result<Response, RequestError>> {
        let options = RequestOptions { trace, early: None };
        let answer = methods::answer(self.context(options), request);
        Box::pin(answer.map_err(RequestError::Refused))
    }

    fn events(&self) -> EventReceiver {
        self.caller.events()
    }
}

impl Endpoint for CallerSurface {
    fn sends_through(&self, backlog: Arc<Backlog>) {
        self.caller.sends_through(backlog);
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>> {
        self.request_with(method, params, RequestOptions::default())
    }

    fn request_with<'a>(
        &'a self,
        method: &'a str,
        params: Option<Box<RawValue>>,
        options: RequestOptions,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorShape>> {
        Box::pin(methods::answer_json(self.context(options), method, params))
    }

    fn lost_events(&self, events: u64) {
        self.services.agents.fleet().metrics().events_lost(events);
    }

    fn events(&self) -> EventReceiver {
        self.caller.events()
    }
}
