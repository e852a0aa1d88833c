//! MCP Apps through the hub: pages, the tools that name them, and clients that show them or do not.

use openclaw_testkit::{Peers, Script, StdioClient, Tool};
use serde_json::{Value, json};

use crate::common::{LONG, rpc};
use crate::http::{self, send, session};
use crate::place::{Place, text};

const UI: &str = "io.modelcontextprotocol/ui";
const PAGE: &str = "ui://weather/main.html";
const PAGE_TYPE: &str = "text/html;profile=mcp-app";

/// The capabilities of a client that shows pages.
fn shows_pages() -> Value {
    json!({ "extensions": { UI: { "mimeTypes": [PAGE_TYPE] } } })
}

fn app(name: &str, ui: Value) -> Tool {
    Tool::new(name).with("_meta", json!({ "ui": ui }))
}

/// The text of the first content of a resource.
fn page(answer: &Value) -> &str {
    answer["result"]["contents"][0]["text"].as_str().unwrap_or_default()
}

fn entry<'a>(answer: &'a Value, list: &str, name: &str) -> &'a Value {
    let all = answer["result"][list].as_array().unwrap_or_else(|| panic!("{answer}"));
    all.iter().find(|it| it["name"] == name).unwrap_or(&Value::Null)
}

/// The entries to compare: method, list, name.
const ENTRIES: [(&str, &str, &str); 5] = [
    ("tools/list", "tools", "weather"),
    ("tools/list", "tools", "refresh"),
    ("resources/list", "resources", "notes"),
    ("resources/templates/list", "resourceTemplates", "day"),
    ("prompts/list", "prompts", "plan"),
];

/// Waits for a server that starts slowly: a list waits for it only for a few seconds.
fn wait_for(tool: &str, mut list: impl FnMut() -> Value) {
    let begun = std::time::Instant::now();
    loop {
        let listed = list();
        if entry(&listed, "tools", tool).is_object() {
            return;
        }
        assert!(begun.elapsed() < LONG, "{listed}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

fn listed(client: &mut StdioClient) -> [Value; 5] {
    wait_for("weather", || client.request("tools/list", &json!({})));
    ENTRIES
        .map(|(method, list, name)| entry(&client.request(method, &json!({})), list, name).clone())
}

#[test]
fn the_lists_of_a_real_server_have_the_same_members_as_without_the_hub() {
    let peer = Peers::find().apps();
    for version in ["2025-11-25", "2026-07-28"] {
        let mut direct = StdioClient::run(&mut peer.command());
        direct.initialize_with("2025-11-25", &shows_pages());
        let direct = listed(&mut direct);
        let mut place = Place::new();
        place.add_peer("one", &peer);
        place.config["mcp"]["servers"]["one"]["protocolVersion"] = json!(version);
        let mut hub = place.hub_for(&[], &shows_pages());
        let wrapped = listed(&mut hub);
        hub.close();
        hub.wait();
        // The second run knows the server before it is connected.
        let mut hub = place.spawn(&["--no-wrap"]);
        let hello = hub.initialize_with("2025-11-25", &shows_pages());
        assert_eq!(hello["result"]["capabilities"]["extensions"][UI], json!({}), "{hello}");
        let instructions = hello["result"]["instructions"].as_str().unwrap();
        assert!(instructions.contains("# MCP server one\n\nAsk for the city first."), "{hello}");
        let through = listed(&mut hub);
        for (at, expected) in direct.iter().enumerate() {
            assert!(expected["_meta"].is_object(), "{expected}");
            assert_eq!(through[at], *expected, "{version}");
            for member in ["title", "_meta", "icons", "size", "annotations"] {
                assert_eq!(wrapped[at][member], expected[member], "{version}: {}", wrapped[at]);
            }
        }
        let declared = hub.call("declared", &json!({}));
        assert!(text(&declared).contains(PAGE_TYPE), "{version}: {declared}");
    }
}

#[test]
fn a_page_that_a_tool_names_is_read_unlisted_and_is_wrapped_only_for_clients_that_do_not_show_it() {
    let mut place = Place::new();
    place.add_peer("one", &Peers::find().apps());
    let html = format!("<html>{PAGE}</html>");
    let mut hub = place.hub_for(&[], &shows_pages());
    wait_for("weather", || hub.request("tools/list", &json!({})));
    let read = hub.request("resources/read", &json!({ "uri": PAGE }));
    assert_eq!(page(&read), html, "{read}");
    assert_eq!(read["result"]["contents"][0]["mimeType"], PAGE_TYPE);
    assert!(read["result"]["contents"][0]["_meta"]["ui"]["csp"].is_object(), "{read}");
    let other = hub.request("resources/read", &json!({ "uri": "notes://today" }));
    assert!(page(&other).starts_with("This is output from"), "{other}");

    let mut hub = place.hub(&[]);
    wait_for("weather", || hub.request("tools/list", &json!({})));
    let listed = hub.request("tools/list", &json!({}));
    assert!(entry(&listed, "tools", "refresh").is_null(), "{listed}");
    let read = hub.request("resources/read", &json!({ "uri": PAGE }));
    assert!(page(&read).starts_with("This is output from") && page(&read).contains(&html));
    let called = hub.call("refresh", &json!({}));
    assert_eq!(called["error"]["code"], -32602, "{called}");
}

#[test]
fn clients_of_2026_07_28_declare_it_with_each_request_over_http_too() {
    let mut place = Place::new();
    place.add_peer("one", &Peers::find().apps());
    let gateway = place.gateway();
    let request = |method: &str, name: &str, mut params: Value, capabilities: Value| {
        params["_meta"] = rpc::meta(capabilities);
        let headers =
            [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", name)];
        let body = rpc::request(1, method, params);
        let sent = http::send_to(&gateway, "/mcp", "POST", &headers, &body);
        sent.messages
            .into_iter()
            .find(|it| it["id"] == 1)
            .unwrap_or_else(|| panic!("{}", sent.head))
    };
    wait_for("weather", || request("tools/list", "", json!({}), json!({})));
    for (capabilities, shows) in [(shows_pages(), true), (json!({}), false), (shows_pages(), true)]
    {
        let listed = request("tools/list", "", json!({}), capabilities.clone());
        assert_eq!(entry(&listed, "tools", "refresh").is_object(), shows, "{listed}");
        assert!(entry(&listed, "tools", "weather")["_meta"]["ui"].is_object(), "{listed}");
        let call = json!({ "name": "refresh", "arguments": {} });
        let called = request("tools/call", "refresh", call, capabilities.clone());
        assert_eq!(called["result"].is_object(), shows, "{called}");
        let read = request("resources/read", PAGE, json!({ "uri": PAGE }), capabilities.clone());
        assert_eq!(page(&read).starts_with("<html>"), shows, "{read}");
        let call = json!({ "name": "declared", "arguments": {} });
        let declared = request("tools/call", "declared", call, capabilities);
        assert_eq!(text(&declared).contains(PAGE_TYPE), shows, "{declared}");
    }
    let discovered = request("server/discover", "", json!({}), json!({}));
    assert!(discovered["result"]["capabilities"]["extensions"][UI].is_object(), "{discovered}");
    let instructions = discovered["result"]["instructions"].as_str().unwrap();
    // In boundaries, because a model reads it.
    assert!(instructions.contains("# MCP server one\n\nThis is output from MCP server 'one'."));
    // A session of an earlier version.
    let session = session(&gateway, shows_pages());
    let headers = [("Mcp-Session-Id", session.as_str())];
    let listed = send(&gateway, "POST", &headers, &rpc::request(2, "tools/list", json!({})));
    assert!(entry(&listed.messages[0], "tools", "refresh").is_object(), "{}", listed.body);
}

#[test]
fn a_page_follows_the_rule_of_the_tools_that_name_it() {
    let script = Script::new()
        .tools([
            app("open", json!({ "resourceUri": "ui://a/open" })),
            app("closed", json!({ "resourceUri": "ui://a/closed" })),
            app("shared", json!({ "resourceUri": "ui://a/closed", "visibility": ["app"] })),
            app("odd", json!({ "resourceUri": "https://a/odd", "visibility": ["model"] })),
        ])
        .content("ui://a/open", PAGE_TYPE, "open page")
        .content("ui://a/closed", PAGE_TYPE, "closed page")
        .content("ui://a/other", PAGE_TYPE, "other page")
        .entry("resources", json!({ "uri": "ui://a/closed", "name": "closed" }));
    let read = |deny: &[&str], uri: &str| {
        let mut place = Place::new();
        place.add("one", &script, json!({ "tools": { "deny": deny }, "approval": "auto" }));
        let mut hub = place.hub_for(&[], &shows_pages());
        hub.request("tools/list", &json!({}));
        hub.request("resources/read", &json!({ "uri": uri }))
    };
    assert_eq!(page(&read(&[], "ui://a/open")), "open page");
    // No tool names it, so it needs an approval, which nobody can give.
    assert!(read(&[], "ui://a/other")["error"].is_object());
    assert_eq!(page(&read(&["closed"], "ui://a/closed")), "closed page", "another tool names it");
    // Although it is listed.
    assert!(read(&["closed", "shared"], "ui://a/closed")["error"].is_object());
    assert!(read(&["ui://*"], "ui://a/open")["error"].is_object(), "its own address is denied");

    let mut place = Place::with("one", &script);
    let mut hub = place.hub_for(&[], &shows_pages());
    let listed = hub.request("tools/list", &json!({}));
    let odd = &entry(&listed, "tools", "odd")["_meta"]["ui"];
    assert_eq!(*odd, json!({ "visibility": ["model"] }), "{listed}");
    // Two servers with one address: neither is chosen by guess.
    place.add("two", &script, json!({ "approval": "never" }));
    let mut hub = place.hub_for(&[], &shows_pages());
    hub.request("tools/list", &json!({}));
    let read = hub.request("resources/read", &json!({ "uri": "ui://a/open" }));
    let message = read["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("several MCP servers have this address (one, two)"), "{read}");
}
