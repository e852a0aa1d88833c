//! What servers answer, in files and for programs.

use std::fs;

use openclaw_testkit::{Odd, Script, Tool};
use serde_json::{Value, json};

use crate::support::Place;

/// A server with one tool that answers with a file, and one with a value.
fn place() -> Place {
    let archive =
        json!({ "uri": "test://a.zip", "mimeType": "application/zip", "blob": "UEsDBA==" });
    let part = json!({ "type": "resource", "resource": archive });
    Place::new(&[(
        "test",
        &Script::new().tools([
            Tool::new("archive").result(&json!({ "content": [part] })),
            Tool::new("two").result(&json!({ "content": [part, part] })),
            Tool::new("text").result(&json!({ "content": [{ "type": "text", "text": "plain" }] })),
            Tool::new("value").raw_result(
                r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1.50}}"#,
            ),
        ]),
    )])
}

#[test]
fn what_is_binary_can_be_saved_in_a_folder_or_under_a_name() {
    let place = place();
    let (exit, _, stderr) = place.said(&["mcp", "call", "test", "archive"]);
    assert!(exit == 0 && stderr.contains("`-o FILE`"), "{stderr}");
    let (exit, _, stderr) = place.said(&["mcp", "call", "test", "archive", "--save", "out"]);
    assert_eq!(exit, 0, "{stderr}");
    let expected = b"PK\x03\x04";
    assert_eq!(fs::read(place.path("out/test-archive-1.zip")).unwrap(), expected);
    for _ in 0..2 {
        let (exit, _, stderr) = place.said(&["mcp", "call", "test", "archive", "-o", "mine"]);
        assert_eq!(exit, 0, "whoever names a file means it: {stderr}");
    }
    assert_eq!(fs::read(place.path("mine")).unwrap(), expected);
    let (exit, stdout, _) = place.said(&["mcp", "call", "test", "text", "-o", "words"]);
    assert_eq!((exit, stdout.as_str()), (0, ""));
    assert_eq!(fs::read(place.path("words")).unwrap(), b"plain");
    let (exit, _, stderr) = place.said(&["mcp", "call", "test", "two", "-o", "which"]);
    assert!(exit == 1 && stderr.contains("--save FOLDER"), "{stderr}");
    assert!(!place.path("which").exists());
}

#[test]
fn what_is_damaged_is_not_offered_as_a_file() {
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "%%%not base64" });
    let resource = json!({ "uri": "test://a", "mimeType": "application/zip", "blob": "%%%" });
    let blob = json!({ "type": "resource", "resource": resource });
    let script = Script::new().tools([
        Tool::new("image").result(&json!({ "content": [image] })),
        Tool::new("blob").result(&json!({ "content": [blob] })),
    ]);
    let place = Place::new(&[("test", &script)]);
    for tool in ["image", "blob"] {
        let (_, stdout, stderr) = place.said(&["mcp", "call", "test", tool]);
        assert!(!stderr.contains("-o FILE"), "{tool}: {stderr}");
        assert!(format!("{stdout}{stderr}").contains("damaged"), "{tool}: {stdout}{stderr}");
    }
}

#[test]
fn a_resource_that_is_binary_can_be_saved() {
    let place = Place::new(&[("test", &Script::new())]);
    let (_, stdout, _) = place.said(&["mcp", "resources", "test", "--json"]);
    let listed: Value = serde_json::from_str(&stdout).unwrap();
    let uris = listed["resources"].as_array().unwrap().iter();
    let saved = uris.filter(|it| {
        let uri = it["uri"].as_str().unwrap();
        place.said(&["mcp", "read", "test", uri, "-o", "it"]);
        fs::read(place.path("it")).unwrap().starts_with(b"\x89PNG")
    });
    assert_eq!(saved.count(), 1);
}

#[test]
fn programs_get_structured_content_as_it_is_and_files_as_data() {
    let place = place();
    let (exit, stdout, _) = place.said(&["mcp", "call", "test", "value", "--json"]);
    assert_eq!(exit, 0);
    assert!(stdout.contains(r#""structuredContent": {"n":1.50}"#), "{stdout}");
    let (_, stdout, _) = place.said(&["mcp", "call", "test", "archive", "--json"]);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert!(answer.get("structuredContent").is_none());
    let blob = answer["content"].as_array().unwrap().last().unwrap();
    let expected = json!({
        "type": "blob", "uri": "test://a.zip", "mimeType": "application/zip", "data": "UEsDBA=="
    });
    assert_eq!(*blob, expected);
}

#[test]
fn what_servers_say_about_their_tools_is_bounded() {
    let place = Place::new(&[("test", &Script::new().tools([]).odd_tool(Odd::HugeDescription))]);
    let (exit, bounded, _) = place.said(&["mcp", "tools", "--json", "--schema"]);
    assert!(exit == 0 && bounded.len() < 5_000, "{}", bounded.len());
    let (exit, all, _) = place.said(&["mcp", "tools", "--json", "--raw"]);
    assert!(exit == 0 && all.len() > 1_000_000, "{}", all.len());
    assert_eq!(place.said(&["mcp", "tools", "--raw"]).0, 2);
}

#[test]
fn a_prompt_gets_what_it_needs_and_nothing_else() {
    let place = Place::new(&[("test", &Script::new())]);
    for (words, said) in [
        (&[][..], "needs the argument `name`"),
        (&["name=Ada", "bad=1"], "takes no argument `bad`"),
    ] {
        let args = [&["mcp", "prompt", "test", "greet"], words].concat();
        let (exit, _, stderr) = place.said(&args);
        assert_eq!(exit, 2, "{stderr}");
        assert!(stderr.contains(said) && stderr.contains("it takes: name"), "{stderr}");
    }
    let (exit, stdout, _) = place.said(&["mcp", "prompt", "test", "greet", "name=Ada", "--json"]);
    assert_eq!(exit, 0, "{stdout}");
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["messages"][0]["role"], "user", "{answer}");
    assert!(answer["messages"][0]["content"].to_string().contains("Ada"), "{answer}");
}
