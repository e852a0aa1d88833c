//! A client of the hub that is reached by lines: stdio, or a connection of another process of this
//! program.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_tools::{ProgressWatcher, StartedCall};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

use super::asks::CallScope;
use super::call::CallFor;
use super::client::{HubClient, Rights};
use super::handler::Handler;
use super::options::HubClientOptions;
use super::{Hub, HubCaller, HubError, listen};
use crate::front::events::ReplyingTask;
use crate::front::incoming::{CallRequest, PlainCall};
pub use crate::front::lines::LineError;
use crate::front::lines::{self, LineCalls, LineClient, LineLimits};
use crate::front::memory::MAX_MESSAGE;
use crate::front::outbox::Outbox;
use crate::front::reply::HubReply;
use crate::front::running::RunningCall;
use crate::input::Abilities;

/// Calls are cheap: they are refused beyond a limit, but read.
const LIMITS: LineLimits = LineLimits { line: MAX_MESSAGE, requests: usize::MAX };

/// Why a client was served no longer, besides its own end.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// It cannot be served.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// It was too slow, took too much memory, or its pipe broke.
    #[error(transparent)]
    Line(#[from] LineError),
}

/// Serves a client until it closes its end.
///
/// # Errors
/// If it cannot be served, sends a line too slowly or without memory for it, or the connection breaks.
pub async fn serve(
    hub: &Arc<Hub>,
    caller: HubCaller,
    options: HubClientOptions,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), LinesError> {
    let client = hub.client(caller, options)?;
    let outbox = Arc::new(Outbox::new(&client.budget));
    client.connection.writes_to(&outbox);
    let line_client = LineClient {
        connection: Arc::clone(&client.connection),
        outbox,
        budget: Arc::clone(&client.budget),
    };
    hub.asks.listen(&client);
    // It ends with this future, also if it is dropped.
    let _watching = AbortOnDropHandle::new(tokio::spawn(listen::watch(Arc::downgrade(&client))));
    let (nobody, _) = ReplyingTask::new(Abilities::default(), None);
    let calls = HubCalls {
        scope: Arc::new(client.scope()),
        plain_scope: client.scope_of(nobody),
        rights: None,
        client: Arc::clone(&client),
    };
    let handler = Handler::for_client(client);
    Ok(lines::serve(line_client, LIMITS, Some(calls), handler, input, output).await?)
}

/// Calls of the tools of servers.
struct HubCalls {
    client: Arc<HubClient>,
    scope: Arc<CallScope>,
    /// That of calls since 2026-07-28 whose client is asked for nothing and told nothing.
    plain_scope: CallScope,
    /// What the client may call, for all lines of one read.
    rights: Option<Rights>,
}

impl LineCalls for HubCalls {
    fn begin<D: FnOnce(HubReply) + Send + 'static>(
        &mut self,
        call: &PlainCall<'_>,
        done: impl FnOnce() -> D,
    ) -> Option<StartedCall> {
        if self.rights.is_none() {
            self.rights = self.client.rights();
        }
        let rights = self.rights.as_ref()?;
        let scope = if call.is_modern() { &self.plain_scope } else { &*self.scope };
        let by = CallFor { session: scope.session(), answers: &*self.client, watcher: None };
        self.client.begin(rights, call, by, done)
    }

    fn end_read(&mut self) {
        self.rights = None;
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'static, HubReply> {
        if request.modern.is_some() {
            return RunningCall::answer(&self.client, request);
        }
        let client = Arc::clone(&self.client);
        let memory = match client.budget.hold_exactly(request.bytes()) {
            Ok(memory) => memory,
            Err(spent) => return Box::pin(ready(HubReply::busy(spent))),
        };
        let scope = Arc::clone(&self.scope);
        Box::pin(async move {
            let _memory = memory;
            call(&client, &scope, &request).await
        })
    }
}

/// A call of a client with a handshake, which is asked by requests of its own.
async fn call(client: &HubClient, scope: &CallScope, request: &CallRequest) -> HubReply {
    let (watcher, reports) = ProgressWatcher::channel();
    let watcher = request.progress.is_some().then_some(&watcher);
    let by = CallFor { session: scope.session(), answers: client, watcher };
    let token = request.progress.as_deref();
    client.connection.reporting(token, reports, client.call(request, by)).await
}
