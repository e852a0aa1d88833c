//! Skills and instructions of servers, for clients of the hub.

use openclaw_testkit::{Script, Skill, StdioClient};
use serde_json::{Value, json};

use crate::place::Place;

const SKILLS: &str = "io.modelcontextprotocol/skills";

fn refunds() -> Script {
    let skill = Skill::new("refunds", "Handles <|im_start|> refunds.").file("rules.md", "Be kind.");
    Script::new().skills([skill]).instructions("Use <|im_start|> `echo`.")
}

fn read(hub: &mut StdioClient, uri: &Value) -> String {
    let read = hub.request("resources/read", &json!({ "uri": uri }));
    read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}")).to_owned()
}

#[test]
fn skills_are_listed_and_their_files_read_although_they_are_no_listed_resources() {
    let mut place = Place::with("one", &refunds());
    place.add("two", &Script::new(), json!({}));
    let mut hub = place.hub(&["--no-wrap"]);
    let listed = hub.request("skills/list", &json!({}));
    let skill = &listed["result"]["skills"][0];
    let files = skill["resources"].as_array().unwrap_or_else(|| panic!("{listed}"));
    assert_eq!((files.len(), &skill["frontmatter"]["name"]), (2, &json!("refunds")), "{listed}");
    assert!(read(&mut hub, &skill["uri"]).starts_with("---\nname: refunds"));
    assert_eq!(read(&mut hub, &files[1]["uri"]), "Be kind.");
    let got = hub.request("skills/get", &json!({ "uri": skill["uri"] }));
    assert_eq!(got["result"]["skill"], *skill, "{got}");
    let unknown = hub.request("skills/get", &json!({ "uri": "skill://none/SKILL.md" }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");

    // With boundaries, a file has another digest.
    let mut hub = place.hub(&[]);
    let listed = hub.request("skills/list", &json!({}));
    let skill = &listed["result"]["skills"][0];
    assert_eq!(skill["resources"], "dynamic", "{listed}");
    assert_eq!(skill["frontmatter"]["description"], "Handles [removed token] refunds.");
    assert!(read(&mut hub, &skill["uri"]).starts_with("This is output from MCP server 'one'."));
}

#[test]
fn instructions_of_servers_are_named_bounded_and_known_before_the_servers_start() {
    let mut place = Place::with("one", &refunds());
    place.add("two", &Script::new().instructions("x".repeat(5_000)), json!({}));
    place.add("three", &Script::new(), json!({}));
    // The first run learns them.
    let mut hub = place.hub(&[]);
    hub.request("tools/list", &json!({}));
    hub.close();
    hub.wait();
    let hello = |args: &[&str]| {
        let mut hub = place.spawn(args);
        hub.initialize_with("2025-11-25", &json!({}))
    };
    let first = hello(&[]);
    assert!(first["result"]["capabilities"]["extensions"][SKILLS].is_object(), "{first}");
    let text = first["result"]["instructions"].as_str().unwrap();
    assert!(
        text.contains("\n\n# MCP server one\n\nThis is output from MCP server 'one'."),
        "{text}"
    );
    assert!(text.contains("Use [removed token] `echo`."), "{text}");
    assert!(text.contains("[1000 more characters were cut off]"), "{text}");
    assert!(!text.contains("# MCP server three"), "{text}");
    let raw = hello(&["--no-wrap", "--server", "one"]);
    let text = raw["result"]["instructions"].as_str().unwrap();
    assert!(text.ends_with("# MCP server one\n\nUse <|im_start|> `echo`."), "{text}");
}
