//! How a gateway is named: options, configuration, token, certificate.

use std::process::Output;

use serde_json::{Value, json};

use crate::editor::Place;
use crate::forged::{Forged, Settings, TOKEN};
use crate::mcp_client;
use crate::{run, run_with, stderr, stdout};

const UNAVAILABLE: i32 = 3;
const USAGE: i32 = 2;
const CONFIG: i32 = 78;

fn token_file(place: &Place) -> String {
    let file = place.path("token.txt");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A configuration with this `gateway.remote`.
fn remote(remote: Value) -> Value {
    json!({ "gateway": { "mode": "remote", "remote": remote }, "mcp": { "servers": {} } })
}

/// Asserts that the gateway has answered the message `hi`.
fn assert_answered(output: &Output) {
    assert_eq!(stdout(output), "You said: hi\n", "{}", stderr(output));
}

#[test]
fn every_way_to_give_the_token_works() {
    let (gateway, place) = (Forged::start(), Place::new());
    let file = token_file(&place);
    let say = ["agent", "--message", "hi", "--gateway", &gateway.url];
    for more in [["--token", TOKEN], ["--token-file", &file]] {
        assert_answered(&run(&place, &[&say[..], &more].concat()));
    }
    assert_answered(&run_with(&place, &say, &[("OPENCLAW_GATEWAY_TOKEN", TOKEN)]));
    let configured = Place::with(&remote(json!({ "url": gateway.url, "token": TOKEN })));
    assert_answered(&run(&configured, &["agent", "--message", "hi"]));
    // The token of the options comes first, that of the environment last.
    let output = run(&configured, &["agent", "--message", "hi", "--token", "wrong"]);
    assert_eq!(output.status.code(), Some(UNAVAILABLE));
    let wrong = [("OPENCLAW_GATEWAY_TOKEN", "wrong")];
    assert_answered(&run_with(&configured, &["agent", "--message", "hi"], &wrong));
    let connected = gateway.last_operator();
    assert!(connected["device"].is_null(), "no device on this machine");
    let caps = connected["caps"].as_array().unwrap();
    assert!(!caps.contains(&json!("approvals")), "no user can approve anything: {caps:?}");
}

#[test]
fn chat_sessions_and_status_use_the_named_gateway() {
    let gateway = Forged::start();
    let place = Place::with(&remote(json!({ "url": gateway.url, "token": TOKEN })));
    let output = run(&place, &["chat", "hello there"]);
    assert_eq!(stdout(&output), "You said: hello there\n", "{}", stderr(&output));
    let output = run(&place, &["sessions", "list", "--json"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed["sessions"], json!([]));
    let output = run(&place, &["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["gateway"]["version"], "2026.9.6", "{status}");
    assert_eq!(status["gateway"]["hasMcp"], false);
    assert_eq!(status["gateway"]["agents"][0]["model"], "far/m");
    let output = run(&place, &["status"]);
    assert!(stdout(&output).contains("version 2026.9.6: 1 agent"), "{}", stdout(&output));
    // What the gateway lacks is named; servers are those of this machine.
    let output = run(&place, &["approvals", "list"]);
    assert!(stderr(&output).contains("approvals.rules"), "{}", stderr(&output));
    let output = run(&place, &["mcp", "servers"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // Nothing of this was asked of the gateway.
    assert!(gateway.requests("mcp.servers").len() <= 1);
}

#[test]
fn a_message_of_an_mcp_client_is_answered_by_the_named_gateway() {
    let gateway = Forged::start();
    let config = remote(json!({ "url": gateway.url, "token": TOKEN }));
    let place = Place::with(&config);
    let mut client = mcp_client::Client::start(&place, &[]);
    let result = client.order(json!({ "message": "hi" }));
    assert_eq!(result["text"], "You said: hi", "{result}");
    assert_eq!(client.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn a_pinned_certificate_is_accepted_and_no_other() {
    let (gateway, place) = (Forged::start_tls(), Place::new());
    let file = token_file(&place);
    let status = ["status", "--gateway", &gateway.url, "--token-file", &file];
    let output = run(&place, &[&status[..], &["--tls-fingerprint", &gateway.fingerprint]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let pinned = remote(json!({ "url": gateway.url, "token": TOKEN,
        "tlsFingerprint": gateway.fingerprint.to_uppercase() }));
    assert_answered(&run(&Place::with(&pinned), &["agent", "--message", "hi"]));
    // A self-signed certificate is not trusted by itself.
    let say = ["agent", "--message", "hi", "--gateway", &gateway.url, "--token-file", &file];
    let output = run(&place, &say);
    assert_eq!(output.status.code(), Some(UNAVAILABLE));
    assert!(stderr(&output).contains("--tls-fingerprint"), "{}", stderr(&output));
    let other = "ab".repeat(32);
    let output = run(&place, &[&say[..], &["--tls-fingerprint", &other]].concat());
    assert_eq!(output.status.code(), Some(UNAVAILABLE));
    let message = stderr(&output).replace([':', '\n', ' '], "").to_lowercase();
    assert!(message.contains(&gateway.fingerprint), "{}", stderr(&output));
    assert_eq!(gateway.connects().len(), 2, "the token was sent to the pinned gateway only");
}

#[test]
fn plaintext_leaves_this_machine_only_if_that_is_allowed() {
    let place = Place::new();
    // A documentation address: nothing is sent there without permission.
    let say = ["agent", "--message", "hi", "--gateway", "ws://192.0.2.1:9", "--token", TOKEN];
    let output = run(&place, &say);
    assert_eq!(output.status.code(), Some(UNAVAILABLE));
    let message = stderr(&output);
    assert!(message.contains("would not be encrypted"), "{message}");
    assert!(message.contains("--allow-plaintext"), "{message}");
    let config = remote(json!({ "url": "ws://192.0.2.1:9", "token": TOKEN }));
    let output = run(&Place::with(&config), &["config", "validate"]);
    assert_eq!(output.status.code(), Some(CONFIG));
    assert!(stderr(&output).contains("allowPlaintext"), "{}", stderr(&output));
}

#[test]
fn errors_say_what_to_do_and_show_no_token() {
    let (gateway, place) = (Forged::start(), Place::new());
    let agent = ["agent", "--message", "hi"];
    for (more, exit, words) in [
        (
            vec!["--gateway", &gateway.url, "--token", "wrong-token-987"],
            UNAVAILABLE,
            "--token-file",
        ),
        (vec!["--gateway", "http://x"], USAGE, "ws://host:port"),
        (vec!["--gateway", "ws://127.0.0.1:1"], UNAVAILABLE, "check that the gateway is running"),
        (vec!["--gateway", &gateway.url, "--token-file", "missing.txt"], 1, "missing.txt"),
        (vec!["--gateway", &gateway.url, "--tls-fingerprint", "x"], USAGE, "SHA-256"),
        (
            vec!["--gateway", &gateway.url, "--token", TOKEN, "--workspace", "."],
            USAGE,
            "--workspace",
        ),
    ] {
        let output = run(&place, &[&agent[..], &more].concat());
        assert_eq!(output.status.code(), Some(exit), "{more:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{more:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("wrong-token-987"), "{}", stderr(&output));
    }
    let output = run(&Place::with(&remote(json!({}))), &["config", "validate"]);
    assert_eq!(output.status.code(), Some(CONFIG));
    assert!(stderr(&output).contains("gateway.remote.url"), "{}", stderr(&output));
    let elsewhere = remote(json!({ "url": gateway.url, "token": TOKEN }));
    let output = run(&Place::with(&elsewhere), &["gateway", "run", "--port", "0"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("gateway.mode"), "{}", stderr(&output));
}

#[test]
fn a_gateway_that_is_starting_is_waited_for() {
    let gateway = Forged::start_with(Settings { is_starting: true, ..Settings::default() });
    assert_answered(&run(
        &Place::new(),
        &["agent", "--message", "hi", "--gateway", &gateway.url, "--token", TOKEN],
    ));
}
