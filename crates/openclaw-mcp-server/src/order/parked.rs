//! Runs whose client answers a question with another request (2026-07-28): the question is the reply,
//! and the run waits for the next request.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use rmcp::ErrorData;
use rmcp::model::{CallToolResponse, CallToolResult, InputRequiredResult};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::client::{OrderCaller, abilities, trace};
use super::progress::RunProgress;
use super::{NAME, OrderArguments, Orders};
use crate::hub::answers::{ClientAnswer, ClientQuestion};
use crate::hub::parked::{Parked, input_required, take_input};
use crate::hub::replying::{CallEvent, CallEvents, ReplyingTask};
use crate::hub::state::{Continues, StateOrigin, StateSeal, UNKNOWN_STATE};
use crate::server::failure;

/// The runs that wait for their client.
#[derive(Default)]
pub(crate) struct ParkedRuns {
    runs: Parked<ParkedRun>,
    seal: StateSeal,
}

/// A run with the ways to it.
struct ParkedRun {
    work: BoxFuture<'static, CallToolResult>,
    events: CallEvents,
    progress: Arc<RunProgress>,
    cancelled: CancellationToken,
    /// What the client is asked, and where its answer goes.
    asked: Option<(ClientQuestion, oneshot::Sender<ClientAnswer>)>,
    /// The arguments of the request as JSON, which belong to its states.
    arguments: String,
}

/// The request that a state belongs to. There is one client.
fn origin(arguments: &str) -> StateOrigin<'_> {
    StateOrigin { client: 0, method: "tools/call", target: NAME, arguments }
}

impl ParkedRuns {
    /// Runs a message to its end, or to the first question.
    pub(super) async fn start(
        &self,
        orders: &Arc<Orders>,
        arguments: OrderArguments,
        given: String,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        self.abandon();
        let (answers, events) = ReplyingTask::new(abilities(context), None);
        let caller = OrderCaller { answers, takes_links: true, trace: trace(context) };
        let progress = Arc::new(RunProgress::of_request(context));
        let cancelled = CancellationToken::new();
        let (orders, told, stop) = (Arc::clone(orders), Arc::clone(&progress), cancelled.clone());
        let work = Box::pin(async move { orders.run(arguments, &told, &stop, caller).await });
        let run = ParkedRun { work, events, progress, cancelled, asked: None, arguments: given };
        self.until_asked(run, context).await
    }

    /// Continues a run with the input of its client. Without the input, it is asked for again.
    ///
    /// # Errors
    /// If the state is not one of a run that waits, with these arguments.
    pub(super) async fn go_on(
        &self,
        state: &str,
        mut responses: BTreeMap<String, Value>,
        arguments: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let parked = match self.seal.open(state, origin(arguments)) {
            Some(Continues::Parked(id)) => self.runs.take(&id, |_| true),
            Some(Continues::Server(_)) | None => None,
        };
        let unknown = || ErrorData::invalid_params(UNKNOWN_STATE, None);
        let mut run = parked.ok_or_else(unknown)?;
        run.progress.redirect(context);
        // The question may have timed out.
        if let Some((question, answer)) = run.asked.take().filter(|(_, it)| !it.is_closed()) {
            match take_input(&mut responses) {
                Some(response) => drop(answer.send(Ok(response))),
                None => return Ok(self.park(run, &question, answer)),
            }
        }
        Ok(self.until_asked(run, context).await)
    }

    /// Aborts the runs that their clients have given up.
    fn abandon(&self) {
        for run in self.runs.expired() {
            tokio::spawn(run.abort());
        }
    }

    /// Aborts all runs, and waits for them.
    pub(crate) async fn finish(&self) {
        join_all(self.runs.all().into_iter().map(ParkedRun::abort)).await;
    }

    async fn until_asked(
        &self,
        mut run: ParkedRun,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        loop {
            tokio::select! {
                biased;
                event = run.events.next() => match event {
                    CallEvent::Ask(question, answer) => return self.park(run, &question, answer),
                    CallEvent::Log(_) | CallEvent::Over(_) => {}
                },
                result = &mut run.work => return result.into(),
                () = context.ct.cancelled() => return run.abort().await.into(),
            }
        }
    }

    fn park(
        &self,
        mut run: ParkedRun,
        question: &ClientQuestion,
        answer: oneshot::Sender<ClientAnswer>,
    ) -> CallToolResponse {
        run.asked = Some((question.clone(), answer));
        let arguments = run.arguments.clone();
        let parked = self.runs.park(run);
        let state =
            parked.and_then(|id| self.seal.seal(&Continues::Parked(id), origin(&arguments)));
        let result = state.map(|state| input_required(question, &state));
        let result = result.and_then(|it| serde_json::from_value::<InputRequiredResult>(it).ok());
        match result {
            Some(result) => CallToolResponse::InputRequired(result),
            None => failure("too many runs wait for input").into(),
        }
    }
}

impl ParkedRun {
    async fn abort(self) -> CallToolResult {
        self.cancelled.cancel();
        drop((self.events, self.asked));
        self.work.await
    }
}
