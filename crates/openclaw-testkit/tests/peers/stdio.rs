//! Servers over stdio: their versions, their tools, and the response to `server/discover`.
//!
//! Python servers take a second to start, so each is started once for each era.

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
fn the_fastmcp_server_of_the_old_era_reports_progress_and_elicits_by_a_request() {
    let mut client = start(&Peers::find().fastmcp());
    let answer = client.initialize_with("2025-11-25", &json!({"elicitation": {}}));
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(tools(&client.request("tools/list", &json!({}))), 5);

    let call = json!({"name": "slow", "arguments": {}, "_meta": {"progressToken": 7}});
    let id = client.ask("tools/call", &call);
    let told: Vec<_> = std::iter::from_fn(|| Some(client.message()))
        .take_while(|message| message["id"] != id && !message.is_null())
        .map(|message| message["params"]["progressToken"].clone())
        .collect();
    assert_eq!(told, [7, 7, 7, 7]);

    let id = client.ask("tools/call", &json!({"name": "ask", "arguments": {}}));
    let question = client.message();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"action": "accept", "content": {"name": "Ada", "age": 36}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}).to_string());
    let result = client.message();
    assert_eq!(result["id"], id);
    assert_eq!(result["result"]["content"][0]["text"], "Ada is 36");
}

#[test]
fn the_fastmcp_server_of_the_new_era_elicits_by_a_result() {
    let mut client = start(&Peers::find().fastmcp());
    let discovered = client.request("server/discover", &modern(json!({})));
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
    let call = json!({"name": "ask_by_result", "arguments": {}});
    let question = &client.request("tools/call", &modern(call.clone()))["result"];
    assert_eq!(question["resultType"], "input_required");
    let mut again = call;
    again["requestState"] = question["requestState"].clone();
    again["inputResponses"] = json!({"colour": {"action": "accept", "content": {"colour": "red"}}});
    let result = client.request("tools/call", &modern(again));
    assert_eq!(result["result"]["content"][0]["text"], "red after the first round");
}
