//! Sampling: approval on a terminal, and with `server-everything` (B16).

use openclaw_testkit::{Ask, Peers, Script};
use serde_json::{Value, json};

use crate::support::{Place, at_a_terminal, chat};

const QUESTION: &str = "[a] always  [n] no";

/// A folder with a server that requests sampling during every call.
fn place(sampling: &str) -> Place {
    let place = Place::offline(&Script::new().ask(Ask::Sampling), "never");
    place.change(|config| config["mcp"]["servers"]["x"]["sampling"] = json!(sampling));
    place
}

/// Returns the outcomes of all sampling requests in the audit log.
fn audited(place: &Place) -> Vec<String> {
    let lines = std::fs::read_to_string(place.path("logs/audit.jsonl")).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sampling = lines.filter(|line| line["tool"] == "sampling/createMessage");
    sampling.map(|line| line["outcome"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn in_a_chat_a_sampling_request_needs_approval() {
    let place = place("ask");
    let call = "/call mcp_x_echo {\"text\":\"hi\"}\r";
    let steps = [
        ("› ", call),
        ("Enter) ", "n\r"),
        ("rejected", ""),
        ("› ", call),
        ("Enter) ", "a\r"),
        ("I am the offline model", ""),
        ("› ", call),
        ("I am the offline model", ""),
        ("› ", "/exit\r"),
    ];
    let shown = chat(&place, &steps);
    assert!(shown.contains("Let the MCP server x use offline, for at most 16 tokens?"), "{shown}");
    assert!(shown.contains("Untrusted text from the server"), "{shown}");
    assert!(shown.contains("user=\"Say hello\""), "{shown}");
    assert_eq!(audited(&place), ["denied", "ok", "ok"]);
    place.assert_nothing_left();
}

#[test]
fn without_a_terminal_sampling_needs_the_rule_always() {
    for (rule, expected, outcome) in [
        ("ask", "no user answered", "denied"),
        ("never", "sampling is not allowed for this server", "denied"),
        ("always", "offline model of OpenClaw", "ok"),
    ] {
        let place = place(rule);
        let message = "/call mcp_x_echo {\"text\":\"hi\"}";
        let (_, stdout, stderr) = place.said(&["agent", "--message", message]);
        let said = format!("{stdout}{stderr}");
        assert!(said.contains(expected), "{rule}: {said}");
        assert_eq!(audited(&place), [outcome], "{rule}");
    }
}

/// `server-everything`, which lists the tool only to clients that announce sampling.
fn everything(sampling: &str) -> Place {
    let peer = Peers::find().everything();
    Place::configured(&json!({
        "agents": { "defaults": { "model": "offline" } },
        "mcp": { "servers": { "everything": {
            "command": peer.program, "args": peer.args, "timeout": 120_000,
            "env": peer.env.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "approval": "never", "sampling": sampling,
        } } },
    }))
}

const TRIGGER: &str =
    "/call mcp_everything_trigger-sampling-request {\"prompt\":\"Which tea?\",\"maxTokens\":64}";

#[test]
fn server_everything_gets_its_answer_after_approval() {
    let place = everything("ask");
    let (exit, shown) = at_a_terminal(&place, QUESTION, "y", &["agent", "--message", TRIGGER]);
    assert_eq!(exit, 0, "{shown}");
    for part in [
        "use offline, for at most 64 tokens?",
        "systemPrompt=\"You are a helpful test server.\"",
        "Resource trigger-sampling-request context: Which tea?",
        "LLM sampling result",
        "\"model\": \"offline\"",
        "\"stopReason\": \"endTurn\"",
        "offline model of OpenClaw",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(audited(&place), ["ok"]);
    place.assert_nothing_left();
}

#[test]
fn sampling_is_announced_only_if_it_is_allowed() {
    let place = everything("never");
    let (_, stdout, stderr) = place.said(&["mcp", "tools", "everything"]);
    assert!(stdout.contains("mcp_everything_echo"), "{stdout}{stderr}");
    assert!(!stdout.contains("trigger-sampling-request"), "{stdout}");
    let place = everything("always");
    let (_, stdout, stderr) = place.said(&["agent", "--message", TRIGGER]);
    assert!(stdout.contains("LLM sampling result"), "{stdout}{stderr}");
    assert_eq!(audited(&place), ["ok"]);
}
