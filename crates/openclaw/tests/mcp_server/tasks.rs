//! Long runs as tasks, for clients that declare the extension (2026-07-28).

use openclaw_testkit::Piece;
use serde_json::{Value, json};

use crate::client::Client;
use crate::common::{LONG, rpc};
use crate::model::{Model, last_message};

fn meta() -> Value {
    rpc::meta(json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }))
}

fn order(message: &str) -> Value {
    json!({ "name": "order_openclaw", "arguments": { "message": message }, "_meta": meta() })
}

fn wait(client: &mut Client, task: &str, status: &str) -> Value {
    until_status(client, &json!({ "taskId": task, "_meta": meta() }), status)
}

/// Polls a task until it has this status.
pub(crate) fn until_status(client: &mut Client, task: &Value, status: &str) -> Value {
    let deadline = std::time::Instant::now() + LONG;
    loop {
        let state = client.ask("tasks/get", task.clone()).unwrap();
        if state["status"] == status {
            return state;
        }
        assert!(std::time::Instant::now() < deadline, "{state}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn a_long_run_becomes_a_task_and_a_short_one_is_answered_directly() {
    let model = Model::start(|request| match last_message(request).as_str() {
        Some("short") => vec![Piece::text("quick")],
        _ => vec![Piece::text("slow "), Piece::Wait, Piece::text("answer")],
    });
    let place = model.place();
    let mut client = Client::spawn(&place, &[]);
    let result = client.ask("tools/call", order("short")).unwrap();
    assert_eq!(result["structuredContent"]["text"], "quick", "{result}");

    let created = client.ask("tools/call", order("long")).unwrap();
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    let task = created["taskId"].as_str().unwrap().to_owned();
    let state = wait(&mut client, &task, "working");
    assert!(state["statusMessage"].is_string(), "{state}");
    model.release();
    let state = wait(&mut client, &task, "completed");
    assert_eq!(state["result"]["structuredContent"]["text"], "slow answer", "{state}");

    let created = client.ask("tools/call", order("long")).unwrap();
    let task = created["taskId"].as_str().unwrap().to_owned();
    client.ask("tasks/cancel", json!({ "taskId": task, "_meta": meta() })).unwrap();
    wait(&mut client, &task, "cancelled");
    model.release();
    let error = client.ask("tasks/get", json!({ "taskId": "x", "_meta": meta() })).unwrap_err();
    assert!(error["message"].is_string());
    assert_eq!(client.close(), 0);
}
