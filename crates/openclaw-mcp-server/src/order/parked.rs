//! Runs whose client answers a question with another request (2026-07-28): the question is the reply,
//! and the run waits for the next request.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use rmcp::model::{CallToolResponse, CallToolResult, InputRequiredResult};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::client::{OrderCaller, abilities, trace};
use super::progress::RunProgress;
use super::{OrderArguments, Orders};
use crate::hub::answers::{ClientAnswer, ClientQuestion};
use crate::hub::parked::{Parked, input_required, take_input};
use crate::hub::replying::{CallEvent, CallEvents, ReplyingTask};
use crate::server::failure;

/// The runs that wait for their client.
#[derive(Default)]
pub(crate) struct ParkedRuns(Parked<ParkedRun>);

/// A run with the ways to it.
struct ParkedRun {
    work: BoxFuture<'static, CallToolResult>,
    events: CallEvents,
    progress: Arc<RunProgress>,
    cancelled: CancellationToken,
    /// Where the answer goes that the client is asked for.
    asked: Option<oneshot::Sender<ClientAnswer>>,
}

impl ParkedRuns {
    /// Runs a message to its end, or to the first question.
    pub(super) async fn start(
        &self,
        orders: &Arc<Orders>,
        arguments: OrderArguments,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        self.abandon();
        let (answers, events) = ReplyingTask::new(abilities(context));
        let caller = OrderCaller { answers, takes_links: true, trace: trace(context) };
        let progress = Arc::new(RunProgress::of_request(context));
        let cancelled = CancellationToken::new();
        let (orders, told, stop) = (Arc::clone(orders), Arc::clone(&progress), cancelled.clone());
        let work = Box::pin(async move { orders.run(arguments, &told, &stop, caller).await });
        let run = ParkedRun { work, events, progress, cancelled, asked: None };
        self.until_asked(run, context).await
    }

    /// Continues a run with the input of its client.
    pub(super) async fn go_on(
        &self,
        state: &str,
        mut responses: BTreeMap<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let Some(mut run) = self.0.take(state, |_| true) else {
            return failure("unknown `requestState`: this run does not wait for input").into();
        };
        run.progress.redirect(context);
        if let Some(asked) = run.asked.take() {
            let answer = take_input(&mut responses).ok_or_else(|| "no answer".to_owned());
            // The question may have timed out.
            let _ = asked.send(answer);
        }
        self.until_asked(run, context).await
    }

    /// Aborts the runs that their clients have given up.
    fn abandon(&self) {
        for run in self.0.expired() {
            tokio::spawn(run.abort());
        }
    }

    /// Aborts all runs, and waits for them.
    pub(crate) async fn finish(&self) {
        join_all(self.0.all().into_iter().map(ParkedRun::abort)).await;
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
        run.asked = Some(answer);
        let state = self.0.park(run);
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
