//! What a client sees, and by which names.

use openclaw_testkit::{Peers, Script, StdioClient, Tool};
use serde_json::{Value, json};

use crate::common::LONG;
use crate::place::{Place, names, text};

#[test]
fn the_tools_of_one_server_have_its_own_names_and_those_of_several_are_prefixed() {
    let mut place = Place::with("one", &Script::new().tools([Tool::new("read")]));
    assert_eq!(names(&place.hub(&[]).request("tools/list", &json!({})), "tools"), ["read"]);
    place.add("two", &Script::new().tools([Tool::new("read"), Tool::new("write")]), json!({}));
    let listed = place.hub(&[]).request("tools/list", &json!({}));
    assert_eq!(names(&listed, "tools"), ["mcp_one_read", "mcp_two_read", "mcp_two_write"]);
    let listed = place.hub(&["--no-prefix"]).request("tools/list", &json!({}));
    // Only what is unambiguous goes without.
    assert_eq!(names(&listed, "tools"), ["mcp_one_read", "mcp_two_read", "write"]);
    let listed = place.hub(&["--server", "two"]).request("tools/list", &json!({}));
    assert_eq!(names(&listed, "tools"), ["read", "write"]);
}

/// Runs the hub with each wrong option, which is a usage error.
fn assert_wrong_options(place: &Place) {
    for (args, words) in [
        (["--server", "nine"], "error: agent `main` has no MCP server `nine`\nhint: "),
        (["--agent", "nobody"], "error: unknown agent `nobody`\nhint: "),
    ] {
        let mut command = place.command(&["mcp-server", "--hub"]);
        let output = command.args(args).stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(words), "{said}");
        assert!(output.stdout.is_empty());
        assert_eq!(output.status.code(), Some(2), "{said}");
    }
}

#[test]
fn an_unknown_server_or_agent_is_a_usage_error_also_beside_a_gateway() {
    let place = Place::with("one", &Script::new());
    assert_wrong_options(&place);
    let _gateway = place.gateway();
    assert_wrong_options(&place);
}

#[test]
fn denied_tools_are_not_offered() {
    let mut place = Place::new();
    let script = Script::new().tools([Tool::new("read"), Tool::new("write")]);
    place.add("one", &script, json!({ "tools": { "deny": ["write"] }, "approval": "never" }));
    let mut hub = place.hub(&[]);
    assert_eq!(names(&hub.request("tools/list", &json!({})), "tools"), ["read"]);
    let answer = hub.call("write", &json!({}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn two_tools_find_and_call_all_others() {
    let mut place = Place::with("one", &Script::new());
    place.add("two", &Script::new(), json!({ "approval": "never" }));
    let mut hub = place.hub(&["--tools", "search"]);
    let listed = hub.request("tools/list", &json!({}));
    assert_eq!(names(&listed, "tools"), ["search_tools", "call_tool"]);
    let found = hub.call("search_tools", &json!({ "query": "echo" }));
    assert!(text(&found).contains("mcp_two_echo"), "{found}");
    let arguments = json!({ "name": "mcp_two_echo", "arguments": { "text": "hello" } });
    let answer = hub.call("call_tool", &arguments);
    assert!(text(&answer).contains("hello"), "{answer}");
    assert!(hub.call("mcp_two_echo", &json!({}))["error"].is_object());
    assert!(hub.call("call_tool", &json!({}))["error"].is_object());
    let refused = hub.call("search_tools", &json!({ "query": "echo", "limit": 26 }));
    assert_eq!(refused["error"]["message"], "invalid `limit`: it must be 1 to 25", "{refused}");
}

/// Lists until servers that start slowly are there: a list waits for them only for a few seconds.
fn list_until(hub: &mut StdioClient, method: &str, is_complete: impl Fn(&Value) -> bool) -> Value {
    let begun = std::time::Instant::now();
    loop {
        let listed = hub.request(method, &json!({}));
        if is_complete(&listed) {
            return listed;
        }
        assert!(begun.elapsed() < LONG, "{listed}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn resources_templates_prompts_and_completions_of_a_real_server_go_through() {
    let mut place = Place::new();
    place.add_peer("everything", &Peers::find().everything());
    let mut hub = place.hub(&["--no-wrap"]);
    let listed = list_until(&mut hub, "resources/list", |it| {
        it["result"]["resources"][0]["uri"].is_string()
    });
    let uri =
        listed["result"]["resources"][0]["uri"].as_str().unwrap_or_else(|| panic!("{listed}"));
    let read = hub.request("resources/read", &json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["uri"], uri, "{read}");
    let templates = hub.request("resources/templates/list", &json!({}));
    assert!(!templates["result"]["resourceTemplates"].as_array().unwrap().is_empty());
    let prompts = names(&hub.request("prompts/list", &json!({})), "prompts");
    assert!(prompts.contains(&"simple-prompt".to_owned()), "{prompts:?}");
    let prompt = hub.request("prompts/get", &json!({ "name": "simple-prompt" }));
    assert!(prompt["result"]["messages"][0]["content"]["text"].is_string(), "{prompt}");
    let completion = hub.request(
        "completion/complete",
        &json!({
            "ref": { "type": "ref/prompt", "name": "completable-prompt" },
            "argument": { "name": "department", "value": "E" },
        }),
    );
    assert!(completion["result"]["completion"]["values"].is_array(), "{completion}");
    let unknown = hub.request("resources/read", &json!({ "uri": "nothing://here" }));
    assert!(unknown["error"].is_object(), "{unknown}");
}

#[test]
fn several_real_servers_are_one() {
    let mut place = Place::new();
    let peers = Peers::find();
    std::fs::create_dir(place.path("files")).unwrap();
    std::fs::write(place.path("files/a.txt"), "from a file").unwrap();
    place.add_peer("files", &peers.filesystem(&place.path("files")));
    place.add_peer("time", &peers.time());
    place.add_peer("fast", &peers.fastmcp());
    let mut hub = place.hub(&["--no-wrap"]);
    let prefixes = ["mcp_files_", "mcp_time_", "mcp_fast_"];
    list_until(&mut hub, "tools/list", |listed| {
        let tools = names(listed, "tools");
        prefixes.iter().all(|prefix| tools.iter().any(|name| name.starts_with(prefix)))
    });
    let path = place.path("files/a.txt");
    let read = hub.call("mcp_files_read_text_file", &json!({ "path": path }));
    assert_eq!(text(&read), "from a file", "{read}");
    let time = hub.call("mcp_time_get_current_time", &json!({ "timezone": "UTC" }));
    assert!(text(&time).contains("UTC"), "{time}");
}

#[test]
fn a_name_without_prefix_does_not_move_to_another_server() {
    let mut place = Place::new();
    let other = Tool::new("other");
    let dropping = Script::new().list_changed_after_calls(1).changed_tools([other]);
    let adding = Script::new()
        .tools([Tool::new("write")])
        .list_changed_after_calls(1)
        .changed_tools([Tool::new("write"), Tool::new("read")]);
    let settings = json!({ "approval": "never" });
    place.add("one", &dropping.tools([Tool::new("read"), Tool::new("both")]), settings.clone());
    place.add("two", &adding, settings.clone());
    place.add("three", &Script::new().tools([Tool::new("both")]), settings);
    let mut hub = place.hub(&["--no-prefix"]);
    let is_listed = |name: &str, listed: &Value| names(listed, "tools").iter().any(|it| it == name);
    list_until(&mut hub, "tools/list", |listed| {
        ["read", "write", "mcp_one_both", "mcp_three_both"].iter().all(|it| is_listed(it, listed))
    });
    // `one` drops `read` and `both`; only `three` has `both` now.
    assert!(hub.call("read", &json!({}))["result"].is_object());
    list_until(&mut hub, "tools/list", |listed| !is_listed("mcp_one_both", listed));
    let gone = hub.call("read", &json!({}));
    let words = gone["error"]["message"].as_str().unwrap_or_else(|| panic!("{gone}"));
    assert!(words.contains("offered by MCP server one, which does not offer it now"), "{words}");
    // Now `two` has a tool of this name.
    assert!(hub.call("write", &json!({}))["result"].is_object());
    let listed = list_until(&mut hub, "tools/list", |listed| is_listed("mcp_two_read", listed));
    assert_eq!(names(&listed, "tools"), ["mcp_three_both", "mcp_two_read", "other", "write"]);
    for (name, instead) in [("read", "`mcp_two_read`"), ("both", "`mcp_three_both`")] {
        let refused = hub.call(name, &json!({}));
        let words = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
        assert!(words.contains("several MCP servers") && words.contains(instead), "{words}");
    }
    let mut finding = place.hub(&["--no-prefix", "--tools", "search"]);
    list_until(&mut finding, "tools/list", |_| true);
    assert!(finding.call("call_tool", &json!({ "name": "both" }))["error"].is_object());
}

#[test]
fn no_server_has_a_name_that_looks_like_the_prefixed_name_of_another() {
    let mut place = Place::with("one", &Script::new().tools([Tool::new("mcp_two_read")]));
    place.add("two", &Script::new().tools([Tool::new("read")]), json!({}));
    let listed = place.hub(&["--no-prefix"]).request("tools/list", &json!({}));
    assert_eq!(names(&listed, "tools"), ["mcp_one_mcp_two_read", "read"]);
}

#[test]
fn an_address_stays_with_the_server_that_first_had_it() {
    let mut place = Place::with("one", &Script::new());
    place.add("two", &Script::new(), json!({ "approval": "never" }));
    let gateway = place.gateway();
    let mut hub = place.hub(&[]);
    let listed = list_until(&mut hub, "resources/list", |it| {
        it["result"]["resources"][0]["uri"].is_string()
    });
    let count = listed["result"]["resources"].as_array().unwrap().len();
    assert_eq!(count, 2, "each once: {listed}");
    let read = hub.request("resources/read", &json!({ "uri": "test://greeting" }));
    let owner = read["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
    let (gone, left) = if owner.contains("'one'") { ("one", "two") } else { ("two", "one") };
    place.config["mcp"]["servers"].as_object_mut().unwrap().remove(gone);
    std::fs::write(place.path("openclaw.json"), place.config.to_string()).unwrap();
    // With one server, its tools have its own names.
    list_until(&mut hub, "tools/list", |it| names(it, "tools").iter().any(|it| it == "echo"));
    let read = hub.request("resources/read", &json!({ "uri": "test://greeting" }));
    let words = read["error"]["message"].as_str().unwrap_or_else(|| panic!("{read}"));
    assert!(words.contains(gone) && !words.contains(&format!("'{left}'")), "{words}");
    drop(gateway);
}
