//! The binary as a process: pipes, logs, completions.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

fn openclaw(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_openclaw"));
    command.args(args).env("HOME", "/home/user").env_remove("OPENCLAW_LOG");
    command
}

fn run(args: &[&str]) -> Output {
    openclaw(args).output().unwrap()
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    for args in [["config", "schema"], ["completions", "bash"], ["config", "show"]] {
        let mut child =
            openclaw(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{args:?}: {said}");
        assert_eq!(said, "");
    }
}

#[test]
fn a_closed_pipe_does_not_turn_a_failure_into_a_success() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openclaw.json");
    fs::write(&file, "{ mcp: 1 }").unwrap();
    let file = file.to_str().unwrap();
    let mut child = openclaw(&["--json", "config", "validate", file])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(78));
}

#[test]
fn errors_are_json_with_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openclaw.json");
    fs::write(&file, "{ mcp: 1 }").unwrap();
    let file = file.to_str().unwrap();
    for (args, code) in [
        (&["--json", "--config", file, "config", "show"][..], 78),
        (&["--json", "--config", file, "secrets", "check"], 78),
        (&["--json", "secrets", "check", "secret://nope/x"], 2),
        (&["--json", "config", "validate", "nowhere.json"], 78),
        (&["--json", "config", "show", "--agent", "nobody"], 2),
    ] {
        let output = run(args);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["ok"], false, "{args:?}");
        assert!(answer["error"].is_string(), "{args:?}: {answer}");
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_not_utf8_does_not_panic() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.json"));
    fs::write(&file, "{}").unwrap();
    for args in [["config", "path"], ["config", "show"], ["config", "validate"]] {
        for json in [true, false] {
            let mut command = openclaw(&args);
            command.arg("--config").arg(&file);
            if json {
                command.arg("--json");
            }
            assert!(command.output().unwrap().status.success(), "{args:?}");
        }
        let output = openclaw(&args).env("OPENCLAW_CONFIG_PATH", &file).output().unwrap();
        assert!(output.status.success(), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = openclaw(&["config", "schema"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write the output"));
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("OPENCLAW_COMPLETE"), "{shell}: {text}");
    }
}

/// Returns the candidates for the last of these words, as a shell gets them.
fn completed(state: &Path, shell: &str, words: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_openclaw"))
        .arg("--")
        .arg("openclaw")
        .args(words)
        .env("OPENCLAW_COMPLETE", shell)
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("OPENCLAW_STATE_DIR", state)
        .env_remove("OPENCLAW_CONFIG_PATH")
        .output()
        .unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split(['\u{b}', '\n']).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

#[test]
fn names_are_completed_from_what_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let bash = |words: &[&str]| completed(state, "bash", words);
    // Before the server has run, only its name is known.
    assert_eq!(bash(&["mcp", "call", ""]), ["demo"]);
    assert_eq!(bash(&["mcp", "call", "demo", ""]), Vec::<String>::new());
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_openclaw"));
        command.env("OPENCLAW_STATE_DIR", state).env("OPENCLAW_KEYCHAIN", "off");
        let output = command.args(args).env_remove("OPENCLAW_CONFIG_PATH").output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    run(&["mcp", "call", "demo", "add", "a=1", "b=2"]);
    assert_eq!(bash(&["mcp", "call", "demo", ""]), ["echo", "add", "now", "count"]);
    assert_eq!(bash(&["mcp", "call", "demo", "add", "a=1", ""]), ["b="]);
    assert_eq!(bash(&["mcp", "call", "demo.a"]), ["demo.add"]);
    assert_eq!(bash(&["mcp", "call", "demo.add", ""]), ["a=", "b="]);
    assert_eq!(bash(&["mcp", "tools", "demo", "e"]), ["echo"]);
    assert_eq!(bash(&["mcp", "status", "d"]), ["demo"]);
    assert_eq!(bash(&["mcp", "prompt", "demo", ""]), ["summarise-notes"]);
    assert_eq!(bash(&["agent", "--agent", ""]), ["main"]);
    run(&["agent", "--session", "notes", "--message", "hello"]);
    for words in [["chat", "--resume", ""], ["chat", "--session", ""], ["sessions", "show", ""]] {
        assert_eq!(bash(&words), ["notes"], "{words:?}");
    }
    // A word that bash has split at its colon: only the last piece is replaced.
    assert_eq!(bash(&["mcp", "read", "demo", "demo", ":", ""]), ["//notes"]);
    let fish = completed(state, "fish", &["mcp", "call", "demo", "n"]);
    assert_eq!(fish, ["now\tReturns the time, as 2026-07-28T12:00:00Z."]);
    let zsh = completed(state, "zsh", &["mcp", "read", "demo", "demo"]);
    assert!(zsh[0].starts_with("demo\\://notes:"), "{zsh:?}");
}

#[test]
fn options_are_completed_only_after_a_dash() {
    let folder = tempfile::tempdir().unwrap();
    let bash = |words: &[&str]| completed(folder.path(), "bash", words);
    assert_eq!(bash(&["config", "validate", ""]).iter().find(|it| it.starts_with('-')), None);
    assert!(bash(&["config", "validate", "--st"]).contains(&"--strict".to_owned()));
    assert!(bash(&["mc"]).contains(&"mcp".to_owned()));
}

#[test]
fn colours_are_for_terminals() {
    for args in [["--help", "--json"], ["config", "show"], ["config", "nonsense"]] {
        let output = run(&args);
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn logs_are_json_objects_on_stderr_and_hold_no_secret() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("token");
    // A file that everyone can read causes a warning.
    fs::write(&secret, "sesame-open").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let reference = format!("secret://file/{}", secret.display());
    let output = run(&["--json", "--log-format", "json", "secrets", "check", &reference]);
    let logs = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<serde_json::Value> =
        logs.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["level"], "WARN", "{logs}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["secrets"][0]["ok"], true);
    assert!(!logs.contains("sesame-open") && !answer.to_string().contains("sesame-open"));
}

#[test]
fn plaintext_credentials_are_logged_once_at_level_warn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openclaw.json");
    let entry = r#"{ "command": "x", "lazy": true, "env": { "API_TOKEN": "hunter2hunter2" } }"#;
    fs::write(&file, format!(r#"{{ "mcp": {{ "servers": {{ "x": {entry} }} }} }}"#)).unwrap();
    let file = file.to_str().unwrap();
    for verb in ["servers", "list"] {
        for (level, times) in [(&["--log-level", "warn"][..], 1), (&[], 0)] {
            let args = [&["--config", file, "mcp", verb], level].concat();
            let output = openclaw(&args).env("OPENCLAW_STATE_DIR", folder.path()).output().unwrap();
            let logs = String::from_utf8(output.stderr).unwrap();
            assert_eq!(logs.matches("plaintext credentials").count(), times, "{args:?}: {logs}");
            assert!(!logs.contains("hunter2"), "{logs}");
        }
    }
}

/// Starts the demo server, and returns it and its stdin.
fn demo_server() -> (Child, ChildStdin) {
    let mut child = openclaw(&["demo-server"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

#[test]
fn the_demo_server_answers_and_exits_when_stdin_closes() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let (mut child, mut input) = demo_server();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |message: serde_json::Value| -> serde_json::Value {
        writeln!(input, "{message}").unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    let hello = serde_json::json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let answer = ask(serde_json::json!(
        { "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }
    ));
    assert_eq!(answer["result"]["serverInfo"]["name"], "openclaw-demo");
    let params = serde_json::json!({ "name": "add", "arguments": { "a": 1, "b": 2 } });
    let answer = ask(serde_json::json!(
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }
    ));
    assert_eq!(answer["result"]["content"][0]["text"], "3");
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_client_that_does_not_speak_mcp_is_reported() {
    use std::io::Write as _;
    let (child, mut input) = demo_server();
    writeln!(input, r#"{{ "jsonrpc": "2.0", "method": "notifications/nonsense" }}"#).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    // As every server of ours does: what comes before the handshake is ignored, with a warning.
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("ignored a message before the handshake"), "{said}");
}

/// Kills the process on drop, also if the test fails.
#[cfg(unix)]
struct Left(Child);

#[cfg(unix)]
impl Drop for Left {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(unix)]
#[test]
fn the_guard_ends_what_a_killed_program_left_behind() {
    use std::io::Write as _;
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    let mut sleeper = Left(Command::new("sleep").arg("1000").process_group(0).spawn().unwrap());
    // What it should end is in a record that both processes hold.
    let mut record = tempfile::tempfile().unwrap();
    let mut guard = openclaw(&["__guard"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(record.try_clone().unwrap())
        .spawn()
        .unwrap();
    let pipe = guard.stdin.take().unwrap();
    writeln!(record, "+{}", sleeper.0.id()).unwrap();
    assert!(sleeper.0.try_wait().unwrap().is_none());
    // A closed pipe means that the guarded process is gone.
    drop(pipe);
    assert_eq!(sleeper.0.wait().unwrap().signal(), Some(15));
    assert!(guard.wait().unwrap().success());
}
