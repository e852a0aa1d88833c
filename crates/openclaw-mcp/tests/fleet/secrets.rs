//! Secrets of a server are not stored or shown (K3).

use openclaw_mcp::fleet::FleetSetup;
use openclaw_mcp::server::StorageFolders;
use openclaw_mcp::server::status::{AuthKind, ServerStatus};
use openclaw_mcp_client::log::ServerLog;
use openclaw_testkit::{Fault, On, Recording, Script, TestServer};
use serde_json::json;

use crate::support::{call, ready_with, servers, setup, setup_in};

const SECRET: &str = "sesame-open-4711";

/// Starts a server that has the secret in its environment as `TOKEN`, and returns its status after
/// the first attempt.
async fn status_of([command, flag, script]: [&str; 3], folders: StorageFolders) -> ServerStatus {
    let config = servers(json!({ "x": {
        "command": command,
        "args": [flag, script],
        "env": { "TOKEN": "secret://env/VAULTED" },
        "restartOnCrash": false,
        "timeout": 60_000,
    } }));
    let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("VAULTED", SECRET)];
    let setup = FleetSetup { folders, ..setup_in(variables.into_iter().collect()) };
    let (fleet, tools) = ready_with(&config, setup).await;
    let status = tools.statuses().remove(0);
    fleet.stop().await;
    status
}

#[tokio::test]
async fn a_secret_that_a_server_prints_is_redacted_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let folders = StorageFolders { catalogue: None, logs: Some(folder.path().to_owned()) };
    // It prints the secret to stdout and stderr after the first request.
    let script = "read line; printenv TOKEN >&2; printenv TOKEN; exit 3";
    let status = status_of(["sh", "-c", script], folders).await;
    let trouble = status.last_error.clone().unwrap();
    assert_eq!(trouble.last_lines, ["[REDACTED]"], "{trouble:?}");
    let message = &trouble.message;
    assert!(message.contains("not an MCP message: “[REDACTED]”"), "{message}");
    let shown = serde_json::to_string(&status).unwrap();
    assert!(!shown.contains(SECRET), "{shown}");
    let log = ServerLog::tail(folder.path(), "x", 1_000).unwrap().join("\n");
    assert!(log.contains("[REDACTED]") && log.contains("Failed"), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}

#[tokio::test]
async fn no_part_of_a_secret_is_left_where_a_message_is_truncated() {
    // It rejects everything, with a message that is truncated in the middle of the secret.
    let script = "\
import json, os, sys, time
for line in sys.stdin:
    error = {'code': 1, 'message': 'y' * 193 + os.environ['TOKEN']}
    request = json.loads(line)
    if 'id' in request:
        print(json.dumps({'jsonrpc': '2.0', 'id': request['id'], 'error': error}), flush=True)
time.sleep(1000)
";
    let status = status_of(["python3", "-c", script], StorageFolders::default()).await;
    let message = status.last_error.unwrap().message;
    assert!(message.contains("returned error 1: yyy"), "{message}");
    assert!(!message.contains("ses"), "{message}");
}

#[tokio::test]
async fn user_and_password_in_a_url_are_sent_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::at(folder.path().join("record"));
    // It echoes the credentials.
    let echo = Fault::status(500).body(format!("who is Basic dTpzZXNhbWUtb3Blbi00NzEx, {SECRET}?"));
    let script = Script::new().legacy().record(recording.path()).fault(echo.on(On::Call));
    let server = TestServer::http(&script);
    let url = server.url().replace("http://", &format!("http://u:{SECRET}@"));
    let state = folder.path().join("state");
    let mut setup = setup();
    setup.folders = StorageFolders { catalogue: Some(state.clone()), logs: Some(state.clone()) };
    let (fleet, tools) =
        ready_with(&servers(json!({ "x": { "url": url, "timeout": 60_000 } })), setup).await;
    let status = tools.statuses().remove(0);
    assert_eq!(status.auth, AuthKind::Header);
    let outcome = call(&tools, "mcp_x_echo", json!({ "text": "a" })).await;
    fleet.stop().await;

    let sent = recording.http("POST").into_iter().find(|it| it["body"]["method"] == "tools/call");
    let sent = sent.unwrap();
    assert_eq!(sent["headers"]["authorization"], "Basic dTpzZXNhbWUtb3Blbi00NzEx", "{sent}");
    let kept = std::fs::read_dir(&state).unwrap();
    let kept = kept.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let kept: String = kept.collect();
    assert!(!kept.is_empty());
    let shown = serde_json::to_string(&status).unwrap();
    for text in [&kept, &shown, &outcome.rendered()] {
        assert!(!text.contains(SECRET) && !text.contains("dTpzZXNhbW"), "{text}");
    }
    assert!(outcome.rendered().contains("[REDACTED]"), "{}", outcome.rendered());
}
