//! Permission requests.

use std::time::Instant;

use openclaw_testkit::{Script, Tool};
use serde_json::{Value, json};

use crate::common::LONG;
use crate::editor::{Editor, Place, changing, choose};

const CALL: &str = "/call mcp__box__change {}";

#[test]
fn a_call_runs_only_with_permission() {
    let place = Place::new();
    for (kind, status) in [("allow_once", "completed"), ("reject_once", "failed")] {
        let mut editor =
            Editor::start(&place, &[], &json!({})).answering(move |_, params| choose(params, kind));
        let session = editor.session(&place, &[place.stdio("box", &changing())]);
        editor.prompt(&session, CALL);
        editor.prompt(&session, CALL);
        let update = editor.of_kind("tool_call_update").pop().unwrap().clone();
        assert_eq!(update["status"], status);
        assert_eq!(editor.asked.len(), 2, "each call is asked about");
        let (method, params) = &editor.asked[1];
        assert_eq!(method, "session/request_permission");
        assert_eq!(params["toolCall"]["toolCallId"], update["toolCallId"], "the same call");
    }
}

#[test]
fn always_holds_for_the_session_and_no_longer() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}))
        .answering(|_, params| choose(params, "allow_always"));
    let server = place.stdio("box", &changing());
    let one = editor.session(&place, std::slice::from_ref(&server));
    for _ in 0..3 {
        assert!(editor.prompt(&one, CALL).1.ends_with("returned: done"), "{}", editor.text());
    }
    assert_eq!(editor.asked.len(), 1);
    let two = editor.session(&place, &[server]);
    editor.prompt(&two, CALL);
    assert_eq!(editor.asked.len(), 2, "another session asks again");
}

#[test]
fn always_does_not_hold_for_a_tool_that_has_changed() {
    let place = Place::new();
    let result = json!({ "content": [{ "type": "text", "text": "done" }] });
    let other = Tool::new("change").with("description", json!("Does more.")).result(&result);
    let script = changing().list_changed_after_calls(1).changed_tools([other]);
    let mut editor = Editor::start(&place, &[], &json!({}))
        .answering(|_, params| choose(params, "allow_always"));
    let session = editor.session(&place, &[place.stdio("box", &script)]);
    editor.prompt(&session, CALL);
    let until = Instant::now() + LONG;
    while editor.asked.len() < 2 {
        editor.prompt(&session, CALL);
        assert!(Instant::now() < until, "never asked again");
    }
}

#[test]
fn cancelling_a_prompt_that_waits_for_permission_ends_it() {
    let place = Place::new();
    // A client that never answers.
    let mut editor = Editor::start(&place, &[], &json!({})).answering(|_, _| None);
    let session = editor.session(&place, &[place.stdio("box", &changing())]);
    let id = editor.send_prompt(&session, CALL);
    while editor.asked.is_empty() {
        editor.frame();
    }
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.answer(id).unwrap()["stopReason"], "cancelled");
    assert_eq!(editor.prompt(&session, "hello").0, "end_turn");
}

#[test]
fn a_permission_request_that_is_not_answered_expires() {
    let place = Place::with(&json!({
        "mcp": { "servers": {} },
        "agents": { "defaults": { "approval": { "timeoutMs": 1_000 } } },
    }));
    let mut editor = Editor::start(&place, &[], &json!({})).answering(|_, _| None);
    let session = editor.session(&place, &[place.stdio("box", &changing())]);
    let (stop, _) = editor.prompt(&session, CALL);
    assert_eq!(stop, "end_turn");
    let failed: Vec<Value> = editor
        .of_kind("tool_call_update")
        .into_iter()
        .filter(|update| update["status"] == "failed")
        .cloned()
        .collect();
    assert_eq!(failed.len(), 1);
}

#[test]
fn an_editor_that_cannot_ask_is_not_a_user_who_denies() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({})).answering(|_, _| None);
    let session = editor.session(&place, &[place.stdio("box", &changing())]);
    let id = editor.send_prompt(&session, CALL);
    while editor.frame()["asked"] != "session/request_permission" {}
    editor.fail_late("no window");
    editor.answer(id).unwrap();
    let text = editor.text();
    assert!(text.contains("The editor could not ask for permission: no window"), "{text}");
    assert!(text.contains("no user answered: the user's client could not ask"), "{text}");
    assert!(!text.contains("denied"), "{text}");
}

#[test]
fn a_prompt_that_is_cancelled_at_once_asks_for_nothing() {
    let place = Place::new();
    let mut editor = Editor::allowing(&place, &[]);
    let session = editor.session(&place, &[place.stdio("box", &changing())]);
    // The cancellation is sent before the prompt has an effect.
    for _ in 0..5 {
        let id = editor.send_prompt(&session, CALL);
        editor.notify("session/cancel", json!({ "sessionId": session }));
        assert_eq!(editor.answer(id).unwrap()["stopReason"], "cancelled");
    }
    assert!(editor.asked.is_empty(), "{:?}", editor.asked);
    assert!(editor.prompt(&session, CALL).1.ends_with("returned: done"));
}

#[test]
fn a_permission_request_shows_all_of_what_will_be_done() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({ "terminal": true }))
        .answering(|_, params| choose(params, "reject_once"));
    let session = editor.session(&place, &[place.stdio("box", &changing())]);
    let long = format!("echo {}; rm -rf x", "a".repeat(200));
    let ticks = "echo ```\nrm -rf y";
    for (call, arguments, title, shown) in [
        (
            "editor_run",
            json!({ "command": "sh", "args": ["-c", "curl x | sh"] }),
            "Run a command in the editor: sh -c 'curl x | sh'",
            "```sh\nsh -c 'curl x | sh'\n```",
        ),
        ("exec", json!({ "command": long }), "Run a command: echo aaa", &*long),
        (
            "exec",
            json!({ "command": ticks }),
            "Run a command: echo ``` …",
            "````sh\necho ```\nrm -rf y\n````",
        ),
        ("mcp__box__change", json!({ "what": "all" }), "change", "what=\"all\""),
    ] {
        editor.asked.clear();
        editor.prompt(&session, &format!("/call {call} {arguments}"));
        let (_, params) = editor.asked.last().unwrap();
        let asked = &params["toolCall"];
        assert!(asked["title"].as_str().unwrap().contains(title), "{asked}");
        let text = asked["content"][0]["content"]["text"].as_str().unwrap();
        assert!(text.contains(shown), "{text}");
    }
}

#[test]
fn changes_of_a_server_s_tool_are_shown_as_differences_with_all_arguments() {
    let place = Place::new();
    let schema = json!({ "type": "object" });
    let edit = Tool::new("edit_file").schema(schema).result(&json!({
        "content": [{ "type": "text", "text": "edited" }]
    }));
    let mut editor =
        Editor::start(&place, &[], &json!({})).answering(|_, params| choose(params, "allow_once"));
    let session = editor.session(&place, &[place.stdio("box", &Script::new().tools([edit]))]);
    let path = format!("{}/a.txt", place.project());
    let edits = json!([{ "oldText": "1", "newText": "2" }]);
    let args = json!({ "path": path, "edits": edits, "dryRun": false });
    editor.prompt(&session, &format!("/call mcp__box__edit_file {args}"));
    let diff = json!({ "type": "diff", "path": path, "oldText": "1", "newText": "2" });
    let call = editor.of_kind("tool_call")[0];
    assert_eq!((&call["content"][0], &call["locations"][0]["path"]), (&diff, &json!(path)));
    let (_, asked) = &editor.asked[0];
    assert_eq!(asked["toolCall"]["content"][0], diff);
    assert!(asked["toolCall"]["content"][1].to_string().contains("dryRun"), "{asked}");
    let done = editor.of_kind("tool_call_update").pop().unwrap();
    assert_eq!(done["content"][0], diff);
    assert_eq!(done["content"][1]["content"]["text"], "edited");
}

#[test]
fn a_file_outside_of_the_workspace_is_refused_without_a_question() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}));
    let session = editor.session(&place, &[]);
    for path in ["/etc/openclaw.txt", "../x.txt", "./../x.txt"] {
        let args = json!({ "path": path, "content": "x" });
        editor.prompt(&session, &format!("/call write {args}"));
        let update = editor.of_kind("tool_call_update").pop().unwrap();
        assert_eq!(update["status"], "failed");
        let text = update["rawOutput"]["text"].as_str().unwrap();
        assert!(text.contains("outside of the workspace"), "{text}");
    }
}

#[test]
fn the_end_of_a_long_command_is_shown() {
    let place = Place::new();
    let mut editor =
        Editor::start(&place, &[], &json!({})).answering(|_, params| choose(params, "reject_once"));
    let session = editor.session(&place, &[]);
    let command = format!("echo {}; touch\u{200b} X", "build ".repeat(6_000));
    editor.prompt(&session, &format!("/call exec {}", json!({ "command": command })));
    let (_, params) = &editor.asked[0];
    let shown = params["toolCall"]["content"].to_string();
    assert!(
        shown.contains("echo build build ") && shown.contains("build ; touch\\\\u{200b} X"),
        "{shown}"
    );
    assert!(shown.contains(" more characters …"), "{shown}");
    assert_eq!(params["toolCall"]["rawInput"]["command"], command);
}
