//! Input that a client should not send.

use std::process::Stdio;

use openclaw_testkit::Script;
use serde_json::{Value, json};

use crate::editor::{Editor, Place};

#[test]
fn garbage_is_answered_with_an_error_that_does_not_quote_it() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}));
    for garbage in ["hunter2", "{\"jsonrpc\":\"2.0\",\"id\":\"hunter2\"", "\u{feff}[hunter2"] {
        editor.write(garbage);
        let frame = editor.frame();
        assert_eq!(frame["error"]["code"], -32700, "{frame}");
        assert!(!frame.to_string().contains("hunter2"), "{frame}");
    }
    editor.session(&place, &[]);
}

#[test]
fn unknown_sessions_methods_and_early_requests_are_errors() {
    let place = Place::new();
    let mut early = Editor::spawn(&place, &[]);
    assert!(early.ask("session/new", json!({ "cwd": "/", "mcpServers": [] })).is_err());
    drop(early);
    let mut editor = Editor::start(&place, &[], &json!({}));
    let prompt = json!([{ "type": "text", "text": "hello" }]);
    let error = editor.error("session/prompt", json!({ "sessionId": "x", "prompt": prompt }));
    assert_eq!(error, "session `x` not found; use session/new or session/load");
    let error = editor.error(
        "session/load",
        json!({ "sessionId": "agent:main:nothing", "cwd": "/", "mcpServers": [] }),
    );
    assert_eq!(
        error,
        "session `agent:main:nothing` not found; use session/list to find one, or session/new"
    );
    assert!(editor.ask("session/nonsense", json!({})).is_err());
    let error = editor.error("session/new", json!({ "cwd": "here", "mcpServers": [] }));
    assert!(error.contains("absolute"), "{error}");
    let error = editor.error("session/list", json!({ "cwd": "here" }));
    assert_eq!(error, "`cwd` must be an absolute path");
    // None is needed, so any is accepted.
    editor.ask("authenticate", json!({ "methodId": "password" })).unwrap();
    // Nothing to cancel.
    editor.notify("session/cancel", json!({ "sessionId": "x" }));
    let session = editor.session(&place, &[]);
    editor.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(editor.prompt(&session, "hello").0, "end_turn");
    let empty = json!({ "sessionId": session, "prompt": [] });
    assert!(editor.error("session/prompt", empty).contains("empty"));
}

#[test]
fn an_invalid_block_of_a_prompt_is_named() {
    let place = Place::new();
    let (mut editor, session) = Editor::open(&place, &[]);
    let text = json!({ "type": "text", "text": "hello" });
    for (block, expected) in [
        (json!({ "type": "video" }), "`prompt[1]`: expected one of `text`"),
        (json!({ "type": "text", "text": 5 }), "`prompt[1]`: expected a string"),
        (
            json!({ "type": "image", "mimeType": "image/png", "data": "?" }),
            "`prompt[1]`: `data` is not base64",
        ),
    ] {
        let params = json!({ "sessionId": session, "prompt": [text, block] });
        let error = editor.error("session/prompt", params);
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(editor.prompt(&session, "hello").0, "end_turn");
}

#[test]
fn a_prompt_of_50_mb_is_refused_and_the_session_goes_on() {
    let place = Place::new();
    let (mut editor, session) = Editor::open(&place, &[]);
    let huge = "x".repeat(50 * 1024 * 1024);
    let prompt = json!([{ "type": "text", "text": huge }]);
    let error = editor.error("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    assert!(error.contains("longer than"), "{error}");
    assert_eq!(editor.prompt(&session, "hello").0, "end_turn");
}

#[test]
fn invalid_servers_are_refused_without_quoting_their_values() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}));
    let secret = json!([{ "name": "TOKEN", "value": "hunter2" }]);
    let server =
        |name: &str| json!({ "name": name, "command": "/bin/cat", "args": [], "env": secret });
    let eleven: Vec<Value> = (0..11).map(|nth| server(&format!("s{nth}"))).collect();
    let mut relative = server("a");
    relative["command"] = json!("bin/hunter2");
    for (servers, expected) in [
        (json!({ "a": secret }), "must be a list"),
        (json!("hunter2"), "must be a list"),
        (json!(eleven), "at most 10"),
        (json!([server("a"), server("a")]), "duplicate server name `a`"),
        (json!([relative]), "absolute path"),
        (
            json!([{ "type": "http", "name": "a", "url": "http://example.com/", "headers": secret }]),
            "must use https",
        ),
        (json!([{ "name": "a", "env": secret }]), "`command` is missing"),
        (
            json!([{ "name": "a", "url": "https://a.example/", "headers": secret }]),
            r#"`type` is missing: add `"type": "http"` or `"type": "sse"`"#,
        ),
        (json!([{ "name": "a", "command": "/a", "env": { "TOKEN": "hunter2" } }]), "`env` must be"),
        (
            json!([{ "type": "http", "name": "a", "url": "https://a.example", "headers": [{ "name": "X", "value": "hunter2\n" }] }]),
            "`headers[0]`: the value contains a line break",
        ),
    ] {
        let params = json!({ "cwd": place.project(), "mcpServers": servers });
        let error = editor.ask("session/new", params).unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn of_101_tools_100_are_used_and_the_client_is_told() {
    let place = Place::new();
    let mut editor = Editor::start(&place, &[], &json!({}));
    let many = Script::new().extra_tools(101);
    let session = editor.session(&place, &[place.stdio("many", &many)]);
    let (_, text) = editor.prompt(&session, "hello");
    assert!(text.contains("only 100 are used (setting `acp.maxTools`"), "{text}");
    assert!(text.contains("Not used: mcp__many__"), "{text}");
}

#[test]
fn limits_from_the_environment_override_the_configuration() {
    let place = Place::with(&json!({ "mcp": { "servers": {} }, "acp": { "maxServers": 5 } }));
    let limits = [("OPENCLAW_ACP_MAX_SERVERS", "1"), ("OPENCLAW_ACP_MAX_TOOLS", "2")];
    let mut editor = Editor::spawn_with(&place, &[], &limits);
    editor.ask("initialize", json!({ "protocolVersion": 1 })).unwrap();
    let servers = ["a", "b"].map(|name| place.stdio(name, &Script::new()));
    let params = json!({ "cwd": place.project(), "mcpServers": servers });
    let error = editor.error("session/new", params);
    assert_eq!(
        error,
        "2 MCP servers; at most 1 are allowed per session (setting `acp.maxServers`, or \
         OPENCLAW_ACP_MAX_SERVERS)"
    );
    let session = editor.session(&place, &servers[..1]);
    let (_, text) = editor.prompt(&session, "hello");
    assert!(text.contains("only 2 are used (setting `acp.maxTools`, or OPENCLAW_ACP_MAX_TOOLS)"));
    drop(editor);
    for bad in ["-1", "many", "1001"] {
        let mut command = place.command(&["acp"]);
        let output = command.env("OPENCLAW_ACP_MAX_TOOLS", bad).stdin(Stdio::null()).output();
        let output = output.unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected =
            format!("OPENCLAW_ACP_MAX_TOOLS must be a whole number from 0 to 1000, not `{bad}`");
        assert!(words.contains(&expected), "{words}");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    }
}

#[test]
fn an_invalid_configuration_is_the_answer_to_the_first_request() {
    let place = Place::with(&json!({ "mcp": { "servers": { "a": { "comand": "x" } } } }));
    let mut editor = Editor::spawn(&place, &[]);
    let error = editor.ask("initialize", json!({ "protocolVersion": 1 })).unwrap_err();
    assert_eq!(error["code"], -32603, "{error}");
    let message = error["message"].as_str().unwrap();
    for expected in [
        "the configuration has errors\n",
        "openclaw.json:1:",
        "unknown setting `comand` (did you mean `command`?)",
        "\nrun `openclaw config validate` for details",
    ] {
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(editor.exit(), 78);
    drop(editor);

    // What is not a request gets no answer.
    for line in ["{}", "hello", "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\"}"] {
        let mut editor = Editor::spawn(&place, &[]);
        editor.write(line);
        assert_eq!(editor.close(), 78);
    }
}
