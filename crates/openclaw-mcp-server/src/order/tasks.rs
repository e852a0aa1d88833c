//! Messages as tasks, for clients that support them (2026-07-28): a run that takes long becomes a task
//! that the client polls, so that no request stays open.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{CallToolResponse, CallToolResult, CreateTaskResult, JsonObject};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::client::{OrderCaller, TaskClient, abilities, trace};
use super::progress::RunProgress;
use super::{OrderArguments, Orders, ParkedRuns, parse};
use crate::server::failure;

/// A run that ends within this time is answered directly.
const DIRECT: Duration = Duration::from_secs(5);
/// How long the result of a task is kept.
const KEPT: Duration = Duration::from_secs(5 * 60);
/// Maximum number of tasks that are kept. Further messages are answered directly.
const MAX_TASKS: usize = 64;

/// The tasks of a client.
#[derive(Default)]
pub(crate) struct OrderTasks {
    pub(crate) manager: TaskManager,
    /// When each task that is kept is forgotten.
    kept: Mutex<VecDeque<Instant>>,
}

impl OrderTasks {
    /// Runs a message, as a task if it takes long.
    pub(crate) async fn call(
        &self,
        orders: &Arc<Orders>,
        parked: &ParkedRuns,
        arguments: JsonObject,
        context: RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let given = Value::Object(arguments.clone()).to_string();
        let parsed = parse::<OrderArguments>(arguments);
        let parsed = parsed.and_then(|arguments| Ok((arguments.patience()?, arguments)));
        let (patience, arguments) = match parsed {
            Ok(parsed) => parsed,
            Err(words) => return failure(words).into(),
        };
        // A task must not expire before the run does.
        let kept = patience + KEPT;
        if !self.has_room(kept) {
            return parked.start(orders, arguments, given, &context).await;
        }
        let (tell, done) = oneshot::channel::<CallToolResult>();
        let cancelled = CancellationToken::new();
        let ttl = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
        let (abilities, is_asked) = (abilities(&context), watch::Sender::new(false));
        let trace = trace(&context);
        let mut asked = is_asked.subscribe();
        let task = self.manager.spawn(TaskOptions::new().with_ttl_ms(ttl), |task| {
            let (orders, cancelled) = (Arc::clone(orders), cancelled.clone());
            let next = AtomicU64::new(0);
            let client = TaskClient { abilities, task: task.clone(), is_asked, next };
            let caller = OrderCaller { answers: Arc::new(client), takes_links: true, trace };
            Box::pin(async move {
                let progress = RunProgress::of_task(task.clone());
                let mut running =
                    std::pin::pin!(orders.run(arguments, &progress, &cancelled, caller));
                let result = tokio::select! {
                    result = &mut running => result,
                    () = task.cancelled() => {
                        cancelled.cancel();
                        running.await;
                        task.set_status_message("cancelled");
                        return Err(TaskExit::Cancelled);
                    }
                };
                // Instead of the last progress.
                let has_failed = result.is_error == Some(true);
                task.set_status_message(if has_failed { "failed" } else { "done" });
                // Not received if the task was returned already.
                let _ = tell.send(result.clone());
                Ok(result)
            })
        });
        tokio::select! {
            biased;
            done = done => match done {
                Ok(result) => result.into(),
                Err(_) => failure("the run ended unexpectedly").into(),
            },
            () = context.ct.cancelled() => {
                cancelled.cancel();
                failure("cancelled").into()
            }
            () = sleep(DIRECT) => CallToolResponse::Task(CreateTaskResult::new(task)),
            // The client finds the question in the task.
            Ok(_) = asked.wait_for(|is_asked| *is_asked) => {
                CallToolResponse::Task(CreateTaskResult::new(task))
            }
        }
    }

    /// Reserves a place for a task, if there is one.
    fn has_room(&self, kept: Duration) -> bool {
        let now = Instant::now();
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|end| *end > now);
        if all.len() >= MAX_TASKS {
            return false;
        }
        // A result is kept as long again as its task could have lived.
        all.push_back(now + 2 * kept);
        true
    }
}
