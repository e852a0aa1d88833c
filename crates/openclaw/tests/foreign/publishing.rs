//! The MCP servers of an editor at a gateway that takes no tools for a session: a node publishes them.

use openclaw_testkit::{Script, Tool};
use serde_json::json;

use crate::editor::{Editor, Place, choose};
use crate::forged::{Forged, Settings, TOKEN};

/// A server with a tool that changes nothing, and one that may.
pub(crate) fn looking_and_changing() -> Script {
    let tool = |name: &str| {
        Tool::new(name).result(&json!({ "content": [{ "type": "text", "text": "done" }] }))
    };
    let look = tool("look").with("annotations", json!({ "readOnlyHint": true }));
    Script::new().tools([tool("change"), look])
}

/// An editor whose sessions are at this gateway.
fn start(place: &Place, gateway: &Forged) -> Editor {
    Editor::start(place, &["--gateway", &gateway.url, "--token", TOKEN], &json!({}))
}

#[test]
fn tools_of_the_editor_are_published_approved_and_called() {
    let (gateway, place) = (Forged::start(), Place::new());
    let mut kinds = ["allow_once", "reject_once"].into_iter();
    let mut editor =
        start(&place, &gateway).answering(move |_, params| choose(params, kinds.next().unwrap()));
    let session = editor.session(&place, &[place.stdio("box", &looking_and_changing())]);
    let (_, text) = editor.prompt(&session, "call mcp__box__look {}");
    assert_eq!(text, "It returned: done");
    assert!(editor.asked.is_empty(), "it changes nothing");
    let update = editor.of_kind("tool_call_update").last().copied().unwrap();
    assert_eq!(update["rawOutput"]["text"], "done", "{update}");
    // The gateway asks nobody: the user is asked here.
    let (_, text) = editor.prompt(&session, "call mcp__box__change {}");
    assert_eq!(text, "It returned: done");
    let (_, text) = editor.prompt(&session, "call mcp__box__change {}");
    assert_eq!(text, "It returned: The user denied this call.");
    assert_eq!(editor.asked.len(), 2);
    // Other sessions of the gateway see the tools, too.
    let (_, text) = editor.prompt(&session, "steal mcp__box__look {}");
    assert_eq!(text, "It returned: This tool belongs to another session.");
    let node = gateway.connects().into_iter().find(|it| it["role"] == "node").unwrap();
    assert_eq!(node["commands"], json!(["mcp.tools.call.v1"]));
    assert_eq!(node["client"]["id"], "node-host");
    let published = gateway.requests("node.pluginTools.update").pop().unwrap();
    assert_eq!(published["tools"][0]["pluginId"], "node-mcp", "{published}");
    assert_eq!(editor.close(), 0);
    place.assert_nothing_left();
}

#[test]
fn an_editor_without_servers_needs_no_node() {
    let (gateway, place) = (Forged::start(), Place::new());
    let mut editor = start(&place, &gateway);
    let session = editor.session(&place, &[]);
    let (_, text) = editor.prompt(&session, "hi");
    assert_eq!(text, "You said: hi");
    assert!(gateway.connects().iter().all(|it| it["role"] == "operator"));
    // Otherwise the Node gateway denies what needs an approval.
    let caps = gateway.last_operator()["caps"].clone();
    assert!(caps.as_array().unwrap().contains(&json!("approvals")), "{caps}");
    assert_eq!(editor.close(), 0);
}

#[test]
fn the_user_is_told_why_the_tools_are_missing() {
    for (settings, words) in [
        (Settings { no_pairing: true, ..Settings::default() }, "openclaw nodes approve"),
        (
            Settings { unknown_device: true, ..Settings::default() },
            "openclaw devices approve device-7",
        ),
    ] {
        let (gateway, place) = (Forged::start_with(settings), Place::new());
        let mut editor = start(&place, &gateway);
        let session = editor.session(&place, &[place.stdio("box", &looking_and_changing())]);
        let (_, text) = editor.prompt(&session, "hi");
        assert!(text.contains(words), "{text}");
        assert!(text.ends_with("You said: hi"), "the turn goes on: {text}");
        assert_eq!(editor.close(), 0);
        place.assert_nothing_left();
    }
}
