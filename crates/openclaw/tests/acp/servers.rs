//! The MCP servers that an editor passes.

use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openclaw_testkit::{Ask, HttpServer, Script, TestServer, Tool, processes};
use serde_json::{Value, json};

use crate::editor::{Editor, PNG, Place, choose};

fn call(tool: &str, args: &Value) -> String {
    format!("/call {tool} {args}")
}

fn http(name: &str, kind: &str, url: &str) -> Value {
    json!({ "name": name, "type": kind, "url": url, "headers": [] })
}

#[test]
fn stdio_http_and_sse_servers_are_used() {
    let place = Place::new();
    let modern: HttpServer = TestServer::http(&Script::new());
    let old = TestServer::http(&Script::new().legacy_sse_only());
    let mut typed = place.stdio("typed", &Script::new());
    typed["type"] = json!("stdio");
    let servers = [
        place.stdio("plain", &Script::new()),
        typed,
        http("web", "http", modern.url()),
        http("old", "sse", &old.sse_url()),
    ];
    let (mut editor, session) = Editor::open(&place, &servers);
    for name in ["plain", "typed", "web", "old"] {
        let asked = call(&format!("mcp__{name}__echo"), &json!({ "text": name }));
        let (_, text) = editor.prompt(&session, &asked);
        assert!(text.ends_with(&format!("returned: {name}")), "{text}");
        assert_eq!(editor.of_kind("tool_call")[0]["kind"], "read");
    }
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn a_server_that_crashes_and_one_that_never_starts_do_not_harm_the_session() {
    let place = Place::new();
    let servers = [
        place.stdio("good", &Script::new()),
        place.stdio("crash", &Script::new().call_delay_ms(60_000)),
        place.stdio("never", &Script::new().stderr_line("API_KEY is not set").exit_at_start(3)),
    ];
    let (mut editor, session) = Editor::open(&place, &servers);
    let (_, text) = editor.prompt(&session, &call("mcp__good__echo", &json!({ "text": "a" })));
    assert!(text.contains("MCP server `never` is not available: exited with status 3"), "{text}");
    assert!(text.contains("\n  | API_KEY is not set\n"), "{text}");
    assert!(text.ends_with("`mcp__good__echo` returned: a"), "{text}");
    let crash = call("mcp__crash__echo", &json!({ "text": "b" }));
    editor.updates.clear();
    let id = editor.send_prompt(&session, &crash);
    editor.wait_for("tool_call");
    // In the middle of the call.
    let file = format!("{}/crash.script.json", place.folder.path().display());
    for pid in processes::mentioning(&file) {
        let _ = kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL);
    }
    assert_eq!(editor.answer(id).unwrap()["stopReason"], "end_turn");
    let update = editor.of_kind("tool_call_update").pop().unwrap().clone();
    assert_eq!(update["status"], "failed", "{update}");
    // Its tool is still listed, and the others work.
    let (_, text) = editor.prompt(&session, &call("mcp__good__echo", &json!({ "text": "c" })));
    assert!(text.ends_with("returned: c"), "{text}");
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn two_sessions_share_no_server_and_a_loaded_session_takes_a_new_set() {
    let place = Place::new();
    let mut editor = Editor::allowing(&place, &[]);
    let server = place.stdio("same", &Script::new());
    let one = editor.session(&place, std::slice::from_ref(&server));
    let two = editor.session(&place, &[server]);
    let count = call("mcp__same__count", &json!({}));
    for expected in ["1", "2"] {
        assert!(editor.prompt(&one, &count).1.ends_with(&format!("returned: {expected}")));
    }
    assert!(editor.prompt(&two, &count).1.ends_with("returned: 1"), "{}", editor.text());
    let other = [place.stdio("other", &Script::new())];
    editor.load(&place, &one, &other);
    let (_, text) = editor.prompt(&one, &call("mcp__other__count", &json!({})));
    assert!(text.ends_with("returned: 1"), "{text}");
    let (_, text) = editor.prompt(&one, &count);
    assert!(!text.contains("returned: 3"), "the old server is gone: {text}");
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn a_server_gets_its_own_variables_and_nothing_secret() {
    let place = Place::new();
    let mut server = place.stdio("env", &Script::new());
    server["env"] = json!([
        { "name": "MINE", "value": "yes" },
        { "name": "LITERAL", "value": "${HOME} secret://env/GIVEN_SECRET" },
    ]);
    let mut editor = Editor::allowing(&place, &[]);
    let session = editor.session(&place, &[server]);
    for (name, expected) in [
        ("MINE", "yes"),
        ("LITERAL", "${HOME} secret://env/GIVEN_SECRET"),
        ("OPENCLAW_STATE_DIR", ""),
    ] {
        let asked = call("mcp__env__env", &json!({ "name": name }));
        let (_, text) = editor.prompt(&session, &asked);
        let found = text.contains(&place.folder.path().display().to_string());
        assert!(text.contains(expected) && !found, "{name}: {text}");
    }
}

#[test]
fn a_server_that_is_late_joins_the_session() {
    let place = Place::new();
    let late = Script::new().start_delay_ms(3_000);
    let mut editor = Editor::start(&place, &[], &json!({}));
    let started = Instant::now();
    let session = editor.session(&place, &[place.stdio("late", &late)]);
    assert!(started.elapsed().as_millis() < 2_500, "session/new does not wait for servers");
    let (_, text) = editor.prompt(&session, &call("mcp__late__echo", &json!({ "text": "here" })));
    assert!(text.ends_with("returned: here"), "{text}");
}

#[test]
fn a_server_that_requires_a_login_is_reported_with_what_to_do() {
    let place = Place::new();
    let server = TestServer::http(&Script::new().bearer("good", Some("Bearer")));
    let mut with_token = http("with", "http", server.url());
    with_token["headers"] = json!([{ "name": "Authorization", "value": "Bearer good" }]);
    let mut with_bad_token = http("bad", "http", server.url());
    with_bad_token["headers"] = json!([{ "name": "Authorization", "value": "Bearer hunter2" }]);
    let servers = [http("without", "http", server.url()), with_token, with_bad_token];
    let (mut editor, session) = Editor::open(&place, &servers);
    let (_, text) = editor.prompt(&session, &call("mcp__with__echo", &json!({ "text": "in" })));
    assert!(text.contains("MCP server `bad` rejected the token"), "{text}");
    assert!(text.contains("run `openclaw mcp login without`"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("MCP server `without`") && text.contains("returned: in"), "{text}");
    assert!(text.contains("`headers`") && text.contains("acp.useLogins"), "{text}");
}

#[test]
fn commands_about_servers_know_those_of_the_session() {
    let (program, args) = TestServer::stdio(&Script::new());
    let configured =
        json!({ "mcp": { "servers": { "kit": { "command": program, "args": args } } } });
    for (place, has_others) in [(Place::new(), false), (Place::with(&configured), true)] {
        let (mut editor, session) = Editor::open(&place, &[place.stdio("mine", &Script::new())]);
        let (_, text) = editor.prompt(&session, "/mcp servers");
        assert!(text.contains("MCP servers of this session:\n- mine: ready, "), "{text}");
        assert!(!text.contains("No MCP servers"), "{text}");
        assert_eq!(text.contains("kit"), has_others, "{text}");
        for command in ["/mcp tools", "/mcp tools mine"] {
            let (_, text) = editor.prompt(&session, command);
            assert!(text.contains("- `mcp__mine__echo`: "), "{text}");
            assert!(!text.contains("No tools"), "{text}");
        }
        let (_, text) = editor.prompt(&session, "/mcp status mine");
        assert!(text.contains("- transport: stdio") && !text.contains("unknown"), "{text}");
        let (_, text) = editor.prompt(&session, "/mcp refresh mine");
        assert!(text.contains("- mine: ready, "), "{text}");
        let (_, text) = editor.prompt(&session, "/mcp logout mine");
        assert!(text.contains("`mine` is a server of the editor"), "{text}");
        let (_, text) = editor.prompt(&session, "/mcp status other");
        assert!(text.contains("unknown server `other`"), "{text}");
    }
}

#[test]
fn a_question_of_a_server_reaches_the_user() {
    let place = Place::new();
    let form = Script::new().ask(Ask::Elicitation);
    let link = Script::new().ask(Ask::ElicitationUrl);
    let servers = [place.stdio("form", &form), place.stdio("link", &link)];

    // ACP's own elicitation.
    let can = json!({ "elicitation": { "form": {}, "url": {} } });
    let mut editor = Editor::start(&place, &[], &can).answering(|method, params| {
        assert_eq!(method, "elicitation/create");
        let content = (params["mode"] == "form").then(|| json!({ "name": "Ada" }));
        Some(json!({ "action": "accept", "content": content }))
    });
    let session = editor.session(&place, &servers);
    editor.prompt(&session, &call("mcp__form__echo", &json!({ "text": "x" })));
    editor.prompt(&session, &call("mcp__link__echo", &json!({ "text": "x" })));
    let modes: Vec<&Value> = editor.asked.iter().map(|(_, params)| &params["mode"]).collect();
    assert_eq!(modes, [&json!("form"), &json!("url")]);
    drop(editor);

    // Without it: a permission request for a link, and a note for a form.
    let mut editor = Editor::start(&place, &[], &json!({})).answering(|method, params| {
        assert_eq!(method, "session/request_permission");
        choose(params, "allow_once")
    });
    let session = editor.session(&place, &servers);
    editor.prompt(&session, &call("mcp__link__echo", &json!({ "text": "x" })));
    let asked = editor.asked[0].1.clone();
    assert!(asked.to_string().contains("https://example.com/login?state=1"), "{asked}");
    assert_eq!(statuses(&editor, &asked["toolCall"]["toolCallId"]), ["completed"]);
    let (_, text) = editor.prompt(&session, &call("mcp__form__echo", &json!({ "text": "x" })));
    assert!(text.contains("It was declined: this editor cannot show a form"), "{text}");
}

/// The reported states of a call.
fn statuses(editor: &Editor, id: &Value) -> Vec<String> {
    let updates = editor.of_kind("tool_call_update").into_iter();
    let of_call = updates.filter(|update| update["toolCallId"] == *id);
    of_call.filter_map(|update| update["status"].as_str().map(ToOwned::to_owned)).collect()
}

#[test]
fn a_question_that_is_declined_or_cannot_be_shown_ends_for_the_client() {
    let place = Place::new();
    let servers = [place.stdio("link", &Script::new().ask(Ask::ElicitationUrl))];
    let prompt = call("mcp__link__echo", &json!({ "text": "x" }));
    let mut editor =
        Editor::start(&place, &[], &json!({})).answering(|_, params| choose(params, "reject_once"));
    let session = editor.session(&place, &servers);
    editor.prompt(&session, &prompt);
    let asked = editor.asked[0].1["toolCall"]["toolCallId"].clone();
    assert_eq!(statuses(&editor, &asked), ["failed"]);
    drop(editor);

    let can = json!({ "elicitation": { "url": {} } });
    let mut editor = Editor::start(&place, &[], &can).answering(|_, _| None);
    let session = editor.session(&place, &servers);
    let id = editor.send_prompt(&session, &prompt);
    while editor.frame()["asked"] != "elicitation/create" {}
    editor.fail_late("no window");
    editor.answer(id).unwrap();
    let text = editor.text();
    assert!(text.contains("MCP server `link` asks: Please log in"), "{text}");
    assert!(text.contains("The editor could not show this question: no window"), "{text}");
}

#[test]
fn an_image_of_a_server_reaches_the_agent() {
    let place = Place::new();
    let tool = Tool::new("draw").with("annotations", json!({ "readOnlyHint": true }));
    let content = json!([{ "type": "image", "mimeType": "image/png", "data": PNG }]);
    let script = Script::new().tools([tool.result(&json!({ "content": content }))]);
    let (mut editor, session) = Editor::open(&place, &[place.stdio("art", &script)]);
    let (_, text) = editor.prompt(&session, &call("mcp__art__draw", &json!({})));
    assert!(!text.contains("failed") && text.contains("image"), "{text}");
}
