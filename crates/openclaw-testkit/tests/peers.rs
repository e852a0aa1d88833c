//! The third-party servers: they are installed, and support the expected versions.
//!
//! Python servers take a second to start, so each is started once for each era.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::process::{Command, Stdio};

use openclaw_testkit::{Peer, Peers, StdioClient};
use serde_json::{Value, json};

fn start(peer: &Peer) -> StdioClient {
    StdioClient::run(peer.command().stderr(Stdio::null()))
}

fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "testkit", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}
    });
    params
}

/// Returns the number of tools in a list.
fn tools(answer: &Value) -> usize {
    answer["result"]["tools"].as_array().map_or(0, Vec::len)
}

#[test]
fn servers_of_the_first_typescript_sdk_have_no_discovery_and_accept_a_handshake_after_it() {
    let (peers, folder) = (Peers::find(), tempfile::tempdir().unwrap());
    for (peer, version, count) in [
        (peers.everything(), "2025-11-25", 13),
        (peers.everything_2024(), "2024-11-05", 6),
        (peers.filesystem(folder.path()), "2025-11-25", 14),
        (peers.memory(&folder.path().join("memory")), "2025-11-25", 9),
    ] {
        let mut client = start(&peer);
        let discovered = client.request("server/discover", &modern(json!({})));
        assert_eq!(discovered["error"]["code"], -32601, "{peer:?}");
        let answer = client.initialize("2025-11-25");
        assert_eq!(answer["result"]["protocolVersion"], version, "{peer:?}");
        assert_eq!(tools(&client.request("tools/list", &json!({}))), count, "{peer:?}");
    }
}

/// So a host must not send `server/discover` and, after a timeout, `initialize`: a server that was
/// merely slow to start would reject it.
#[test]
fn servers_of_the_second_python_sdk_are_discovered_and_reject_a_handshake_after_it() {
    let (peers, folder) = (Peers::find(), tempfile::tempdir().unwrap());
    let made = Command::new("git").args(["init", "--quiet"]).arg(folder.path()).status();
    assert!(made.unwrap().success());
    for (peer, count) in [(peers.time(), 2), (peers.git(folder.path()), 12)] {
        let mut client = start(&peer);
        let discovered = client.request("server/discover", &modern(json!({})));
        assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]), "{peer:?}");
        assert_eq!(client.initialize("2025-11-25")["error"]["code"], -32022, "{peer:?}");
        assert_eq!(tools(&client.request("tools/list", &modern(json!({})))), count, "{peer:?}");
    }
}

#[test]
#[should_panic(expected = "run `cargo xtask peers`")]
fn the_error_for_a_missing_server_says_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    Peers::in_folder(folder.path()).everything();
}
