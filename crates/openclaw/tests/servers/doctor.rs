//! The errors and hints of `mcp doctor`, `status`, `tools` and `add` for servers that do not work.

use std::fs;

use openclaw_testkit::processes::write_program;
use serde_json::{Value, json};

use crate::support::Place;

fn place(servers: &Value) -> Place {
    Place::configured(&json!({ "mcp": { "servers": servers } }))
}

/// Returns the output of `mcp doctor` for the server `x`, in one line.
fn examined(place: &Place) -> String {
    let (code, shown, complaints) = place.said(&["mcp", "doctor", "x"]);
    assert_eq!(code, 1, "{shown}{complaints}");
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_missing_interpreter_of_a_script_is_reported() {
    for (first_line, advice) in [
        ("#!/nonexistent/python -u\n", "install the interpreter"),
        ("#!/bin/sh\r\n", "the script has Windows line endings"),
    ] {
        let place = place(&json!({ "x": { "command": "./tool" } }));
        let tool = place.path("tool");
        write_program(&tool, first_line);
        let shown = examined(&place);
        assert!(shown.contains("interpreter `/") && shown.contains("/tool not found"), "{shown}");
        assert!(shown.contains(advice) && !shown.contains("✓ program:"), "{shown}");
    }
}

#[test]
fn the_hint_for_a_program_that_exits_silently_is_to_run_it_manually() {
    let args = ["-c", "exit 0", "--token", "op3n-s3same"];
    let shown = examined(&place(&json!({ "x": { "command": "sh", "args": args } })));
    assert!(shown.contains("run it manually: `sh -c 'exit 0' --token"), "{shown}");
    assert!(shown.contains("an argument such as `stdio`"), "{shown}");
    assert!(!shown.contains("mcp logs") && !shown.contains("s3same"), "{shown}");

    // With output on stderr, the hint names the log.
    let args = ["-c", "echo no >&2"];
    let shown = examined(&place(&json!({ "x": { "command": "sh", "args": args } })));
    assert!(shown.contains("| no") && shown.contains("`openclaw mcp logs x`"), "{shown}");
}

#[test]
fn a_missing_or_empty_ca_file_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap());
    for file in ["missing.pem", "empty.pem"] {
        let place = Place::new(&[]);
        fs::write(place.path("empty.pem"), "nothing").unwrap();
        let file = place.path(file);
        let entry = json!({ "url": url, "tls": { "caFile": file } });
        place.change(|config| config["mcp"]["servers"]["x"] = entry);
        let shown = examined(&place);
        assert!(shown.contains("→ correct `tls.caFile`"), "{shown}");
        assert!(shown.contains(file.to_str().unwrap()), "{shown}");
    }
}

#[test]
fn the_status_of_a_disabled_server_exits_with_unavailable() {
    let place = place(&json!({ "x": { "command": "sh", "enabled": false } }));
    let (code, shown, _) = place.said(&["mcp", "status", "x"]);
    assert_eq!(code, 3, "{shown}");
    assert!(shown.contains("Disabled"), "{shown}");
}

#[test]
fn unreadable_approvals_are_reported_with_a_hint() {
    let place = place(&json!({ "x": { "command": "sh" } }));
    let config = place.path("openclaw.json");
    let mut command = place.command(&["--config", config.to_str().unwrap(), "mcp", "tools"]);
    let output = command.env("OPENCLAW_STATE_DIR", "/dev/null/x").output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(complaints.contains("/dev/null/x/mcp/pins.json"), "{complaints}");
    assert!(complaints.contains("set `OPENCLAW_STATE_DIR` to a folder"), "{complaints}");
}

#[test]
fn adding_a_command_with_an_unset_variable_explains_how_to_escape_a_dollar_sign() {
    let place = place(&json!({}));
    let add =
        |name, script| place.said(&["mcp", "add", name, "--no-check", "--", "sh", "-c", script]);
    let (code, shown, _) = add("a", "echo $OPENCLAW_TEST_UNSET");
    assert_eq!(code, 0);
    assert!(shown.contains("write `$$` for a dollar sign"), "{shown}");
    assert!(
        shown.contains("`$$OPENCLAW_TEST_UNSET` passes `$OPENCLAW_TEST_UNSET` to the program"),
        "{shown}"
    );
    let (_, shown, _) = add("b", "echo $$OPENCLAW_TEST_UNSET");
    assert!(!shown.contains("for a dollar sign"), "{shown}");
}

#[test]
fn a_variable_that_such_a_server_reads_and_does_not_get_is_reported() {
    let entry = |more: Value| {
        let mut entry = json!({ "command": "sh", "args": ["-c", "exit 1", "kubectl-mcp"] });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        place(&json!({ "x": entry }))
    };
    let shown = |place: &Place| {
        let output = place
            .command(&["mcp", "doctor", "x"])
            .env("KUBECONFIG", "/tmp/k")
            .env("AWS_PROFILE", "work")
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = "KUBECONFIG is set in this shell, but not passed on to the server → run `openclaw config \
                set mcp.servers.x.inheritEnv '[\"KUBECONFIG\"]'` to pass it on";
    let without = shown(&entry(json!({})));
    assert!(without.contains(said) && !without.contains("AWS_PROFILE"), "{without}");
    for more in [json!({ "inheritEnv": ["KUBECONFIG"] }), json!({ "env": { "KUBECONFIG": "/a" } })]
    {
        let shown = shown(&entry(more));
        assert!(!shown.contains("KUBECONFIG"), "{shown}");
    }
}

#[test]
fn a_command_with_its_arguments_in_one_word_is_explained() {
    let shown = examined(&place(&json!({ "x": { "command": "npx -y some-server" } })));
    assert!(shown.contains("its arguments into `args`"), "{shown}");
}

#[test]
fn status_agrees_with_doctor_about_a_server_and_with_validate_about_a_model() {
    let place = place(&json!({ "x": { "command": "/nonexistent/server", "maxRestarts": 0 } }));
    let (code, shown, _) = place.said(&["status"]);
    assert_eq!(code, 0, "it was never tried: {shown}");
    examined(&place);
    let (code, shown, _) = place.said(&["status", "--json"]);
    assert_eq!(code, 1, "{shown}");
    let status: Value = serde_json::from_str(&shown).unwrap();
    let problem = &status["problems"][0];
    assert_eq!(problem["about"], "Servers", "{status}");
    let what = problem["what"].as_str().unwrap();
    assert!(what.starts_with("x: failed ") && what.contains("/nonexistent/server"), "{what}");
    let (_, shown, _) = place.said(&["status"]);
    assert!(!shown.contains("No problems found"), "{shown}");
    assert!(shown.contains("Status: Failed") && !shown.contains("Idle"), "{shown}");
    // A server with another command is another one.
    place.change(|config| {
        config["mcp"]["servers"]["x"] = json!({ "command": "/nonexistent/other" });
        config["agents"] = json!({ "defaults": { "model": "nowhere/model" } });
    });
    let (code, out, validated) = place.said(&["config", "validate"]);
    let validated = format!("{out}{validated}");
    assert_eq!(code, 1, "{validated}");
    assert!(validated.contains("error: unknown model provider `nowhere`"), "{validated}");
    assert!(validated.ends_with("1 error\n") && !validated.contains("warning"), "{validated}");
    let (code, shown, _) = place.said(&["config", "validate", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(
        (code, &shown["ok"], &shown["problems"][0]["verdict"], &shown["errors"]),
        (1, &json!(false), &json!("bad"), &json!(1))
    );
    let (_, shown, _) = place.said(&["status"]);
    assert!(shown.contains("openclaw.json: 1 agent, 1 error\n"), "as validate says: {shown}");
    for command in ["status", "doctor"] {
        let (code, shown, _) = place.said(&[command, "--json"]);
        let status: Value = serde_json::from_str(&shown).unwrap();
        let problems = status["problems"].to_string();
        assert_eq!(code, 1, "{command}: {shown}");
        assert!(problems.contains("unknown model provider `nowhere`"), "{command}: {problems}");
    }
}
