//! `chat`, `agent`, `sessions`, `status` and `gateway` as processes: pipes, signals, a gateway.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use common::gateway::RunningGateway;
use common::{openclaw, run_with, signal};

/// A generous timeout: the machine may be busy.
const LONG: Duration = Duration::from_secs(120);

fn run(state: &Path, args: &[&str]) -> Output {
    openclaw(state, args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command, and returns the JSON on its stdout.
fn json(state: &Path, args: &[&str]) -> Value {
    serde_json::from_slice(&run(state, args).stdout).unwrap()
}

/// Starts a gateway, and waits until it listens.
fn gateway(state: &Path) -> RunningGateway {
    RunningGateway::start(openclaw(state, &["gateway", "run", "--port", "0"]), state)
}

#[test]
fn each_line_of_a_pipe_is_a_message() {
    let state = tempfile::tempdir().unwrap();
    let input = b"add 2 and 3\n\necho hello\n/exit\necho never\n";
    let output = run_with(openclaw(state.path(), &["chat"]), input);
    let text = said(&output);
    assert!(text.contains("mcp_demo_add(a=2, b=3) → 5"), "{text}");
    assert!(text.contains("`mcp_demo_add` returned: 5"), "{text}");
    assert!(text.contains("`mcp_demo_echo` returned: hello"), "{text}");
    assert!(!text.contains("never"), "{text}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_turn_that_takes_too_long_times_out() {
    let state = tempfile::tempdir().unwrap();
    let message = r#"/call mcp_demo_count {"to": 1000, "pause_ms": 1000}"#;
    let args = ["agent", "--json", "--timeout", "3000", "--message", message];
    let output = run(state.path(), &args);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &answer["ok"]), (Some(5), &false.into()), "{answer}");
    assert_eq!(answer["error"], "timed out after 3000 ms");
}

#[test]
fn main_is_short_for_the_main_conversation() {
    let state = tempfile::tempdir().unwrap();
    let args = ["agent", "--json", "--message", "add 2 and 3", "--session", "main"];
    let answer = json(state.path(), &args);
    assert_eq!(answer["sessionKey"], "agent:main:main");
    let [short, whole] = ["main", "agent:main:main"].map(|key| {
        let shown = run(state.path(), &["sessions", "show", key]);
        assert_eq!(shown.status.code(), Some(0));
        said(&shown)
    });
    assert_eq!(short, whole);
}

#[test]
fn sigterm_during_a_turn_cancels_the_turn_and_exits_the_chat() {
    let state = tempfile::tempdir().unwrap();
    let _gateway = gateway(state.path());
    let mut child = openclaw(state.path(), &["chat"]).stdin(Stdio::piped()).spawn().unwrap();
    let message = b"/call mcp_demo_count {\"to\": 1000, \"pause_ms\": 1000}\n";
    child.stdin.as_mut().unwrap().write_all(message).unwrap();
    let is = |status: &str| {
        let listed = json(state.path(), &["sessions", "list", "--json"]);
        listed["sessions"][0]["status"] == status
    };
    assert!((0..500).any(|_| is("running")), "the turn began");
    signal(child.id(), Signal::SIGTERM);
    let output = child.wait_with_output().unwrap();
    let words = format!("{}{}", said(&output), errors(&output));
    assert!(!words.contains("Ctrl-C"), "{words}");
    assert_eq!(output.status.code(), Some(130), "{words}");
    assert!((0..500).any(|_| is("done")), "the turn ended");
}

#[test]
fn a_gateway_serves_front_ends_and_stops_when_asked() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = gateway(state.path());
    let status = json(state.path(), &["gateway", "status", "--json"]);
    assert_eq!((&status["running"], &status["pid"]), (&true.into(), &gateway.child.id().into()));

    let answer = run(state.path(), &["agent", "--message", "add 2 and 3"]);
    assert_eq!(said(&answer), "`mcp_demo_add` returned: 5\n");

    let second = run(state.path(), &["gateway", "run", "--port", "0"]);
    let words = errors(&second);
    assert!(words.contains("a gateway is already running"), "{words}");
    assert_eq!(second.status.code(), Some(3));

    let stopped = run(state.path(), &["gateway", "stop"]);
    assert!(said(&stopped).contains("gateway stopped (PID "), "{}", said(&stopped));
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    assert_eq!(run(state.path(), &["gateway", "status"]).status.code(), Some(3));
}

#[test]
fn a_gateway_that_is_stopping_is_waited_for() {
    let state = tempfile::tempdir().unwrap();
    let settings = r#"{ gateway: { shutdownGraceMs: 3000 },
        agents: { defaults: { approval: { fallback: "allow" } } } }"#;
    std::fs::write(state.path().join("openclaw.json"), settings).unwrap();
    let mut gateway = gateway(state.path());
    let message = r#"/call exec {"command": "echo begun > begun; sleep 60"}"#;
    let mut agent = openclaw(state.path(), &["agent", "--message", message])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = state.path().join("workspace/begun");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !begun.exists() {
        assert!(Instant::now() < deadline, "the call began");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut first = openclaw(state.path(), &["gateway", "stop"]).spawn().unwrap();
    let is_stopping = |_| {
        let status = json(state.path(), &["gateway", "status", "--json"]);
        status["stopping"] == true
    };
    assert!((0..100).any(is_stopping), "its turn delays the end");
    let second = run(state.path(), &["gateway", "stop"]);
    let words = format!("{}{}", said(&second), errors(&second));
    assert!(second.status.success(), "{words}");
    assert!(first.wait().unwrap().success());
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    assert_eq!(run(state.path(), &["gateway", "status"]).status.code(), Some(3));
    agent.wait().unwrap();
}

#[test]
fn a_port_in_use_is_reported() {
    let state = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = run(state.path(), &["gateway", "run", "--port", &port]);
    let words = errors(&output);
    assert!(words.contains(&format!("port {port} on 127.0.0.1 is in use")), "{words}");
    assert_eq!(output.status.code(), Some(3));
}

/// Fails at start-up (C3).
#[test]
fn nothing_starts_without_a_server_that_is_required() {
    let state = tempfile::tempdir().unwrap();
    let config = r#"{ "mcp": { "servers": {
        "must": { "command": "/no/such/program", "required": true },
        "may": { "command": "/no/such/program" }
    } } }"#;
    std::fs::write(state.path().join("openclaw.json"), config).unwrap();
    for args in [&["gateway", "run", "--port", "0"][..], &["agent", "--message", "hello"]] {
        let output = run(state.path(), args);
        let words = errors(&output);
        assert!(words.contains("required servers are not ready: must\n"), "{args:?}: {words}");
        assert_eq!(output.status.code(), Some(3), "{args:?}");
    }
}

#[test]
fn a_gateway_exits_with_success_on_sigterm() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = gateway(state.path());
    signal(gateway.child.id(), Signal::SIGTERM);
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_front_end_does_not_wait_for_a_gateway_that_was_killed() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = gateway(state.path());
    let message = r#"/call mcp_demo_count {"to": 1000, "pause_ms": 1000}"#;
    let child = openclaw(state.path(), &["agent", "--message", message]).spawn().unwrap();
    // The turn has started as soon as the gateway lists a conversation.
    let has_begun = || {
        let listed = json(state.path(), &["sessions", "list", "--json"]);
        listed["count"].as_u64() >= Some(1)
    };
    let begun = Instant::now();
    while !has_begun() {
        assert!(begun.elapsed() < LONG, "the turn never started");
    }
    gateway.child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let words = errors(&output);
    assert!(!output.status.success() && words.contains("error: "), "{words}");
}

#[test]
fn an_unknown_command_is_not_sent_to_the_model() {
    let state = tempfile::tempdir().unwrap();
    let input = b"/sesions\n/mcp servers\n//echo hello\n";
    let output = run_with(openclaw(state.path(), &["chat", "--session", "main"]), input);
    let words = errors(&output);
    assert!(words.contains("unknown command `/sesions`"), "{words}");
    assert!(words.contains("did you mean `/sessions`?"), "{words}");
    assert!(said(&output).contains("MCP Servers (1 configured)"), "{}", said(&output));
    let history = run(state.path(), &["sessions", "show", "agent:main:main"]);
    assert!(said(&history).contains("/echo hello"), "it is sent to the model: {}", said(&history));
    assert!(!said(&history).contains("/sesions"), "{}", said(&history));
    assert_eq!(output.status.code(), Some(1));
}

/// The number of stored conversations.
fn conversations(state: &Path) -> u64 {
    json(state, &["sessions", "list", "--json"])["count"].as_u64().unwrap()
}

#[test]
fn a_chat_starts_a_new_conversation_unless_told_otherwise() {
    let state = tempfile::tempdir().unwrap();
    let chat = |args: &[&str]| {
        let output = run(state.path(), &[&["chat"], args].concat());
        let words = errors(&output);
        (output.status.code(), said(&output), words)
    };
    let (exit, _, words) = chat(&["--continue", "echo hello"]);
    assert_eq!(exit, Some(1), "{words}");
    assert!(words.contains("no session to continue"), "{words}");

    let (exit, text, words) = chat(&["add 2 and 3"]);
    assert_eq!(exit, Some(0), "{words}");
    assert!(text.contains("`mcp_demo_add` returned: 5"), "{text}");
    assert_eq!(conversations(state.path()), 1);
    assert_eq!(chat(&["-c", "echo again"]).0, Some(0));
    assert_eq!(conversations(state.path()), 1);
    assert_eq!(chat(&["echo other"]).0, Some(0));
    assert_eq!(conversations(state.path()), 2);

    let listed = said(&run(state.path(), &["sessions", "list"]));
    let first = listed.lines().find(|line| line.contains("add 2 and 3")).unwrap();
    let key = first.split_whitespace().next().unwrap();
    assert_eq!(chat(&["--resume", key, "echo there"]).0, Some(0));
    assert!(said(&run(state.path(), &["sessions", "show", key])).contains("echo there"));
    let (exit, _, words) = chat(&["--resume", "typo"]);
    assert!(exit == Some(1) && words.contains("no session `typo`"), "{words}");
    let (exit, _, words) = chat(&["--resume"]);
    assert!(exit == Some(2) && words.contains("use `--resume KEY`"), "{words}");
    let (exit, _, words) = chat(&["--model", "nope", "hello"]);
    assert!(exit == Some(2) && words.contains("unknown model `nope`"), "{words}");
    assert!(words.contains("configured: offline"), "{words}");
    assert_eq!(chat(&["--model", "off", "echo hello"]).0, Some(0));
}

#[test]
fn commands_with_missing_or_unknown_arguments_say_so_and_change_nothing() {
    let state = tempfile::tempdir().unwrap();
    let input = b"/call\n/session typo\n/resume\n/usage\n/new plans\necho hello\n/tools add\n\
                  /tools mcp_manage\n/new plans\n/compact\n/usage\n";
    let output = run_with(openclaw(state.path(), &["chat"]), input);
    let (text, words) = (said(&output), errors(&output));
    assert!(words.contains("`/call` needs a tool"), "{words}");
    assert!(words.contains("no session `typo`"), "{words}");
    assert!(words.contains("use `/session KEY`"), "{words}");
    assert!(text.contains("mcp_demo_add") && !text.contains("mcp_demo_echo  "), "{text}");
    assert!(!text.contains("[MCP server"), "the heading names the server: {text}");
    assert!(text.contains("only when the user asks for it."), "a pipe gets the whole text: {text}");
    assert!(text.contains("No tokens were used in this session yet."), "{text}");
    assert!(words.contains("there is a session `plans` already"), "{words}");
    assert!(text.contains("The conversation was summarized"), "{text}");
    assert!(text.contains("offline: ") && text.contains("tokens in"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(conversations(state.path()), 1, "only `plans`");
}

#[test]
fn a_named_configuration_is_used_even_if_a_gateway_is_running() {
    let state = tempfile::tempdir().unwrap();
    let gateway = gateway(state.path());
    let ask = |file: &Path| {
        run(
            state.path(),
            &["--config", file.to_str().unwrap(), "agent", "--message", "add 2 and 3"],
        )
    };
    let broken = state.path().join("broken.json");
    std::fs::write(&broken, "{ nonsense: true").unwrap();
    assert_eq!(ask(&broken).status.code(), Some(78));
    let other = state.path().join("other.json");
    std::fs::write(&other, "{ agents: { defaults: { model: \"offline\" } } }").unwrap();
    let answer = ask(&other);
    let words = errors(&answer);
    assert!(words.contains("not using the gateway (PID "), "{words}");
    assert!(words.contains("): it uses the configuration"), "{words}");
    assert!(!said(&answer).contains("mcp_demo_add"), "it has no demo server: {}", said(&answer));
    drop(gateway);
}

#[test]
fn a_gateway_killed_during_a_turn_is_reported_by_the_exit_code() {
    let state = tempfile::tempdir().unwrap();
    let mut gateway = gateway(state.path());
    let message = r#"/call mcp_demo_count {"to": 1000, "pause_ms": 1000}"#;
    let args = ["agent", "--session", "agent:main:long", "--message", message];
    let child = openclaw(state.path(), &args).spawn().unwrap();
    // The call is in the history as soon as it is made.
    let is_called = || {
        said(&run(state.path(), &["sessions", "show", "agent:main:long"]))
            .contains("mcp_demo_count")
    };
    assert!((0..100).any(|_| is_called()), "the turn never started");
    gateway.child.kill().unwrap();
    gateway.child.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    let words = errors(&output);
    assert_eq!(output.status.code(), Some(3), "{words}");
    assert!(words.contains("the connection to the gateway was lost"), "{words}");
}

#[test]
fn status_shows_the_servers_as_a_table_and_programs_get_checks() {
    let state = tempfile::tempdir().unwrap();
    let table = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        let head = lines.iter().position(|line| *line == "MCP Servers (1 configured)");
        let head = head.unwrap_or_else(|| panic!("{text}"));
        assert!(lines[head + 1].starts_with("───"), "{text}");
        assert!(lines[head + 2].starts_with("  demo") && lines[head + 2].contains("stdio://"));
        lines[head + 3].trim().to_owned()
    };
    let idle = table(&said(&run(state.path(), &["status"])));
    assert_eq!(idle, "Status: Idle (starts on first use) | Auth: None | Tools: 0");
    let status = json(state.path(), &["status", "--json"]);
    let sections = status["sections"].as_array().unwrap();
    let servers = sections.iter().find(|section| section["name"] == "Servers").unwrap();
    assert_eq!(
        servers["checks"][0]["what"],
        "demo: configured; run `openclaw mcp servers` to start it"
    );

    let _gateway = gateway(state.path());
    // The server is running once an agent has used a tool.
    run(state.path(), &["agent", "--message", "add 2 and 3"]);
    let ready = table(&said(&run(state.path(), &["status"])));
    assert!(ready.starts_with("Status: Running (PID "), "{ready}");
}

#[test]
fn a_model_without_its_api_key_is_a_problem() {
    let state = tempfile::tempdir().unwrap();
    let config = r#"{ agents: { defaults: { model: "anthropic/some" } },
        models: { providers: { anthropic: { apiKey: "secret://env/A_KEY_THAT_NOBODY_SETS" } } } }"#;
    std::fs::write(state.path().join("openclaw.json"), config).unwrap();
    let output = run(state.path(), &["status"]);
    let text = said(&output);
    assert!(text.contains("✗ main: anthropic/some"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    let set =
        openclaw(state.path(), &["status"]).env("A_KEY_THAT_NOBODY_SETS", "k3y-of-a-test").output();
    let text = said(&set.unwrap());
    assert!(text.contains("✓ main: anthropic/some"), "{text}");
}

#[test]
fn a_message_has_one_limit_wherever_it_comes_from() {
    let state = tempfile::tempdir().unwrap();
    let limit = 4 * 1024 * 1024;
    for size in [limit + 1, limit * 5] {
        let command = openclaw(state.path(), &["agent", "--message", "-"]);
        let output = run_with(command, &vec![b'x'; size]);
        let told = errors(&output);
        assert!(told.contains("the message is longer than 4 MB"), "{told}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn times_of_conversations_are_whole_numbers() {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(run(state.path(), &["agent", "--message", "add 2 and 3"]).status.code(), Some(0));
    let listed = said(&run(state.path(), &["sessions", "list", "--json"]));
    assert!(listed.contains("\"createdAt\":"), "{listed}");
    let times = listed.lines().filter(|line| line.contains("At\":"));
    times.for_each(|line| assert!(!line.contains('.'), "{line}"));
}

#[test]
fn a_rejected_reload_is_logged_with_file_and_line() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("openclaw.json");
    std::fs::write(&file, "{}").unwrap();
    let mut child =
        openclaw(state.path(), &["gateway", "run", "--bind", "loopback", "--port", "0"])
            .spawn()
            .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let gateway = RunningGateway::of(child, state.path());
    std::fs::write(&file, "{\n  agents {} }").unwrap();
    let mut lines = stderr.lines().map(Result::unwrap);
    let told = lines.find(|line| line.contains("configuration rejected")).unwrap();
    assert!(told.contains("openclaw.json:2:") && !told.contains("key="), "{told}");
    drop(gateway);
}

#[test]
fn access_tokens_are_created_listed_and_revoked() {
    let state = tempfile::tempdir().unwrap();
    let token = |args: &[&str]| run(state.path(), &[&["gateway", "token"], args].concat());
    let created = token(&["create", "--name", "phone", "--scope", "read,operator.write"]);
    assert!(created.status.success(), "{created:?}");
    let secret = said(&created).trim().to_owned();
    assert!(secret.starts_with("oc_") && secret.len() == 67, "only the token is on stdout");
    let listed = said(&token(&["list"]));
    assert!(listed.contains("phone") && listed.contains("operator.read, operator.write"));
    assert!(!listed.contains(&secret) && !listed.contains(&secret[3..]), "{listed}");
    for (args, expected) in [
        (&["create", "--name", "phone", "--scope", "read"][..], "already exists"),
        (&["create", "--name", "a b", "--scope", "read"], "invalid token name"),
        (&["create", "--name", "x", "--scope", "everything"], "invalid value"),
        (&["revoke", "laptop"], "no token named `laptop`"),
    ] {
        let refused = token(args);
        let stderr = errors(&refused);
        assert_eq!(refused.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
    assert!(said(&token(&["revoke", "phone"])).contains("revoked"));
    assert!(said(&token(&["list"])).contains("No access tokens"));
}
