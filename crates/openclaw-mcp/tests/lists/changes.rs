//! Lists that change and are read again.

use serde_json::{Value, json};

use crate::common::until;
use crate::support::{answering, fleet, offering, server};

fn tools(names: &[&str]) -> Value {
    let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
    json!({ "result": { "tools": names.iter().map(tool).collect::<Vec<_>>() } })
}

#[tokio::test]
async fn a_change_while_the_lists_are_first_read_is_not_missed() {
    let mut first = tools(&["a"]);
    first["tell"] = "notifications/tools/list_changed".into();
    let answers = json!({ "tools/list": [first, tools(&["a", "b"])] });
    let fleet = fleet(&[("x", answering(answers))]);
    fleet.tried().await;
    let server = server(&fleet, "x");
    until(|| server.status().tools == 2).await;
    fleet.stop().await;
}

#[tokio::test]
async fn undeclared_lists_are_not_requested_on_refresh_either() {
    let resource = json!({ "result": { "resources": [{ "name": "a", "uri": "x:a" }] } });
    let prompt = json!({ "result": { "prompts": [{ "name": "a" }] } });
    let answers = json!({
        "tools/list": [tools(&["a"]), tools(&["a", "b"])],
        "resources/list": [resource],
        "prompts/list": [prompt],
    });
    let fleet = fleet(&[("x", offering(json!({ "tools": {} }), answers))]);
    fleet.tried().await;
    let server = server(&fleet, "x");
    server.refresh().await.unwrap();
    let status = server.status();
    assert_eq!((status.tools, status.resources, status.prompts), (2, 0, 0));
    fleet.stop().await;
}

#[tokio::test]
async fn a_list_is_kept_if_refreshing_fails_and_left_out_entries_do_not_accumulate() {
    let failure = json!({ "error": { "code": -32603, "message": "out of order" } });
    let resources = json!({ "result": { "resources": [{ "name": "a", "uri": "x:a" }, 1, 2] } });
    let templates = json!({ "result": { "resourceTemplates": [3] } });
    let prompts = json!({ "result": { "prompts": [{ "name": "a" }, 4] } });
    let answers = json!({
        "tools/list": [tools(&["a", "a"])],
        "resources/list": [resources, failure, resources],
        "resources/templates/list": [templates],
        "prompts/list": [prompts, failure],
    });
    let fleet = fleet(&[("x", answering(answers))]);
    fleet.tried().await;
    let server = server(&fleet, "x");
    let before = server.cache().inventory();
    assert_eq!((before.resources.len(), before.prompts.len()), (1, 1));
    assert_eq!(before.left_out.len(), 5, "{:?}", before.left_out);
    for _ in 0..3 {
        server.refresh().await.unwrap();
        assert_eq!(*server.cache().inventory(), *before);
    }
    fleet.stop().await;
}

#[tokio::test]
async fn an_older_list_never_replaces_a_newer_one() {
    let mut older = tools(&["a", "b"]);
    older["late"] = json!(1);
    let answers = json!({ "tools/list": [tools(&["a"]), older, tools(&["a", "b", "c"])] });
    let fleet = fleet(&[("x", answering(answers))]);
    fleet.tried().await;
    let server = server(&fleet, "x");
    let (first, second) = tokio::join!(server.refresh(), server.refresh());
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(server.status().tools, 3);
    fleet.stop().await;
}
