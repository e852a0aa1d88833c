//! Results of `mcp.*` are what `openclaw mcp … --json` prints.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use openclaw_protocol::mcp::{self, elicitation};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Deserializes and serializes what is printed: nothing is lost.
#[track_caller]
fn survives<T: Serialize + DeserializeOwned>(printed: &Value) {
    let ours: T = serde_json::from_str(&printed.to_string()).unwrap();
    assert_eq!(serde_json::to_value(&ours).unwrap(), *printed);
}

#[test]
fn servers_keep_their_status_as_the_engine_wrote_it() {
    let status = json!({ "name": "demo", "state": "ready", "p50Ms": 0.5, "lastError": null });
    survives::<mcp::ServersResult>(&json!({
        "agent": "main", "ready": 1, "missing": ["files"], "servers": [status],
    }));
    survives::<mcp::ServerResult>(&json!({ "ok": true, "server": status }));
}

#[test]
fn tools_say_who_denies_them_and_what_was_left_out() {
    let tool = json!({
        "name": "mcp_demo_echo", "server": "demo", "tool": "echo", "title": null,
        "description": "Says it again", "effect": "read-only", "deniedBy": null, "changed": false,
        "fingerprint": "00ff",
    });
    let mut with_schema = tool.clone();
    with_schema["inputSchema"] = json!({ "type": "object" });
    let left_out = json!({ "server": "demo", "name": "odd", "reason": "its schema is wrong" });
    survives::<mcp::ToolsResult>(&json!({ "tools": [tool, with_schema], "leftOut": [left_out] }));
}

#[test]
fn outcomes_lists_and_logs_come_through() {
    survives::<mcp::Outcome>(&json!({
        "content": [{ "type": "text", "text": "hello", "untrusted": true }],
        "isError": false,
        "details": {
            "untrusted": true, "source": "mcp_server", "server": "demo", "tool": "echo", "wrapped": true,
            "findings": [{ "kind": "role-change", "count": 1 }], "durationMs": 3, "failure": null,
            "isCut": false, "keptIn": null,
            "links": [{ "uri": "demo://a", "name": null, "mimeType": "text/plain" }],
        },
    }));
    survives::<mcp::RefreshResult>(&json!({ "ok": false, "servers": [
        { "name": "demo", "ok": true, "tools": 2, "resources": 0, "prompts": 1,
          "added": ["a"], "removed": [], "changed": ["b"] },
        { "name": "files", "ok": false, "error": "it does not start" },
    ] }));
    survives::<mcp::ResourcesResult>(&json!({
        "resources": [{ "uri": "demo://a", "name": "a", "server": "demo" }], "templates": [],
    }));
    survives::<mcp::PromptsResult>(&json!({ "prompts": [{ "name": "p", "server": "demo" }] }));
    survives::<mcp::LogsResult>(&json!({ "server": "demo", "lines": ["started"] }));
}

#[test]
fn questions_of_servers_say_what_is_wanted_in_their_mode() {
    let form = json!({
        "id": "e1", "server": "demo", "sessionKeys": ["main"], "message": "Who?", "mode": "form",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
        "createdAtMs": 1, "expiresAtMs": 2,
    });
    survives::<elicitation::Elicitation>(&form);
    let mut visit = form;
    visit["mode"] = json!("url");
    visit["url"] = json!("https://example.com/?a=1");
    visit.as_object_mut().unwrap().remove("requestedSchema");
    survives::<elicitation::Elicitation>(&visit);
    let answer = json!({ "id": "e1", "action": "accept", "content": { "name": "Ada" } });
    survives::<elicitation::RespondParams>(&answer);
    survives::<elicitation::RespondParams>(&json!({ "id": "e1", "action": "decline" }));
    survives::<elicitation::ResolvedEvent>(&json!({ "id": "e1", "reason": "expired" }));
}
