//! A command for each exit code, without and with `--json`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::ended;
use serde_json::{Value, json};

/// Runs the binary in a folder that is also its home.
fn openclaw(place: &Path, args: &[&str]) -> Command {
    let mut command = common::openclaw(&place.join("state"), args);
    command.current_dir(place).env("HOME", place);
    command
}

/// Runs it, and returns the exit code, stdout and stderr.
fn run(place: &Path, args: &[&str]) -> (i32, String, String) {
    ended(openclaw(place, args).output().unwrap())
}

/// Creates a folder with configurations: with errors, with a required server that does not start,
/// with a denied tool, and with tools that need approval.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_openclaw");
    let tools = json!({ "deny": ["now"] });
    let denied = json!({ "command": program, "args": ["demo-server"], "tools": tools });
    let asks = json!({ "command": program, "args": ["demo-server"], "approval": "always" });
    let missing = json!({ "command": "no-such-program-anywhere", "required": true });
    for (file, config) in [
        ("broken.json", json!({ "mcp": 1 })),
        ("required.json", json!({ "mcp": { "servers": { "missing": missing } } })),
        ("denied.json", json!({ "mcp": { "servers": { "demo": denied } } })),
        ("asks.json", json!({ "mcp": { "servers": { "demo": asks } } })),
    ] {
        fs::write(place.path().join(file), config.to_string()).unwrap();
    }
    place
}

/// Errors that `main` prints: the exit code, its name in JSON, the command, the expected stderr.
const ERRORS: [(i32, &str, &[&str], &str); 7] = [
    (
        1,
        "failed",
        &["sessions", "show", "agent:main:none"],
        "error: no session `agent:main:none`\nhint: run `openclaw sessions list` to list them\n",
    ),
    (
        2,
        "usage",
        &["config", "show", "--agent", "nobody"],
        "error: unknown agent `nobody`\nhint: known agents: main\n",
    ),
    (
        2,
        "usage",
        &["agent", "--message", " "],
        "error: the message is empty\nhint: use `--message TEXT`, or `--message -` to read stdin\n",
    ),
    (
        2,
        "usage",
        &["--log-level", "loud", "config", "path"],
        "error: unknown log level `loud`\n\
         hint: use error, warn, info, debug, trace or off; per module: info,openclaw_mcp=debug\n",
    ),
    (
        3,
        "unavailable",
        &["--config", "required.json", "agent", "--message", "hello"],
        "error: required servers are not ready: missing\nhint: run `openclaw mcp doctor`\n",
    ),
    (
        78,
        "config",
        &["config", "validate", "nowhere.json"],
        "error: file not found: nowhere.json\n\
         hint: run `openclaw config path` to see which file is read\n",
    ),
    (
        1,
        "failed",
        &["--config", "denied.json", "gateway", "run", "--bind", "192.0.2.1", "--port", "0"],
        "",
    ),
];

#[test]
fn an_error_is_a_line_and_a_hint_and_with_json_one_object_with_the_same_text() {
    let place = place();
    for (code, name, args, words) in ERRORS {
        let (exit, stdout, stderr) = run(place.path(), args);
        assert_eq!((exit, stdout.as_str()), (code, ""), "{args:?}: {stderr}");
        if !words.is_empty() {
            assert_eq!(stderr, words, "{args:?}");
        }
        let args = [&["--json"], args].concat();
        let (exit, stdout, stderr_beside_json) = run(place.path(), &args);
        assert_eq!(exit, code, "{args:?}");
        assert_eq!(stderr_beside_json, stderr, "{args:?}");
        let answer: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!(name)), "{args:?}");
        let hint = answer["hint"].as_str();
        let hint = hint.map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
        let error = answer["error"].as_str().unwrap();
        assert_eq!(stderr, format!("error: {error}\n{hint}"), "{args:?}");
        if let Some(cause) = answer.get("cause") {
            assert!(error.ends_with(cause.as_str().unwrap()), "{answer}");
        }
    }
}

#[test]
fn a_usage_error_is_json_with_json() {
    let place = place();
    let (code, stdout, stderr) = run(place.path(), &["stauts"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.starts_with("error: unrecognized subcommand 'stauts'\n"), "{stderr}");
    let (code, stdout, stderr) = run(place.path(), &["--json", "stauts"]);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &answer["code"]), (2, &json!("usage")), "{stderr}");
    assert_eq!(answer["error"], "unrecognized subcommand 'stauts'");
    assert_eq!(answer["hint"], "a similar subcommand exists: 'status'");
    let missing = run(place.path(), &["agent", "--json"]);
    let answer: Value = serde_json::from_str(&missing.1).unwrap();
    let error = answer["error"].as_str().unwrap();
    assert_eq!(error, "the following required arguments were not provided: --message <TEXT>");
    // Arguments after `--` are not ours; help is not an error.
    let (code, stdout, _) = run(place.path(), &["stauts", "--", "--json"]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    let args = ["gateway", "--port", "1", "status"];
    let (code, _, stderr) = run(place.path(), &args);
    assert!(code == 2 && stderr.contains("`--port` and `--bind` must not be"), "{stderr}");
    let (code, stdout, stderr) = run(place.path(), &["--json", "--help"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("Usage: openclaw"), "{stdout}");
}

#[test]
fn a_configuration_with_errors_is_shown_as_diagnostics() {
    let place = place();
    let args = ["--config", "broken.json", "config", "show"];
    let (code, stdout, stderr) = run(place.path(), &args);
    assert_eq!((code, stdout.as_str()), (78, ""));
    assert!(stderr.contains("broken.json") && stderr.ends_with("1 error\n"), "{stderr}");
    let args = [&["--json"], &args[..]].concat();
    let (code, stdout, stderr) = run(place.path(), &args);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, stderr.as_str()), (78, ""));
    assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!("config")));
    assert_eq!(answer["error"], "the configuration has errors");
    assert_eq!(answer["diagnostics"].as_array().unwrap().len(), 1);
}

/// A result is printed whatever the exit code, and with `--json` nothing follows it on stdout.
#[test]
fn a_result_is_the_only_document_whatever_the_exit_code() {
    let place = place();
    let count = r#"/call mcp_demo_count {"to": 1000, "pause_ms": 1000}"#;
    for (code, args, field, words) in [
        (0, &["config", "path"][..], "path", ""),
        (1, &["secrets", "check", "secret://env/NOT_SET_ANYWHERE"], "secrets", ""),
        (3, &["gateway", "status"], "running", ""),
        (4, &["--config", "denied.json", "mcp", "call", "demo", "now"], "isError", "error: "),
        (
            4,
            &["--config", "asks.json", "agent", "--message", "add 2 and 3"],
            "calls",
            "error: the call `mcp_demo_add(a=2, b=3)` was denied: The call needs the user's approval",
        ),
        (
            5,
            &["agent", "--timeout", "3000", "--message", count],
            "runId",
            "error: timed out after 3000 ms\n",
        ),
    ] {
        let (exit, _, stderr) = run(place.path(), args);
        assert_eq!(exit, code, "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
        let args = [&["--json"], args].concat();
        let (exit, stdout, stderr) = run(place.path(), &args);
        assert_eq!(exit, code, "{args:?}: {stderr}");
        let answer: Value = serde_json::from_str(&stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {stdout}"));
        assert!(answer.get(field).is_some(), "{args:?}: {answer}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_command_prints_nothing() {
    use nix::sys::signal::Signal;
    for json in [&[][..], &["--json"]] {
        let place = place();
        let args = ["mcp", "call", "demo", "count", "to=1000", "pause_ms=1000"];
        let child = openclaw(place.path(), &[json, &args].concat()).spawn().unwrap();
        // The server starts after the program listens for signals.
        let log = place.path().join("state/logs/mcp-demo.log");
        openclaw_testkit::processes::wait_until(common::LONG, || log.exists());
        common::signal(child.id(), Signal::SIGINT);
        let (code, stdout, stderr) = ended(child.wait_with_output().unwrap());
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (130, "", ""), "{json:?}");
    }
}
