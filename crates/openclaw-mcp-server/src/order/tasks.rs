//! Messages as tasks, for clients that support them (2026-07-28): a run that takes long becomes a task
//! that the client polls, so that no request stays open.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use openclaw_trace::SpanContext;
use rmcp::model::{CallToolResult, CreateTaskResult, InputRequest};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::json;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::progress::RunProgress;
use super::{OrderArguments, OrderCaller, Orders, failure};
use crate::input::{Abilities, AskableClient, ClientAnswer, ClientQuestion};

/// A run that ends within this time is answered directly.
const DIRECT: Duration = Duration::from_secs(5);
/// How long the result of a task is kept.
const KEPT: Duration = Duration::from_secs(5 * 60);
/// Maximum number of tasks that are kept. Further messages are answered directly.
const MAX_TASKS: usize = 64;

/// The reply to a message that may become a task.
pub(crate) enum TaskReply {
    /// The run is over.
    Done(CallToolResult),
    /// It goes on.
    Task(CreateTaskResult),
}

/// The tasks of a client.
#[derive(Default)]
pub(crate) struct OrderTasks {
    pub(crate) manager: TaskManager,
    /// When each task that is kept is forgotten.
    kept: Mutex<VecDeque<Instant>>,
}

impl OrderTasks {
    /// Starts to run a message of a client with these abilities and this span, as a task if it takes long;
    /// `None` if there are too many. Dropping the future cancels the task.
    pub(crate) fn start(
        &self,
        orders: &Arc<Orders>,
        arguments: OrderArguments,
        abilities: Abilities,
        trace: Option<SpanContext>,
    ) -> Option<BoxFuture<'static, TaskReply>> {
        // A task must not expire before the run does.
        let kept = arguments.patience().ok()? + KEPT;
        if !self.has_room(kept) {
            return None;
        }
        let (tell, done) = oneshot::channel::<CallToolResult>();
        let cancelled = CancellationToken::new();
        let ttl = u64::try_from(kept.as_millis()).unwrap_or(u64::MAX);
        let is_asked = watch::Sender::new(false);
        let mut asked = is_asked.subscribe();
        let task = self.manager.spawn(TaskOptions::new().with_ttl_ms(ttl), |task| {
            let next = AtomicU64::new(0);
            let caller = OrderCaller {
                client: Arc::new(TaskClient { abilities, task: task.clone(), is_asked, next }),
                takes_links: true,
                trace,
                progress: Arc::new(RunProgress::of_task(task.clone())),
            };
            let running = orders.start(arguments, caller);
            let cancelled = cancelled.clone();
            Box::pin(async move {
                let result = tokio::select! {
                    result = running => result,
                    () = task.cancelled() => {
                        task.set_status_message("cancelled");
                        return Err(TaskExit::Cancelled);
                    }
                    () = cancelled.cancelled() => return Err(TaskExit::Cancelled),
                };
                // Instead of the last progress.
                let has_failed = result.is_error == Some(true);
                task.set_status_message(if has_failed { "failed" } else { "done" });
                // Not received if the task was returned already.
                let _ = tell.send(result.clone());
                Ok(result)
            })
        });
        let cancel_on_drop = cancelled.drop_guard();
        Some(Box::pin(async move {
            tokio::select! {
                biased;
                done = done => return match done {
                    Ok(result) => TaskReply::Done(result),
                    Err(_) => TaskReply::Done(failure("the run ended unexpectedly")),
                },
                () = sleep(DIRECT) => {}
                // The client finds the question in the task.
                Ok(_) = asked.wait_for(|is_asked| *is_asked) => {}
            }
            cancel_on_drop.disarm();
            TaskReply::Task(CreateTaskResult::new(task))
        }))
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

/// A client that polls a task, which shows the questions.
struct TaskClient {
    abilities: Abilities,
    task: TaskContext,
    /// Set when the client is asked for the first time.
    is_asked: watch::Sender<bool>,
    next: AtomicU64,
}

impl fmt::Debug for TaskClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskClient").finish_non_exhaustive()
    }
}

impl AskableClient for TaskClient {
    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn ask(&self, question: ClientQuestion) -> BoxFuture<'_, ClientAnswer> {
        Box::pin(async move {
            let request = json!({ "method": question.method, "params": question.params });
            let request: InputRequest =
                serde_json::from_value(request).map_err(|error| error.to_string())?;
            let key = format!("input-{}", self.next.fetch_add(1, Ordering::Relaxed));
            let asking = self.task.request_input(key, request);
            self.is_asked.send_replace(true);
            asking.await.map_err(|_| "the task is over".to_owned())
        })
    }
}
