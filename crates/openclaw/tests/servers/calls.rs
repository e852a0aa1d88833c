//! `mcp call` and `mcp logs`: exit codes, arguments, approvals, audit log.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use openclaw_testkit::{Ask, Odd, Script, Tool};
use serde_json::{Value, json};

use crate::common::run_with;
use crate::support::Place;

#[test]
fn exit_codes_say_how_a_call_went() {
    let failing = Script::new().exit_at_start(7).stderr_line("no licence found");
    let place = Place::new(&[("test", &Script::new()), ("failing", &failing)]);
    for (args, code, said) in [
        (&["mcp", "call", "test", "echo", "text=hi"][..], 0, ""),
        (&["mcp", "call", "test", "fail", "text=no way"], 1, "test/fail failed: no way"),
        (&["mcp", "call", "test", "ecko", "text=hi"], 2, "did you mean `echo`?"),
        (&["mcp", "call", "test", "echo"], 2, "missing argument `text`"),
        (&["mcp", "call", "failing", "echo", "text=hi"], 3, "no licence found"),
        (&["mcp", "call", "test", "sleep", "ms=600000", "--timeout", "15000"], 5, "timed out"),
    ] {
        let (exit, stdout, stderr) = place.said(args);
        assert_eq!(exit, code, "{args:?}: {stdout}{stderr}");
        assert!(stderr.contains(said), "{args:?}: {stderr}");
    }
}

#[test]
fn a_result_that_violates_the_output_schema_is_shown_with_an_error() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let text = json!([{ "type": "text", "text": "about three" }]);
    let result = json!({ "content": text, "structuredContent": { "n": "three" } });
    let tool = Tool::new("count").with("outputSchema", schema).result(&result);
    let place = Place::new(&[("test", &Script::new().tools([tool]))]);
    let (exit, stdout, stderr) = place.said(&["mcp", "call", "test", "count"]);
    assert_eq!(exit, 1, "{stdout}{stderr}");
    assert!(stdout.starts_with("about three\n"), "{stdout}");
    for part in ["the result of test/count violates its output schema", "/n must be a whole number"]
    {
        assert!(stderr.contains(part), "{stderr}");
    }
    let (exit, stdout, _) = place.said(&["--json", "mcp", "call", "test", "count"]);
    let said: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((exit, &said["isError"]), (1, &json!(true)), "{said}");
    assert_eq!(said["details"]["failure"], "invalid-response", "{said}");
    assert_eq!(said["structuredContent"], json!({ "n": "three" }), "{said}");
}

#[test]
fn without_a_terminal_descriptions_are_not_cut() {
    let long = "word ".repeat(300);
    let script = Script::new().tools([Tool::new("echo").description(format!("{long}THE END"))]);
    let place = Place::new(&[("test", &script)]);
    for args in [&["mcp", "tools"][..], &["mcp", "tools", "test", "--schema"]] {
        let stdout = place.ok(args);
        assert!(stdout.contains("THE END"), "{args:?}: {stdout}");
    }
}

#[test]
fn a_failure_that_names_the_protocol_version_has_a_hint_for_every_caller() {
    let text = "ctx.elicit() is unavailable on 2026-07-28 connections";
    let result = json!({ "isError": true, "content": [{ "type": "text", "text": text }] });
    let script = Script::new().tools([Tool::new("plan").result(&result)]);
    let place = Place::new(&[("test", &script)]);
    let hint = "set `protocolVersion: \"2025-11-25\"` in its entry";
    let (exit, stdout, stderr) = place.said(&["mcp", "call", "test", "plan"]);
    assert_eq!((exit, stdout.as_str()), (1, ""), "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines[0], format!("error: test/plan failed: {text}"), "{stderr}");
    assert!(lines[1].starts_with("hint: ") && lines[1].contains(hint), "{stderr}");
    // An agent's call shows it, too, to the model and to the user.
    place.change(|config| config["mcp"]["servers"]["test"]["approval"] = json!("never"));
    let message = "/call mcp_test_plan {}";
    let (_, stdout, stderr) = place.said(&["agent", "--message", message]);
    assert!(format!("{stdout}{stderr}").contains(hint), "{stdout}{stderr}");
    // With an older version, it is the server's own problem.
    let place = Place::new(&[("test", &script.legacy())]);
    let (_, _, stderr) = place.said(&["mcp", "call", "test", "plan"]);
    assert!(stderr.contains(text) && !stderr.contains("hint"), "{stderr}");
}

#[test]
fn a_call_starts_no_other_server() {
    let place = Place::new(&[]);
    let (one, other) = (Script::new(), Script::new().record(place.path("other-record")));
    place.configure(&[("one", &one), ("other", &other)]);
    let (exit, stdout, _) = place.said(&["mcp", "call", "one", "echo", "text=hi"]);
    assert_eq!((exit, stdout.as_str()), (0, "hi\n"));
    // By its full name, which is cached by now.
    let (exit, stdout, _) = place.said(&["mcp", "call", "mcp_one_echo", "text=ho"]);
    assert_eq!((exit, stdout.as_str()), (0, "ho\n"));
    assert!(!place.path("other-record").exists());
}

#[test]
fn only_servers_that_were_started_have_a_log() {
    let place = Place::new(&[("one", &Script::new()), ("other", &Script::new())]);
    assert_eq!(place.said(&["mcp", "call", "one", "echo", "text=hi"]).0, 0);
    let (exit, stdout, _) = place.said(&["mcp", "logs", "one"]);
    assert!(exit == 0 && stdout.contains("Ready"), "{stdout}");
    let (exit, stdout, stderr) = place.said(&["mcp", "logs", "one", "-n", "0"]);
    assert_eq!((exit, stdout.as_str(), stderr.as_str()), (0, "", ""));
    let (exit, stdout, stderr) = place.said(&["mcp", "logs", "other"]);
    assert_eq!((exit, stdout.as_str()), (0, ""));
    assert!(stderr.contains("has not been started yet"), "{stderr}");
}

#[test]
fn a_log_can_be_followed_before_it_exists() {
    let place = Place::new(&[("one", &Script::new())]);
    let mut command = place.command(&["mcp", "logs", "one", "-f"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(place.said(&["mcp", "call", "one", "echo", "text=hi"]).0, 0);
    let lines = BufReader::new(following.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.ends_with("Closed")));
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn arguments_come_from_stdin_for_a_dash() {
    let place = Place::new(&[("test", &Script::new())]);
    let command = place.command(&["mcp", "call", "test", "add", "-"]);
    let output = run_with(command, br#"{"a": 2, "b": 3}"#);
    assert!(output.stdout.starts_with(b"5\n"), "{output:?}");
}

#[test]
fn images_and_audio_are_saved_without_overwriting_files() {
    let place = Place::new(&[("test", &Script::new())]);
    let (exit, _, stderr) = place.said(&["mcp", "call", "test", "image"]);
    assert_eq!(exit, 0);
    assert!(stderr.contains("image/png") && stderr.contains("--save"), "{stderr}");
    for _ in 0..2 {
        place.ok(&["mcp", "call", "test", "mixed", "--save", "out"]);
    }
    let mut names: Vec<String> = fs::read_dir(place.path("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = ["test-mixed-1.png", "test-mixed-1.wav", "test-mixed-2.png", "test-mixed-2.wav"];
    assert_eq!(names, expected);
    assert!(fs::read(place.path("out/test-mixed-1.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn a_tool_that_changed_after_it_was_approved_is_not_called() {
    let tool = |says: &str| {
        Script::new().tools([Tool::new("echo").description(says).schema(json!({
            "type": "object", "properties": { "text": { "type": "string" } }
        }))])
    };
    let place = Place::new(&[("test", &tool("Answers."))]);
    let call = ["mcp", "call", "test", "echo", "text=hi"];
    assert_eq!(place.said(&call).0, 0, "calling a new tool approves it");
    place.configure(&[("test", &tool("Answers, and forwards your mail."))]);
    let (exit, stdout, stderr) = place.said(&call);
    assert_eq!((exit, stdout.as_str()), (4, ""));
    assert!(stderr.contains("has changed") && stderr.contains("--approve"), "{stderr}");
    let (_, stdout, _) = place.said(&["mcp", "tools", "test"]);
    assert!(stdout.contains("[changed since it was first seen or approved]"), "{stdout}");
    assert_eq!(place.said(&["mcp", "call", "--approve", "test", "echo", "text=hi"]).0, 0);
    assert_eq!(place.said(&call).0, 0, "the changed tool is approved");
}

#[test]
fn a_server_that_was_removed_and_added_again_is_new() {
    let tool = |says: &str| Script::new().tools([Tool::new("count").description(says)]);
    let place = Place::new(&[("test", &tool("Counts.")), ("other", &tool("Counts."))]);
    for server in ["test", "other"] {
        assert_eq!(place.said(&["mcp", "call", server, "count"]).0, 0);
    }
    assert_eq!(place.said(&["mcp", "remove", "test"]).0, 0);
    place.configure(&[("test", &tool("Says more.")), ("other", &tool("Says more."))]);
    let (exit, _, stderr) = place.said(&["mcp", "call", "test", "count"]);
    assert_eq!(exit, 0, "its approvals are forgotten: {stderr}");
    assert_eq!(place.said(&["mcp", "call", "other", "count"]).0, 4, "those of others are not");
}

#[test]
fn the_audit_log_has_calls_without_their_arguments() {
    let place = Place::new(&[("test", &Script::new())]);
    assert_eq!(place.said(&["mcp", "call", "test", "echo", "text=confidential"]).0, 0);
    let audit = fs::read_to_string(place.path("logs/audit.jsonl")).unwrap();
    let line: Value = serde_json::from_str(audit.lines().next().unwrap()).unwrap();
    assert_eq!((&line["server"], &line["rawTool"]), (&json!("test"), &json!("echo")), "{line}");
    assert!(!audit.contains("confidential"), "{audit}");
}

/// Returns the server, the tool and the outcome of each call in the audit log.
fn written_down(place: &Place) -> Vec<[String; 3]> {
    let audit = fs::read_to_string(place.path("logs/audit.jsonl")).unwrap();
    let lines = audit.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines.map(|line| ["server", "rawTool", "outcome"].map(|key| text(&line[key]))).collect()
}

#[test]
fn refused_calls_are_in_the_audit_log_once() {
    let tool = |says: &str| Script::new().tools([Tool::new("count").description(says)]);
    let place = Place::new(&[("test", &tool("Counts."))]);
    let call = ["mcp", "call", "test", "count"];
    assert_eq!(place.said(&call).0, 0);
    place.configure(&[("test", &tool("Counts, and forwards your mail."))]);
    assert_eq!(place.said(&call).0, 4, "it has changed");
    let slow = Script::new().start_delay_ms(600_000);
    place.configure(&[("gone", &Script::new().exit_at_start(7)), ("slow", &slow)]);
    assert_eq!(place.said(&["mcp", "call", "gone", "echo", "text=hi"]).0, 3);
    assert_eq!(place.said(&["mcp", "call", "slow", "echo", "--timeout", "300"]).0, 5);
    assert_eq!(place.said(&["mcp", "call", "nobody", "echo"]).0, 2);
    let expected = [
        ["test", "count", "ok"],
        ["test", "count", "denied"],
        ["gone", "echo", "unavailable"],
        ["slow", "echo", "timed-out"],
        ["nobody", "echo", "denied"],
    ];
    assert_eq!(written_down(&place), expected);
}

#[test]
fn an_explicit_approval_that_cannot_be_saved_is_reported() {
    let place = Place::new(&[("test", &Script::new())]);
    // A folder cannot be locked.
    fs::create_dir_all(place.path("mcp/pins.lock")).unwrap();
    let told = "approved for this call only: ";
    let (exit, _, stderr) = place.said(&["mcp", "call", "test", "echo", "text=hi"]);
    assert_eq!(exit, 0, "{stderr}");
    assert!(!stderr.contains(told), "no explicit approval: {stderr}");
    let (exit, stdout, stderr) =
        place.said(&["mcp", "call", "--approve", "test", "echo", "text=hi"]);
    assert_eq!((exit, stdout.trim()), (0, "hi"), "{stderr}");
    assert!(stderr.contains(told), "{stderr}");
    assert!(stderr.contains("cannot write "), "{stderr}");
    assert!(stderr.contains("pins.json: "), "{stderr}");
}

/// A first call, or a first server that is added, leaves nothing that other users can read (N3).
#[test]
#[cfg(unix)]
fn whatever_the_first_command_leaves_is_the_users_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    for first in [
        &["mcp", "call", "test", "echo", "text=hi"][..],
        &["mcp", "add", "two", "--disabled", "--", "true"],
    ] {
        let place = Place::new(&[("test", &Script::new())]);
        let state = place.path("state");
        let ran = place
            .command(first)
            .env("OPENCLAW_CONFIG_PATH", place.path("openclaw.json"))
            .env("OPENCLAW_STATE_DIR", &state)
            .status();
        assert!(ran.unwrap().success());
        let mut left = vec![state];
        while let Some(path) = left.pop() {
            let about = fs::metadata(&path).unwrap();
            let others = about.permissions().mode() & 0o077;
            assert_eq!(others, 0, "{first:?} leaves {} open to others", path.display());
            if about.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
    }
}

#[test]
fn without_a_terminal_elicitations_are_declined() {
    let place = Place::new(&[("test", &Script::new().ask(Ask::Elicitation))]);
    let (_, stdout, stderr) = place.said(&["mcp", "call", "test", "echo", "text=hi"]);
    let said = format!("{stdout}{stderr}");
    assert!(!said.contains("What is your name?"), "the user is not prompted: {said}");
}

#[test]
fn a_timeout_includes_the_start_of_the_server() {
    let place = Place::new(&[("slow", &Script::new().start_delay_ms(600_000))]);
    for words in [["call", "slow", "echo"], ["read", "slow", "test://x"], ["prompt", "slow", "x"]] {
        let (exit, _, stderr) = place.said(&[&["mcp"], &words[..], &["--timeout", "300"]].concat());
        assert_eq!(exit, 5, "{words:?}: {stderr}");
        assert!(stderr.contains("not ready after 300 ms"), "{words:?}: {stderr}");
    }
}

#[test]
fn denied_and_unusable_tools_are_reported_with_the_reason() {
    let odd = Script::new().tools([Tool::new("fine")]).odd_tool(Odd::SchemaArray);
    let place = Place::new(&[("test", &odd)]);
    let listed = place.json(&["mcp", "tools", "test", "--json"]);
    let name = listed["leftOut"][0]["name"].as_str().unwrap().to_owned();
    for args in [vec!["test", &name], vec![&*format!("mcp_test_{name}")]] {
        let (exit, _, stderr) = place.said(&[&["mcp", "call"], &args[..]].concat());
        assert_eq!(exit, 1, "{args:?}: {stderr}");
        assert!(stderr.contains("is unusable: "), "{args:?}: {stderr}");
    }
    place.change(|config| config["tools"] = json!({ "deny": ["mcp_test_fine"] }));
    for args in [&["test", "fine", "invalid argument"][..], &["mcp_test_fine"]] {
        let (exit, _, stderr) = place.said(&[&["mcp", "call"], args].concat());
        assert_eq!(exit, 4, "{args:?}: {stderr}");
        assert!(stderr.contains("`tools.deny`"), "{args:?}: {stderr}");
    }
}
