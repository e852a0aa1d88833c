//! Calls as tasks: the experimental ones of 2025-11-25, and the extension of 2026-07-28.

use serde_json::json;
use serde_json::value::RawValue;

use super::message::{Request, text_members};
use super::{Engine, lock, tools};
use crate::script::{RpcError, TaskScript};

/// A task; its id is its number.
pub(crate) struct TestTask {
    polls: u32,
    /// The members of the result.
    result: Result<Vec<u8>, RpcError>,
    /// Whether it requests input before it proceeds.
    asks: bool,
    is_cancelled: bool,
}

impl Engine {
    /// Creates a task for a call; returns the members of the result.
    pub(super) fn create_task(
        &self,
        request: &Request<'_>,
        script: TaskScript,
    ) -> Result<Vec<u8>, RpcError> {
        if !request.modern && request.params.task.is_none() {
            return Err(RpcError::new(-32601, "Tool requires task augmentation"));
        }
        let result = match script.fails {
            true => Err(RpcError::new(-32603, "failed, as asked")),
            false => tools::run(self, request),
        };
        let asks = request.modern && self.script.calls.ask.is_some();
        let task = TestTask { polls: 0, result, asks, is_cancelled: false };
        let mut tasks = lock(&self.tasks);
        tasks.push(task);
        let state = state(request, script, tasks.len(), "working", 0);
        Ok(match request.modern {
            true => format!(r#""resultType":"task",{state}"#),
            false => format!(r#""task":{{{state}}}"#),
        }
        .into_bytes())
    }

    /// Answers a request about a task.
    pub(super) fn about_task(
        &self,
        method: &str,
        request: &Request<'_>,
    ) -> Result<Vec<u8>, RpcError> {
        let unknown = || RpcError::new(-32602, "Unknown task");
        let script = self.script.calls.task.ok_or_else(unknown)?;
        let number = request.params.task_id.as_ref().and_then(|id| id.0.parse::<usize>().ok());
        let number = number.ok_or_else(unknown)?;
        let mut tasks = lock(&self.tasks);
        let task = tasks.get_mut(number.wrapping_sub(1)).ok_or_else(unknown)?;
        match method {
            "tasks/cancel" => {
                task.is_cancelled = true;
                let state = state(request, script, number, "cancelled", task.polls);
                return Ok(if request.modern { Vec::new() } else { state.into_bytes() });
            }
            "tasks/result" if !request.modern => return task.result.clone(),
            "tasks/update" if request.modern => {
                let given = request.params.input_responses.map_or("none", RawValue::get);
                (task.result, task.asks) = (Ok(text_members(given)), false);
                return Ok(Vec::new());
            }
            "tasks/get" => {}
            _ => return Err(RpcError::new(-32601, format!("Method not found: {method}"))),
        }
        task.polls += 1;
        if task.is_cancelled {
            return Ok(state(request, script, number, "cancelled", task.polls).into_bytes());
        }
        if task.asks {
            let ask = self.script.calls.ask;
            let question = ask.map(|it| json!({"method": it.method(), "params": it.params(true)}));
            let state = state(request, script, number, "input_required", task.polls);
            let requests = json!({"question": question});
            return Ok(format!(r#"{state},"inputRequests":{requests}"#).into_bytes());
        }
        if script.polls.is_none_or(|polls| task.polls < polls) {
            return Ok(state(request, script, number, "working", task.polls).into_bytes());
        }
        let status = if task.result.is_ok() { "completed" } else { "failed" };
        let state = state(request, script, number, status, task.polls);
        Ok(match (&task.result, request.modern) {
            (_, false) => state,
            (Ok(result), true) => {
                format!(r#"{state},"result":{{{}}}"#, String::from_utf8_lossy(result))
            }
            (Err(error), true) => format!(r#"{state},"error":{}"#, json!(error)),
        }
        .into_bytes())
    }
}

/// The members of a task.
fn state(
    request: &Request<'_>,
    script: TaskScript,
    number: usize,
    status: &str,
    polls: u32,
) -> String {
    let (ttl, interval) =
        if request.modern { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
    let (at, every) = ("2026-01-01T00:00:00Z", script.poll_ms);
    format!(
        r#""taskId":"{number}","status":"{status}","statusMessage":"poll {polls}","createdAt":"{at}","lastUpdatedAt":"{at}","{ttl}":60000,"{interval}":{every}"#
    )
}
