//! The tool calls of the server's client.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use openclaw_budget::ByteBudget;
use openclaw_mcp_client::connection::era::Era;
use openclaw_tools::ProgressWatcher;
use rmcp::model::{CallToolResult, ProtocolVersion, ResultType};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::front::connection::ClientConnection;
use crate::front::events::ReplyingTask;
use crate::front::incoming::{CallRequest, ModernRequest};
use crate::front::lines::{LineCalls, LineClient};
use crate::front::memory::for_tree;
use crate::front::reply::{HubReply, INTERNAL_ERROR, INVALID_PARAMS, ReplyTo};
use crate::front::running::{CallingClient, RunningCall, WaitingCalls, Watched};
use crate::input::state::UNKNOWN_STATE;
use crate::order::{
    self, OrderArguments, OrderCaller, OrderTasks, Orders, RunProgress, TaskReply, failure,
};
use crate::{schema, sessions};

/// The client of the server: one program.
pub(super) struct ServerClient {
    pub(super) orders: Arc<Orders>,
    pub(super) tasks: OrderTasks,
    pub(super) connection: Arc<ClientConnection>,
    budget: Arc<ByteBudget>,
    waiting: WaitingCalls<Self>,
}

impl ServerClient {
    pub(super) fn new(orders: Arc<Orders>, lines: &LineClient) -> Self {
        Self {
            orders,
            tasks: OrderTasks::default(),
            connection: Arc::clone(&lines.connection),
            budget: Arc::clone(&lines.budget),
            waiting: WaitingCalls::default(),
        }
    }

    /// Cancels the calls that wait for input.
    pub(super) fn cancel_waiting(&self) {
        self.waiting.cancel(|_| true);
    }

    /// Calls a tool. Dropping the future aborts what it does.
    pub(super) fn call_tool(
        self: &Arc<Self>,
        request: CallRequest,
    ) -> BoxFuture<'static, HubReply> {
        if request.name != order::NAME {
            let client = Arc::clone(self);
            return Box::pin(async move { client.call_other(&request).await });
        }
        let Some(modern) = &request.modern else { return self.order_by_requests(request) };
        if !modern.is_answer() {
            let as_task = if modern.takes_tasks { self.order_as_task(&request) } else { None };
            return as_task.unwrap_or_else(|| RunningCall::answer(self, request));
        }
        match modern.state {
            Some(_) => RunningCall::answer(self, request),
            // Every question has a state.
            None => Box::pin(ready(unknown_state())),
        }
    }

    /// Sends a message for a client with a handshake, which is asked by requests of its own.
    fn order_by_requests(&self, request: CallRequest) -> BoxFuture<'static, HubReply> {
        let CallRequest { arguments, progress, trace, .. } = request;
        let (watcher, reports) = ProgressWatcher::channel();
        let connection = Arc::clone(&self.connection);
        let with_links = ProtocolVersion::V_2025_06_18;
        let caller = OrderCaller {
            takes_links: connection.version().is_some_and(|it| it >= with_links.as_str()),
            client: Arc::clone(&connection) as _,
            trace,
            progress: Arc::new(RunProgress::of_request(Some(watcher))),
        };
        let run = self.order(&arguments, caller);
        Box::pin(async move {
            let reply = async { reply(run.await, Era::Legacy) };
            connection.reporting(progress.as_deref(), reports, reply).await
        })
    }

    /// Sends a message for a client that takes tasks; `None` if it is to be sent without one.
    fn order_as_task(&self, request: &CallRequest) -> Option<BoxFuture<'static, HubReply>> {
        let arguments = self.arguments(&request.arguments).ok()?;
        let abilities = request.modern.as_ref()?.abilities;
        let trace = request.trace.clone();
        let task = self.tasks.start(&self.orders, arguments, abilities, trace)?;
        Some(Box::pin(async move {
            match task.await {
                TaskReply::Done(result) => reply(result, Era::Modern),
                TaskReply::Task(task) => reply_of(&task),
            }
        }))
    }

    fn order(&self, given: &RawValue, caller: OrderCaller) -> BoxFuture<'static, CallToolResult> {
        match self.arguments(given) {
            Ok(arguments) => self.orders.start(arguments, caller),
            Err(words) => Box::pin(ready(failure(words))),
        }
    }

    /// Reads the arguments of a message. Their values take memory meanwhile.
    fn arguments(&self, given: &RawValue) -> Result<OrderArguments, String> {
        let memory = for_tree(&self.budget, given.get().as_bytes());
        let _memory = memory.map_err(|spent| spent.to_string())?;
        schema::read(&serde_json::from_str(given.get()).unwrap_or_default())
    }

    /// Calls a tool that asks for no input.
    async fn call_other(&self, request: &CallRequest) -> HubReply {
        if request.modern.as_ref().is_some_and(ModernRequest::is_answer) {
            return unknown_state();
        }
        let given = request.arguments.get();
        let _memory = match for_tree(&self.budget, given.as_bytes()) {
            Ok(memory) => memory,
            Err(spent) => return HubReply::busy(spent),
        };
        let arguments = serde_json::from_str(given).unwrap_or_default();
        match sessions::call(&self.orders, &request.name, &arguments).await {
            Some(result) => reply(result, request.era()),
            None => HubReply::error(INVALID_PARAMS, &format!("unknown tool `{}`", request.name)),
        }
    }
}

impl CallingClient for ServerClient {
    // There is one.
    fn number(&self) -> u64 {
        0
    }

    fn connection(&self) -> &ClientConnection {
        &self.connection
    }

    fn budget(&self) -> &Arc<ByteBudget> {
        &self.budget
    }

    fn waiting(&self) -> &WaitingCalls<Self> {
        &self.waiting
    }

    fn owns_calls_of(&self, _: &Self) -> bool {
        true
    }

    fn start(self: &Arc<Self>, request: CallRequest) -> RunningCall<Self> {
        let abilities = request.modern.as_ref().map(|modern| modern.abilities);
        let (answers, events) = ReplyingTask::new(abilities.unwrap_or_default(), None);
        RunningCall::new(self, request, events, Watched::Progress, |request, watcher| {
            let caller = OrderCaller {
                client: answers,
                takes_links: true,
                trace: request.trace.clone(),
                progress: Arc::new(RunProgress::of_request(watcher)),
            };
            let run = self.order(&request.arguments, caller);
            Box::pin(async move { reply(run.await, Era::Modern) })
        })
    }
}

impl LineCalls for Arc<ServerClient> {
    fn call(&self, request: CallRequest) -> BoxFuture<'static, HubReply> {
        self.call_tool(request)
    }
}

/// The refusal of input that continues nothing.
fn unknown_state() -> HubReply {
    HubReply::error(INVALID_PARAMS, UNKNOWN_STATE)
}

/// The reply with a result.
fn reply(mut result: CallToolResult, era: Era) -> HubReply {
    result.result_type = (era == Era::Modern).then_some(ResultType::COMPLETE);
    reply_of(&result)
}

/// The reply with a result that has the type that the era of its client demands.
fn reply_of(result: &impl Serialize) -> HubReply {
    match serde_json::to_string(result) {
        Ok(json) => HubReply::result(json, ReplyTo::Legacy),
        Err(error) => HubReply::error(INTERNAL_ERROR, &error.to_string()),
    }
}
