//! Tool calls as tasks, of 2025-11-25 and of the extension of 2026-07-28 (T13).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openclaw_mcp_client::host::{ElicitationAnswer, ElicitationRequest, Elicitor};
use openclaw_testkit::{Ask, Recording, Script, TaskScript, Tool};
use openclaw_tools::{CallContext, CallOptions, ProgressWatcher, ToolFailure};
use serde_json::{Value, json};

use crate::support::{call, call_in, config, entry, entry_with, ready, ready_with, servers, setup};

/// How long to wait for a message at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// Servers of both kinds, with a tool that runs only as a task.
fn scripts(task: TaskScript) -> [Script; 2] {
    let required = Tool::new("echo").with("execution", json!({ "taskSupport": "required" }));
    [Script::new().legacy(), Script::new().modern()]
        .map(|script| script.tools([required.clone()]).as_tasks(task))
}

/// Waits until the server has received a message of this method.
async fn received(record: &Path, method: &'static str) -> Option<Value> {
    let recording = Recording::at(record);
    let wait = move || recording.wait_for(PATIENCE, |line| line["method"] == method);
    tokio::task::spawn_blocking(wait).await.unwrap()
}

#[tokio::test]
async fn a_tool_that_runs_only_as_a_task_is_polled_until_it_has_a_result() {
    // The suggested interval is below the lower bound.
    let task = TaskScript { polls: Some(3), poll_ms: 1, fails: false };
    for (script, is_modern) in scripts(task).into_iter().zip([false, true]) {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::at(folder.path().join("messages"));
        let script = script.record(recording.path());
        let (fleet, tools) = ready(&servers(json!({ "x": entry(&script) }))).await;
        let (watcher, progress) = ProgressWatcher::channel();
        let options = CallOptions { watcher: Some(&watcher), ..CallOptions::default() };
        let context = CallContext { options, ..CallContext::by_hand("test") };
        let arguments = json!({ "text": "a result" });
        let outcome = call_in(&tools, "mcp_x_echo", arguments, &context).await;
        assert!(!outcome.is_error && outcome.text() == "a result", "{outcome:?}");
        let progress = progress.borrow().clone().unwrap();
        assert_eq!((progress.done, progress.message.as_deref()), (3.0, Some("poll 3")));
        assert_eq!(recording.of_method("tasks/get").len(), 3);
        let results = recording.of_method("tasks/result").len();
        let call = recording.of_method("tools/call").remove(0);
        let declared = "/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions/\
                        io.modelcontextprotocol~1tasks";
        let expected = if is_modern { (false, true, 0) } else { (true, false, 1) };
        let is_asked = call["params"]["task"]["ttl"].as_u64().is_some();
        assert_eq!((is_asked, call.pointer(declared).is_some(), results), expected, "{call}");
        assert!(recording.of_method("tasks/cancel").is_empty());
        fleet.stop().await;
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_cancels_the_task() {
    for script in scripts(TaskScript { polls: None, poll_ms: 200, fails: false }) {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("messages");
        let (fleet, tools) = ready(&servers(json!({ "x": entry(&script.record(&record)) }))).await;
        tokio::select! {
            outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })) => panic!("{outcome:?}"),
            polled = received(&record, "tasks/get") => assert!(polled.is_some()),
        }
        let cancelled = received(&record, "tasks/cancel").await.unwrap();
        assert_eq!(cancelled["params"]["taskId"], "1");
        fleet.stop().await;
    }
}

#[tokio::test]
async fn a_task_that_does_not_end_times_out_and_is_cancelled() {
    for script in scripts(TaskScript { polls: None, poll_ms: 200, fails: false }) {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("messages");
        let server = entry_with(&script.record(&record), json!({ "toolTimeout": 1_000 }));
        let config =
            config(&json!({ "mcp": { "servers": { "x": server }, "callTimeoutCapMs": 1_500 } }));
        let (fleet, tools) = ready(&config).await;
        let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
        assert_eq!(outcome.details.failure, Some(ToolFailure::TimedOut), "{outcome:?}");
        assert!(received(&record, "tasks/cancel").await.is_some());
        fleet.stop().await;
    }
}

#[tokio::test]
async fn the_error_of_a_failed_task_is_that_of_the_call() {
    for script in scripts(TaskScript { polls: Some(1), poll_ms: 200, fails: true }) {
        let (fleet, tools) = ready(&servers(json!({ "x": entry(&script) }))).await;
        let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
        assert_eq!(outcome.details.failure, Some(ToolFailure::Protocol), "{outcome:?}");
        assert!(outcome.text().contains("failed, as asked"), "{outcome:?}");
        fleet.stop().await;
    }
}

/// Gives a name.
struct Ada;

impl Elicitor for Ada {
    fn ask(&self, _: ElicitationRequest) -> BoxFuture<'_, ElicitationAnswer> {
        async { ElicitationAnswer::Accept(Some(json!({ "name": "Ada" }))) }.boxed()
    }
}

#[tokio::test]
async fn a_task_gets_the_input_that_it_requests_once() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("messages"));
    let [_, script] = scripts(TaskScript { polls: Some(1), poll_ms: 200, fails: false });
    let script = script.ask(Ask::Elicitation).record(recording.path());
    let mut setup = setup();
    setup.context.host.elicitor = Some(Arc::new(Ada));
    let (fleet, tools) = ready_with(&servers(json!({ "x": entry(&script) })), setup).await;
    let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
    assert!(outcome.text().contains(r#"{"name":"Ada"}"#), "{outcome:?}");
    assert_eq!(recording.of_method("tasks/update").len(), 1);
    fleet.stop().await;
}

#[tokio::test]
async fn a_tool_that_runs_only_as_a_task_is_not_offered_where_tasks_are_not_declared() {
    let task = TaskScript { polls: Some(1), poll_ms: 200, fails: false };
    let [legacy, modern] = scripts(task);
    let capabilities = json!({ "tools": {} });
    let old = scripts(task)[0].clone().versions(["2025-06-18"]);
    for script in
        [legacy.capabilities(capabilities.clone()), modern.capabilities(capabilities), old]
    {
        let (fleet, tools) = ready(&servers(json!({ "x": entry(&script) }))).await;
        assert!(tools.catalogue().get("mcp_x_echo").is_none());
        let (_, left_out) = tools.left_out("echo").unwrap();
        assert!(left_out.reason.contains("only as a task"), "{left_out:?}");
        fleet.stop().await;
    }
}
