//! Handshake, discovery, and requests without either.

use openclaw_testkit::{Discover, Script, StdioClient, VERSIONS};
use serde_json::{Value, json};

fn modern(version: &str) -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {}
    }})
}

#[test]
fn every_version_with_a_handshake_is_accepted_as_requested() {
    for version in &VERSIONS[..4] {
        let answer = StdioClient::start(&Script::new()).initialize(version);
        assert_eq!(answer["result"]["protocolVersion"], *version);
    }
}

#[test]
fn an_unknown_version_is_answered_with_the_latest_and_a_fixed_one_with_itself() {
    let answer = StdioClient::start(&Script::new()).initialize("1999-01-01");
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    let fixed = Script::new().answer_version("2031-01-01");
    let answer = StdioClient::start(&fixed).initialize("2025-11-25");
    assert_eq!(answer["result"]["protocolVersion"], "2031-01-01");
}

#[test]
fn a_rejected_version_is_an_error_and_an_older_one_works() {
    let mut client = StdioClient::start(&Script::new().reject_version("2025-11-25"));
    assert_eq!(client.initialize("2025-11-25")["error"]["code"], -32602);
    assert_eq!(client.initialize("2025-06-18")["result"]["protocolVersion"], "2025-06-18");
}

#[test]
fn discovery_is_answered_as_the_script_says() {
    let probe = |script: Script| {
        StdioClient::start(&script).request("server/discover", &modern("2026-07-28"))
    };
    let answer = probe(Script::new());
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["supportedVersions"], json!(VERSIONS));
    assert_eq!(probe(Script::new().legacy())["error"]["code"], -32601);
    assert_eq!(probe(Script::new().discover(Discover::InvalidParams))["error"]["code"], -32602);
    let answer = probe(Script::new().discover(Discover::UnsupportedVersion));
    assert_eq!(answer["error"]["data"]["supported"], json!(VERSIONS));
    assert_eq!(probe(Script::new().discover(Discover::DelayMs(5)))["result"]["ttlMs"], 0);
    assert!(probe(Script::new().discover(Discover::Crash)).is_null());
}

#[test]
fn a_silent_probe_leaves_the_server_usable() {
    let mut client = StdioClient::start(&Script::new().discover(Discover::Silence));
    client.ask("server/discover", &modern("2026-07-28"));
    assert_eq!(client.initialize("2025-11-25")["id"], 2);
}

#[test]
fn a_modern_request_needs_no_handshake_but_a_version_and_capabilities() {
    let mut client = StdioClient::start(&Script::new().modern());
    let answer = client.request("tools/list", &modern("2026-07-28"));
    assert_eq!(answer["result"]["cacheScope"], "private");
    assert_eq!(answer["result"]["resultType"], "complete");
    let old = client.request("tools/list", &modern("2025-11-25"));
    assert_eq!(old["error"]["code"], -32022);
    let bare = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
    assert_eq!(client.request("tools/list", &bare)["error"]["code"], -32602);
    assert_eq!(client.request("ping", &modern("2026-07-28"))["error"]["code"], -32601);
    assert_eq!(client.initialize("2025-11-25")["error"]["code"], -32022);
}

#[test]
fn a_request_before_the_handshake_is_refused() {
    let mut client = StdioClient::start(&Script::new());
    assert_eq!(client.request("tools/list", &json!({}))["error"]["code"], -32600);
    let mut client = StdioClient::start(&Script::new().lenient());
    assert!(client.request("tools/list", &json!({}))["result"]["tools"].is_array());
}

#[test]
fn a_modern_request_to_the_client_is_a_result_and_its_state_must_be_returned_unchanged() {
    let mut client = StdioClient::start(&Script::new().ask_rounds(2));
    let mut params = modern("2026-07-28");
    params["name"] = json!("ask");
    params["arguments"] = json!({"method": "elicitation"});
    for _ in 0..2 {
        let result = client.request("tools/call", &params)["result"].take();
        assert_eq!(result["resultType"], "input_required");
        let question = &result["inputRequests"]["question"];
        assert_eq!(question["method"], "elicitation/create");
        params["inputResponses"] = json!({"question": {"action": "decline"}});
        params["requestState"] = result["requestState"].clone();
    }
    let result = client.request("tools/call", &params)["result"].take();
    let given = json!({"question": {"action": "decline"}}).to_string();
    assert_eq!(result["content"][0]["text"], given);
    params["requestState"] = json!("round 1 of 2");
    let result = client.request("tools/call", &params)["result"].take();
    assert_eq!(result["content"][0]["text"], "the state was changed: round 1 of 2");
}

#[test]
fn a_changed_list_is_announced_with_the_id_of_the_subscription() {
    let mut client = StdioClient::start(&Script::new().list_changed_after_calls(1));
    let mut params = modern("2026-07-28");
    params["notifications"] = json!({"toolsListChanged": true});
    let id = client.ask("subscriptions/listen", &params);
    let told = client.message();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
    let mut call = modern("2026-07-28");
    call["name"] = json!("count");
    client.request("tools/call", &call);
    let told = client.message();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
}
