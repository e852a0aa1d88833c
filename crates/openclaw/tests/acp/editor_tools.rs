//! The editor's file system and terminals as tools.

use serde_json::{Value, json};

use crate::editor::{Editor, Place, choose};

fn everything() -> Value {
    json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true })
}

/// Answers as an editor with one file.
fn answers(method: &str, params: &Value) -> Option<Value> {
    Some(match method {
        "session/request_permission" => return choose(params, "allow_once"),
        "fs/read_text_file" => json!({ "content": "one two three" }),
        "fs/write_text_file" | "terminal/release" => json!({}),
        "terminal/create" => json!({ "terminalId": "t1" }),
        "terminal/wait_for_exit" => json!({ "exitCode": 3 }),
        "terminal/output" => json!({ "output": "out", "truncated": false }),
        _ => panic!("{method}"),
    })
}

#[test]
fn files_are_read_and_edited_through_the_editor_and_shown_as_diffs() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &everything()).answering(answers);
    let session = editor.session(&place, &[]);
    let (_, text) = editor.prompt(&session, "/call editor_read_file {\"path\":\"a.txt\"}");
    assert!(text.ends_with("one two three"), "{text}");
    assert_eq!(editor.asked.len(), 1, "reading in the project needs no permission");

    let edit = json!({ "path": "a.txt", "old": "two", "new": "2" });
    editor.prompt(&session, &format!("/call editor_edit_file {edit}"));
    let path = place.path("project").join("a.txt");
    let diff = &editor.of_kind("tool_call")[0]["content"][0];
    let expected = json!({ "type": "diff", "path": path, "oldText": "two", "newText": "2" });
    assert_eq!(diff, &expected);
    let (method, params) = editor.asked.last().unwrap();
    assert_eq!(
        (method.as_str(), &params["content"]),
        ("fs/write_text_file", &json!("one 2 three"))
    );
    let methods: Vec<&str> = editor.asked.iter().map(|(method, _)| method.as_str()).collect();
    assert!(methods.contains(&"session/request_permission"), "{methods:?}");

    editor.asked.clear();
    let write = json!({ "path": "a.txt", "content": "new" });
    editor.prompt(&session, &format!("/call editor_write_file {write}"));
    let (_, asked) =
        editor.asked.iter().find(|(method, _)| method == "session/request_permission").unwrap();
    assert_eq!(asked["toolCall"]["content"][0]["oldText"], "one two three");
}

#[test]
fn the_agent_s_own_tools_work_in_the_folder_of_the_session() {
    let place = Place::new();
    std::fs::write(place.path("project").join("notes.txt"), "one two three").unwrap();
    let mut editor = Editor::start(&place, &[], &json!({})).answering(answers);
    let session = editor.session(&place, &[]);
    let (_, text) = editor.prompt(&session, "/call read {\"path\":\"notes.txt\"}");
    assert!(text.contains("one two three"), "{text}");
    let write = json!({ "path": "notes.txt", "content": "four" });
    editor.prompt(&session, &format!("/call write {write}"));
    let (_, asked) = editor.asked.last().unwrap();
    let diff = &asked["toolCall"]["content"][0];
    assert_eq!((&diff["oldText"], &diff["newText"]), (&json!("one two three"), &json!("four")));
    assert_eq!(std::fs::read_to_string(place.path("project").join("notes.txt")).unwrap(), "four");
    // The home folder has keys, too: it is used only if the user has said so in a chat.
    let at_home = json!({ "cwd": place.path(""), "mcpServers": [] });
    let session = editor.ask("session/new", at_home).unwrap()["sessionId"].clone();
    let (_, text) =
        editor.prompt(session.as_str().unwrap(), "/call read {\"path\":\"project/notes.txt\"}");
    assert!(!text.contains("four"), "{text}");
}

#[test]
fn a_path_outside_the_session_s_folder_is_refused() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &everything()).answering(answers);
    let session = editor.session(&place, &[]);
    for path in ["../openclaw.json", "/etc/passwd"] {
        let asked = format!("/call editor_read_file {}", json!({ "path": path }));
        let (_, text) = editor.prompt(&session, &asked);
        assert!(text.contains("outside the session's folders"), "{text}");
    }
    for (tool, arguments) in [
        ("editor_write_file", json!({ "path": "/etc/x", "content": "x" })),
        ("editor_run", json!({ "command": "ls", "cwd": "/etc" })),
    ] {
        let (_, text) = editor.prompt(&session, &format!("/call {tool} {arguments}"));
        assert!(text.contains("outside the session's folders"), "{text}");
    }
    assert!(editor.asked.is_empty(), "the client was not asked, nor its user");
}

#[test]
fn a_command_runs_in_a_terminal_of_the_editor() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &everything()).answering(answers);
    let session = editor.session(&place, &[]);
    let (_, text) = editor.prompt(&session, "/call editor_run {\"command\":\"make\"}");
    assert!(text.contains("out\n[exit code 3]"), "{text}");
    let shown = editor.of_kind("tool_call_update").into_iter();
    let shown =
        shown.filter(|it| it["content"][0] == json!({ "type": "terminal", "terminalId": "t1" }));
    assert_eq!(shown.count(), 1);
    let last = editor.of_kind("tool_call_update").pop().unwrap();
    assert_eq!(last["status"], "failed", "like a command of `exec`: {last}");
    assert!(last.get("content").is_none(), "the terminal stays: {last}");
    while editor.asked.last().unwrap().0 != "terminal/release" {
        editor.frame();
    }
}

#[test]
fn what_the_editor_cannot_do_is_reported_with_the_path() {
    let place = Place::new();
    // An answer without `content`.
    let mut editor = Editor::start(&place, &[], &everything()).answering(|_, _| Some(json!({})));
    let session = editor.session(&place, &[]);
    let (_, text) = editor.prompt(&session, "/call editor_read_file {\"path\":\"a.txt\"}");
    let path = place.path("project").join("a.txt");
    let expected = format!("the editor could not read {}: Parse error: ", path.display());
    assert!(text.contains(&expected) && text.contains("`content`"), "{text}");
}

#[test]
fn a_client_without_files_and_terminals_lends_no_tools() {
    let place = Place::new();
    let (mut editor, session) = Editor::open(&place, &[]);
    let (_, text) = editor.prompt(&session, "/call editor_run {\"command\":\"make\"}");
    assert!(!text.contains("exit code"), "{text}");
}

#[test]
fn a_terminal_is_released_however_its_call_ends() {
    let place = Place::new();
    // One that never exits, and one whose creation is answered after the cancellation.
    for is_late in [false, true] {
        let mut editor = Editor::start(&place, &[], &everything()).answering(
            move |method, params| match method {
                "terminal/create" if is_late => None,
                "terminal/wait_for_exit" => None,
                _ => answers(method, params),
            },
        );
        let session = editor.session(&place, &[]);
        let id = editor.send_prompt(&session, "/call editor_run {\"command\":\"sleep\"}");
        let waits_for = if is_late { "terminal/create" } else { "terminal/wait_for_exit" };
        while editor.asked.last().is_none_or(|(method, _)| method != waits_for) {
            editor.frame();
        }
        editor.notify("session/cancel", json!({ "sessionId": session }));
        assert_eq!(editor.answer(id).unwrap()["stopReason"], "cancelled");
        if is_late {
            editor.answer_late(&json!({ "terminalId": "t1" }));
        }
        while editor.asked.last().unwrap().0 != "terminal/release" {
            editor.frame();
        }
        assert_eq!(editor.asked.last().unwrap().1["terminalId"], "t1");
        assert_eq!(editor.close(), 0);
    }
}
