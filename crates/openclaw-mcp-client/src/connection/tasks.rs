//! Calls that a server executes as tasks (T13): the call returns a task at once, which is polled
//! until it has a result.
//!
//! On 2025-11-25 the client asks for a task, for tools that run only as one; the result, and
//! requests for input, arrive with `tasks/result`. On 2026-07-28 (an extension) the server decides
//! to return a task; `tasks/get` contains requests for input, answered by `tasks/update`, and the
//! result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openclaw_content::{Untrusted, clean_line};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::Connection;
use super::input_required::MAX_ROUNDS;
use crate::connection::era::Era;
use crate::wire::json::{Json, JsonCow};
use crate::wire::{
    CallError, FastLane, Progress, ProgressWatcher, TimeLimits, WireCall, WorkId, redacted,
};

/// The interval between polls, unless the server suggests another, and its bounds.
const POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(200);
const LONGEST_POLL: Duration = Duration::from_secs(30);
/// Timeout of a request about a task. The task itself may take as long as a call with progress.
const REQUEST: Duration = Duration::from_secs(30);
/// Timeout of `tasks/cancel`.
const CANCEL: Duration = Duration::from_secs(5);
/// How much longer than the call the server should keep the result of a task.
const KEPT: Duration = Duration::from_secs(60);
/// Maximum length of a task id, in bytes: it is repeated in every request.
const MAX_ID: usize = 1_024;
/// Maximum length of a status message, in characters.
const MESSAGE_CHARS: usize = 200;
/// The member that only a result with a task has (2026-07-28).
pub(super) const TASK_ID: &str = "\"taskId\"";

/// The `tasks/cancel` requests in progress. Dropping it aborts them.
#[derive(Debug, Clone, Default)]
pub(super) struct Cancellations(Arc<Mutex<JoinSet<()>>>);

impl Cancellations {
    fn spawn(&self, cancel: impl Future<Output = ()> + Send + 'static) {
        // There is none when the program exits, and then the connection is closed.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Finished ones are removed here, because nothing joins them.
        while pending.try_join_next().is_some() {}
        pending.spawn_on(cancel, &runtime);
    }
}

/// The result of a call that created a task on 2025-11-25.
#[derive(Deserialize)]
struct Created {
    task: Task,
}

/// The result of a call that created a task on 2026-07-28.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreatedHere {
    result_type: String,
    #[serde(flatten)]
    task: Task,
}

/// The state of a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
    status: Status,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default, alias = "pollIntervalMs")]
    poll_interval: Option<f64>,
    /// On 2026-07-28: the input that the server requests.
    #[serde(default)]
    input_requests: BTreeMap<String, Value>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
    /// Of a later version; the task is polled further.
    #[serde(other)]
    Other,
}

/// The outcome in a task of 2026-07-28.
#[derive(Deserialize, Default)]
struct Payload {
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<Box<RawValue>>,
}

impl Task {
    /// How long to wait before the next poll.
    fn interval(&self) -> Duration {
        let suggested = self.poll_interval.filter(|ms| ms.is_finite() && *ms >= 0.0);
        let suggested = suggested.and_then(|ms| Duration::try_from_secs_f64(ms / 1_000.0).ok());
        suggested.unwrap_or(POLL).clamp(SHORTEST_POLL, LONGEST_POLL)
    }

    fn checked(self) -> Result<Self, CallError> {
        match self.task_id.len() {
            1..=MAX_ID => Ok(self),
            _ => {
                Err(CallError::Protocol("the server created a task without a valid id".to_owned()))
            }
        }
    }
}

/// Whether the result of `initialize` declares that tools can be called as tasks.
pub(super) fn are_declared(result: &Json) -> bool {
    let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    result.pointer("/capabilities/tasks/requests/tools/call").is_some_and(Value::is_object)
}

/// A call that has become a task.
pub(super) struct FollowedTask<'a> {
    pub(super) started: Instant,
    pub(super) limits: TimeLimits,
    pub(super) watcher: Option<&'a ProgressWatcher>,
    pub(super) work: Option<WorkId>,
}

impl Connection {
    /// Calls a tool that runs only as a task, on 2025-11-25, and waits for its result. Dropping the
    /// future cancels the task, as a timeout does.
    ///
    /// # Errors
    /// If the server responds with an error, the task fails or times out, or the connection fails.
    pub async fn call_as_task(
        &self,
        call: WireCall<'_>,
        limits: TimeLimits,
        watcher: Option<&ProgressWatcher>,
    ) -> Result<Json, CallError> {
        let started = Instant::now();
        let kept = (limits.cap + KEPT).as_millis();
        let more = format!(r#""task":{{"ttl":{kept}}}"#);
        let call = WireCall { meta: "", more: &more, ..call };
        let created = self.lane.call_tool(call, limits, watcher).await?;
        match serde_json::from_str::<Created>(created.get()) {
            Ok(Created { task }) => {
                self.follow_task(task, FollowedTask { started, limits, watcher, work: call.work })
                    .await
            }
            // Contrary to what it declares, the server has executed the call.
            Err(_) => Ok(created),
        }
    }

    /// Returns whether a result may be a task (2026-07-28). Cheap for most results.
    pub(super) fn may_be_task(&self, result: &str) -> bool {
        let finder = self.meta.as_ref().map(|meta| &meta.task_id);
        finder.is_some_and(|finder| finder.find(result.as_bytes()).is_some())
    }

    /// Returns a result, or waits for that of the task that it announces (2026-07-28).
    pub(super) async fn settled(
        &self,
        result: Json,
        call: FollowedTask<'_>,
    ) -> Result<Json, CallError> {
        match serde_json::from_str::<CreatedHere>(result.get()) {
            Ok(created) if created.result_type == "task" => {
                self.follow_task(created.task, call).await
            }
            _ => Ok(result),
        }
    }

    /// Polls a task until it has a result, at most until the total limit of the call.
    async fn follow_task(&self, task: Task, call: FollowedTask<'_>) -> Result<Json, CallError> {
        let task = task.checked()?;
        let mut guard = TaskGuard::new(self, &task.task_id);
        let end = call.started + call.limits.cap;
        match timeout_at(end, self.finished(task, end, &call, &mut guard)).await {
            Ok(result) => result,
            Err(_) => Err(CallError::TimedOut(call.started.elapsed())),
        }
    }

    async fn finished(
        &self,
        mut task: Task,
        end: Instant,
        call: &FollowedTask<'_>,
        guard: &mut TaskGuard,
    ) -> Result<Json, CallError> {
        let id = task.task_id.clone();
        let mut payload = Payload::default();
        let mut answered = BTreeSet::new();
        for polls in 0_u32.. {
            let message = task.status_message.as_deref();
            let message = message.map(|text| self.lane.redactor().redact(text));
            tell(call.watcher, polls, message.as_deref());
            guard.is_over =
                matches!(task.status, Status::Completed | Status::Failed | Status::Cancelled);
            match (task.status, self.era) {
                (Status::Cancelled, _) => return Err(CallError::TaskCancelled),
                // The requests for input arrive while the result is awaited.
                (Status::InputRequired | Status::Completed | Status::Failed, Era::Legacy) => {
                    let left = end.saturating_duration_since(Instant::now());
                    let limits = TimeLimits { timeout: left, cap: left };
                    let params = self.about_task(&id);
                    let result = self.lane.request("tasks/result", &params, limits).await?;
                    guard.is_over = true;
                    return Ok(self.without_secrets(result));
                }
                (Status::InputRequired, Era::Modern) => {
                    let open = std::mem::take(&mut task.input_requests);
                    self.give_input(&id, open, &mut answered, call.work).await?;
                }
                (Status::Completed | Status::Failed, Era::Modern) => {
                    return match payload {
                        Payload { error: Some(error), .. } => {
                            Err(CallError::Rpc(redacted::error(&error, self.lane.redactor())))
                        }
                        Payload { result: Some(result), .. } => {
                            Ok(self.without_secrets(result.into()))
                        }
                        _ => Err(CallError::Protocol("the task has no result".to_owned())),
                    };
                }
                (Status::Working | Status::Other, _) => {}
            }
            sleep(task.interval()).await;
            let limits = TimeLimits { timeout: REQUEST, cap: REQUEST };
            let state = self.lane.request("tasks/get", &self.about_task(&id), limits).await?;
            let invalid = || CallError::Protocol("the server sent an invalid task".to_owned());
            task = serde_json::from_str(state.get()).map_err(|_| invalid())?;
            if self.era == Era::Modern && task.status != Status::Working {
                payload = serde_json::from_str(state.get()).map_err(|_| invalid())?;
            }
        }
        Err(CallError::Protocol("the task does not end".to_owned()))
    }

    /// Answers the input that a task requests (2026-07-28), each request once.
    async fn give_input(
        &self,
        id: &str,
        mut open: BTreeMap<String, Value>,
        answered: &mut BTreeSet<String>,
        work: Option<WorkId>,
    ) -> Result<(), CallError> {
        open.retain(|key, _| !answered.contains(key));
        if open.is_empty() {
            return Ok(());
        }
        answered.extend(open.keys().cloned());
        if answered.len() > MAX_ROUNDS {
            let words = "input repeatedly without returning a result".to_owned();
            return Err(CallError::AskedFor(words));
        }
        let responses = self.fulfil(open, work).await?;
        let params = BTreeMap::from([
            ("taskId", to_raw_value(id).unwrap_or_default()),
            ("inputResponses", to_raw_value(&responses).unwrap_or_default()),
        ]);
        let limits = TimeLimits { timeout: REQUEST, cap: REQUEST };
        self.lane.request("tasks/update", &self.with_meta(&params), limits).await.map(drop)
    }

    /// Redacts the result of a call, if it reports an error.
    fn without_secrets(&self, result: Json) -> Json {
        redacted::result(JsonCow::Owned(result), self.lane.redactor()).into()
    }

    /// The parameters of a request about a task.
    fn about_task(&self, id: &str) -> Box<RawValue> {
        self.with_meta(&BTreeMap::from([("taskId", to_raw_value(id).unwrap_or_default())]))
    }
}

/// Reports the state of a task as progress.
fn tell(watcher: Option<&ProgressWatcher>, polls: u32, message: Option<&str>) {
    let Some(watcher) = watcher else { return };
    let message = message.map(|text| clean_line(Untrusted::new(text), MESSAGE_CHARS));
    let message = message.filter(|text| !text.is_empty());
    watcher.report(Progress { done: f64::from(polls), total: None, message });
}

/// Cancels a task when it is dropped before the task is over.
struct TaskGuard {
    lane: FastLane,
    params: Box<RawValue>,
    cancellations: Cancellations,
    is_over: bool,
}

impl TaskGuard {
    fn new(connection: &Connection, id: &str) -> Self {
        Self {
            lane: connection.lane.clone(),
            params: connection.about_task(id),
            cancellations: connection.cancellations.clone(),
            is_over: false,
        }
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let lane = self.lane.clone();
        let params = std::mem::take(&mut self.params);
        self.cancellations.spawn(async move {
            let limits = TimeLimits { timeout: CANCEL, cap: CANCEL };
            // Best effort: the server discards the task at the end of its time to live anyway.
            let _ = lane.request("tasks/cancel", &params, limits).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_interval_between_polls_is_bounded() {
        let interval = |suggested: Value| {
            let task = json!({ "taskId": "1", "status": "working", "pollInterval": suggested });
            serde_json::from_value::<Task>(task).unwrap().interval()
        };
        assert_eq!(interval(json!(2_500)), Duration::from_millis(2_500));
        assert_eq!(interval(json!(0)), SHORTEST_POLL);
        assert_eq!(interval(json!(1.0e300)), POLL);
        assert_eq!(interval(json!(86_400_000)), LONGEST_POLL);
        assert_eq!(interval(json!(-1)), POLL);
        assert_eq!(interval(Value::Null), POLL);
    }

    #[test]
    fn an_id_is_neither_empty_nor_long_and_an_unknown_status_is_no_end() {
        let task = |id: &str| {
            let task = json!({ "taskId": id, "status": "dreaming", "pollIntervalMs": 300 });
            serde_json::from_value::<Task>(task).unwrap().checked()
        };
        let known = task("1").ok().unwrap();
        assert!(known.status == Status::Other && known.interval() == Duration::from_millis(300));
        assert!(task("").is_err() && task(&"x".repeat(1_025)).is_err());
    }

    #[test]
    fn a_server_declares_tasks_for_tool_calls() {
        let declared = |capabilities: Value| {
            let result = json!({ "capabilities": capabilities });
            are_declared(&to_raw_value(&result).unwrap().into())
        };
        assert!(declared(json!({ "tasks": { "requests": { "tools": { "call": {} } } } })));
        assert!(!declared(json!({ "tasks": { "list": {} } })) && !declared(json!({})));
    }
}
